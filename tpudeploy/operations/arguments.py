"""Declare the arguments of an operation once: in the signature of its function.

    def greet(
        workspace: Workspace,
        name: Annotated[str, Arg("The name.", positional=True)],
        *,
        times: Annotated[Count, Arg("How often to say it.")] = 1,
    ) -> Greeting:

The signature is the library's method, which type checkers read. A parameter with an `Arg` is an option of the command,
with its TPUDEPLOY_… variable, and an argument of the agents' tool; one without is the library's alone. Its type says
how a text is parsed (`Value`) and, in the words of `annotated_types`, which values an agent may give.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, fields, replace
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin

from annotated_types import Ge, Gt, Len

from tpudeploy import loading
from tpudeploy.operations import argument_types

REQUIRED: Any = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Agents:
    """What agents are told of an argument, or must give, otherwise than people."""

    help: str = ""
    _: KW_ONLY
    required: bool = False


@dataclass(frozen=True, slots=True)
class Arg:
    """What neither the name nor the type says. `agents=None`, or `command=False`: the argument is not theirs.

    `name` is the option's where it has another one, `variable` the word of its variable. What is resumed keeps its own
    value of an argument that is `resumed`.
    """

    help: str = ""
    _: KW_ONLY
    name: str = ""
    metavar: str = ""
    variable: str = ""
    positional: bool = False
    resumed: bool = False
    command: bool = True
    agents: Agents | None = Agents()


@dataclass(frozen=True, slots=True)
class Group:
    """Marks a parameter that is made of arguments: the fields of `cls`. It is None where a needed one has no value.

    The help of an argument that `defaults` has ends with it; agents get the value of `agents` without their own.
    """

    cls: type[Any]
    defaults: Any = None
    agents: Any = None


@dataclass(frozen=True, slots=True)
class Value:
    """How a type is written on the command line."""

    parse: Callable[[str], Any]
    metavar: str


@dataclass(frozen=True, slots=True)
class NamesProfiles:
    """Marks what names profiles: the command and the tool load them before the operation runs."""

    one: bool = False


Usd: TypeAlias = Annotated[float, Value(argument_types.amount, "USD"), Gt(0)]
Seconds: TypeAlias = Annotated[float, Value(argument_types.seconds, "TIME"), Gt(0)]
Count: TypeAlias = Annotated[int, Value(argument_types.count, "N"), Ge(1)]
Counts: TypeAlias = Annotated[Sequence[Annotated[int, Ge(1)]], Value(argument_types.counts, "N,N…"), Len(1, 20)]
AProfile: TypeAlias = Annotated[
    "loading.OneProfile",
    NamesProfiles(one=True),
    Arg(positional=True, agents=Agents("a profile's path inside the project")),
]
SomeProfiles: TypeAlias = Annotated[
    "loading.Profiles",
    NamesProfiles(),
    Arg(positional=True, agents=Agents("paths inside the project; none for everything in the states")),
]


@dataclass(frozen=True, slots=True)
class Declared:
    """One argument. `type` is without None and without metadata."""

    name: str
    type: Any
    arg: Arg
    metadata: tuple[Any, ...]
    default: Any
    agents_default: Any

    @property
    def option(self) -> str:
        return self.arg.name or self.name.replace("_", "-")

    @property
    def is_several(self) -> bool:
        return get_origin(self.type) in {tuple, list, Sequence}

    def of(self, cls: type[Any]) -> Any:
        """Return the metadata of a class, or None."""
        return next((each for each in self.metadata if isinstance(each, cls)), None)


def declared(run: Callable[..., Any]) -> Iterator[Declared]:
    """Yield the arguments of an operation. Raise NameError for one whose type is imported for type checkers alone."""
    for parameter in inspect.signature(run).parameters.values():
        type_, metadata = _parts(parameter.annotation, run.__globals__)
        group = next((each for each in metadata if isinstance(each, Group)), None)
        if group is None:
            yield from _argument(parameter.name, type_, metadata, parameter.default)
            continue
        names = vars(inspect.getmodule(group.cls))
        for each in fields(group.cls):
            default = None if each.default is MISSING else each.default
            for one in _argument(each.name, *_parts(each.type, names), default):
                shown, own = (getattr(values, one.name, None) for values in (group.defaults, group.agents))
                ending = "" if shown is None else f" (default {','.join(map(str, shown))})."
                help_ = f"{one.arg.help.removesuffix('.')}{ending}" if ending else one.arg.help
                yield replace(one, arg=replace(one.arg, help=help_), agents_default=own)


def _argument(name: str, type_: Any, metadata: tuple[Any, ...], default: Any) -> Iterator[Declared]:
    for arg in [each for each in metadata if isinstance(each, Arg)][-1:]:
        yield Declared(name, type_, arg, metadata, default, default)


def _parts(annotation: Any, names: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return a type without None and without metadata, and the metadata, inner ones first."""
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, names)  # noqa: S307 - an annotation of our own code
        except NameError:
            if "Arg(" in annotation or "Group(" in annotation:
                raise
            return Any, ()
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        type_, more = _parts(inner, names)
        return type_, (*more, *metadata)
    if get_origin(annotation) in {Union, UnionType}:
        kinds = [each for each in get_args(annotation) if each is not NoneType]
        return _parts(kinds[0], names) if len(kinds) == 1 else (annotation, ())
    return annotation, ()
