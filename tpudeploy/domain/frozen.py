"""frozen: the decorator of data. A dataclass, immutable, slotted, keyword-only, whose methods all such classes share.

`dataclasses.dataclass` writes six methods for each class as text and compiles them at every start: with a hundred
classes that was a sixth of `validate` and of `plan`. A class of which many are made gets an `__init__` of its own then:
that is compiled once, and a third as dear to call. `fields`, `replace`, `asdict` and `match` know these classes as they
know any dataclass.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field
from typing import Any, ClassVar, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")
_write = object.__setattr__
_MANY = 64
_made: dict[type, int] = {}


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """`@dataclass(frozen=True, slots=True, kw_only=True)`. A method that the class has itself is kept."""
    cls.__doc__ = cls.__doc__ or cls.__name__  # else its signature would be written out for one
    shared = {name: method for name, method in _SHARED.items() if name not in vars(cls)}
    made = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=True)(cls)
    for name, method in shared.items():
        setattr(made, name, method)
    return made


class _Shared:
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init__(self, **given: Any) -> None:
        cls = type(self)
        _made[cls] = _made.get(cls, 0) + 1
        if _made[cls] == _MANY:
            cls.__init__ = _compiled(cls)  # type: ignore[method-assign]  # takes the same, and does the same
        for name, known in self.__dataclass_fields__.items():
            if name in given:
                value = given.pop(name)
            elif known.default is not MISSING:
                value = known.default
            elif known.default_factory is not MISSING:
                value = known.default_factory()
            else:
                raise TypeError(f"{type(self).__name__} needs `{name}`")
            _write(self, name, value)
        if given:
            raise TypeError(f"{type(self).__name__} has no `{next(iter(given))}`")

    def __repr__(self) -> str:
        shown = (f"{n}={getattr(self, n)!r}" for n, known in self.__dataclass_fields__.items() if known.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not type(self):
            return NotImplemented
        for name, known in self.__dataclass_fields__.items():  # ends with the first that differs: mostly a name
            if known.compare:
                mine, theirs = getattr(self, name), getattr(other, name)
                if mine is not theirs and mine != theirs:
                    return False
        return True

    def __hash__(self) -> int:
        return hash(_compared(self))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __setstate__(self, state: tuple[None, dict[str, object]]) -> None:
        """What `copy` and `pickle` fill a new one with."""
        for name, value in state[1].items():
            _write(self, name, value)


def _compiled(cls: type[_Shared]) -> Any:
    """`__init__` as `dataclass` would write it."""
    known: dict[str, Any] = {"_write": _write, "_MISSING": MISSING}
    taken, said = [], []
    for name, of in cls.__dataclass_fields__.items():
        if of.default_factory is not MISSING:
            known[f"_make_{name}"] = of.default_factory
            taken.append(f"{name}=_MISSING")
            said.append(f" _write(self, {name!r}, _make_{name}() if {name} is _MISSING else {name})")
            continue
        known[f"_default_{name}"] = of.default
        taken.append(name if of.default is MISSING else f"{name}=_default_{name}")
        said.append(f" _write(self, {name!r}, {name})")
    star = "*, " if taken else ""
    text = "\n".join([f"def __init__(self, {star}{', '.join(taken)}):", *(said or [" pass"])])
    exec(text, known)  # noqa: S102 - our own fields' names, as `dataclasses` does it
    return known["__init__"]


def _compared(of: Any) -> tuple[object, ...]:
    return tuple(getattr(of, name) for name, known in of.__dataclass_fields__.items() if known.compare)


_SHARED = {
    name: vars(_Shared)[name]
    for name in ("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__setstate__")
}
