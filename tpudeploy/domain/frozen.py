"""frozen: the decorator of data classes: immutable, slotted, keyword-only, with methods that all of them share.

`dataclasses.dataclass` generates and compiles six methods for each class at every start: with a hundred classes, that
was a sixth of the time of `validate` and of `plan`. `fields`, `asdict` and `match` treat these classes as any
dataclass; `replace` is here, because that of `dataclasses` takes twice the time.

Why: decision 11 in docs/decisions.md.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")
_write = object.__setattr__


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Make a class `@dataclass(frozen=True, slots=True, kw_only=True)`. Methods of the class itself are kept."""
    cls.__doc__ = cls.__doc__ or cls.__name__  # otherwise `dataclass` would generate one from the signature
    shared = {name: method for name, method in _SHARED.items() if name not in vars(cls)}
    new_class = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=True)(cls)
    for name, method in shared.items():
        setattr(new_class, name, method)
    return new_class


if TYPE_CHECKING:
    from dataclasses import replace as replace  # noqa: PLC0414 - type checkers know the fields by this function
else:

    def replace(instance: T, **changes: object) -> T:
        """Return a copy with these fields changed. Raise TypeError for a name that is no field."""
        cls = type(instance)
        copy = cls.__new__(cls)
        for name in cls.__dataclass_fields__:
            _write(copy, name, changes.pop(name) if name in changes else getattr(instance, name))
        if changes:
            raise TypeError(f"{cls.__name__} has no `{next(iter(changes))}`")
        return copy


class _Shared:
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init__(self, **values: Any) -> None:
        for name, spec in self.__dataclass_fields__.items():
            if name in values:
                value = values.pop(name)
            elif spec.default is not MISSING:
                value = spec.default
            elif spec.default_factory is not MISSING:
                value = spec.default_factory()
            else:
                raise TypeError(f"{type(self).__name__} needs `{name}`")
            _write(self, name, value)
        if values:
            raise TypeError(f"{type(self).__name__} has no `{next(iter(values))}`")

    def __repr__(self) -> str:
        texts = (f"{n}={getattr(self, n)!r}" for n, spec in self.__dataclass_fields__.items() if spec.repr)
        return f"{type(self).__qualname__}({', '.join(texts)})"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not type(self):
            return NotImplemented
        for name, spec in self.__dataclass_fields__.items():  # ends with the first that differs: mostly a name
            if spec.compare:
                mine, theirs = getattr(self, name), getattr(other, name)
                if mine is not theirs and mine != theirs:
                    return False
        return True

    def __hash__(self) -> int:
        return hash(_compared_values(self))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __setstate__(self, state: tuple[None, dict[str, object]]) -> None:
        """Set the fields of a new instance, for `copy` and `pickle`."""
        for name, value in state[1].items():
            _write(self, name, value)


def _compared_values(instance: Any) -> tuple[object, ...]:
    return tuple(getattr(instance, name) for name, spec in instance.__dataclass_fields__.items() if spec.compare)


_SHARED = {
    name: vars(_Shared)[name]
    for name in ("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__setstate__")
}
