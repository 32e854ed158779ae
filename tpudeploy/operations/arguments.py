"""Declare the arguments of an operation once: in the signature of its function.

    def greet(
        workspace: Workspace,
        name: Annotated[str, Arg("The name.", positional=True)],
        *,
        times: Annotated[Count, Arg("How often to say it.")] = 1,
    ) -> Greeting:

The signature is the library's method, which type checkers read. A parameter with an `Arg` is an option of the command,
with its TPUDEPLOY_… variable, and an argument of the agents' tool; one without is the library's alone. Its type says
how a text is parsed (`Value`) and, in the words of `annotated_types`, which values an agent may give. Of a union, the
command and agents give the first: a `Path | str` is a path, which on the command line starts from --chdir.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, fields, replace
from enum import Enum, auto
from functools import cache
from inspect import Parameter, signature, unwrap
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

from annotated_types import Ge, Gt, Len

from tpudeploy.loading import OneProfile, Profiles
from tpudeploy.operations import argument_types

REQUIRED: Any = Parameter.empty
_T = TypeVar("_T")


class NamesProfiles(Enum):
    """Marks what names profiles: the command and the tool load them before the operation runs."""

    ONE = auto()
    SEVERAL = auto()
    EACH_VALID = auto()  # an invalid one does not stop the others
    FILES = auto()  # any of them may be invalid; the operation reads them
    ONE_OR_NAME = auto()  # of a deployment; agents give a name, unless their form says otherwise
    OR_PLAN = auto()  # profiles, or a saved plan


@dataclass(frozen=True, slots=True)
class Agents:
    """What agents are told of an argument, or must give, otherwise than people."""

    help: str = ""
    _: KW_ONLY
    required: bool = False
    default: Any = None
    profiles: NamesProfiles | None = None


@dataclass(frozen=True, slots=True)
class Arg:
    """What neither the name nor the type says. `agents=None`, or `command=False`: the argument is not theirs.

    `name` is the option's where it has another one. `variable` names the environment variable where another command's
    option of this name takes another kind of value: "recommend-context" is TPUDEPLOY_RECOMMEND_CONTEXT. `choices` are
    all there are, where they are not in the type. What is resumed keeps its own value of an argument that is `resumed`.
    """

    help: str = ""
    _: KW_ONLY
    name: str = ""
    metavar: str = ""
    variable: str = ""
    choices: tuple[str, ...] = ()
    positional: bool = False
    resumed: bool = False
    command: bool = True
    agents: Agents | None = Agents()


@dataclass(frozen=True, slots=True)
class ArgumentGroup:
    """Marks a parameter that is made of arguments: the fields of `cls`. It is None where a needed one has no value.

    The help of an argument that `defaults` has ends with it; agents get the value of `agents` without their own. With
    `resumed`, all of them are.
    """

    cls: type[Any]
    defaults: Any = None
    agents: Any = None
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Value:
    """How a type is written on the command line."""

    parse: Callable[[str], Any]
    metavar: str


Usd: TypeAlias = Annotated[float, Value(argument_types.amount, "USD"), Gt(0)]
TimeLimit: TypeAlias = Annotated[float, Value(argument_types.duration, "TIME"), Gt(0)]
Seconds: TypeAlias = Annotated[float, Value(argument_types.seconds, "TIME"), Gt(0)]
Latency: TypeAlias = Annotated[float, Value(argument_types.latency, "SECONDS"), Gt(0)]
Index: TypeAlias = Annotated[int, Value(argument_types.index, "N"), Ge(0)]
Count: TypeAlias = Annotated[int, Value(argument_types.count, "N"), Ge(1)]
Counts: TypeAlias = Annotated[Sequence[Annotated[int, Ge(1)]], Value(argument_types.counts, "N,N…"), Len(1, 20)]
Refresh: TypeAlias = Annotated[bool, Arg("Read hardware and prices again; they are cached for a day.", agents=None)]

_PATHS = Arg(agents=Agents("paths inside the project: profiles, or folders of them"))
AProfile: TypeAlias = Annotated[
    OneProfile, NamesProfiles.ONE, Arg(agents=Agents("a profile's path inside the project", required=True))
]
ProfileOrName: TypeAlias = Annotated[OneProfile, NamesProfiles.ONE_OR_NAME]
SomeProfiles: TypeAlias = Annotated[Profiles, NamesProfiles.SEVERAL, _PATHS]
ValidProfiles: TypeAlias = Annotated[Profiles, NamesProfiles.EACH_VALID, _PATHS]
ProfileFiles: TypeAlias = Annotated[Profiles, NamesProfiles.FILES, _PATHS]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument. `type` is without None and without metadata."""

    name: str
    type: Any
    arg: Arg
    metadata: tuple[Any, ...]
    default: Any

    @property
    def option(self) -> str:
        return self.arg.name or self.name.replace("_", "-")

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED

    @property
    def is_several(self) -> bool:
        return get_origin(self.type) in {tuple, list, Sequence, Iterable}

    @property
    def is_repeatable(self) -> bool:
        """Return whether it is any number of texts, each written by itself."""
        return self.is_several and self.value is None

    @property
    def is_positional(self) -> bool:
        return self.arg.positional or self.profiles is not None

    @property
    def is_file(self) -> bool:
        return self.type is Path

    @property
    def choices(self) -> tuple[str, ...]:
        return get_args(self.type) if get_origin(self.type) is Literal else self.arg.choices

    @property
    def profiles(self) -> NamesProfiles | None:
        return self.find(NamesProfiles)

    @property
    def value(self) -> Value | None:
        return self.find(Value)

    def find(self, cls: type[_T]) -> _T | None:
        return next((each for each in self.metadata if isinstance(each, cls)), None)

    @property
    def agents(self) -> Agents:
        """Return what agents are told. Only for an argument that is theirs."""
        assert self.arg.agents is not None
        return self.arg.agents

    @property
    def agents_help(self) -> str:
        return self.agents.help or self.arg.help

    @property
    def agents_profiles(self) -> NamesProfiles | None:
        """Return which profiles an agent names: never one or a name, as people do."""
        which = self.agents.profiles or self.profiles
        return None if which is NamesProfiles.ONE_OR_NAME else which

    @property
    def agents_bounds(self) -> tuple[Any, ...]:
        """Return what pydantic reads of the metadata."""
        return tuple(each for each in self.metadata if not isinstance(each, Arg | Value | NamesProfiles))


@cache
def arguments(run: Callable[..., Any]) -> tuple[Argument, ...]:
    """Return the arguments of an operation. Raise NameError for a type that is imported for type checkers alone."""
    return tuple(_arguments(run))


def pick(run: Callable[..., Any], *names: str) -> tuple[Argument, ...]:
    """Return these arguments of an operation."""
    return tuple(each for each in arguments(run) if each.name in names)


@cache
def groups(run: Callable[..., Any]) -> Mapping[str, type[Any]]:
    """Return the parameters of an operation that are made of arguments: classes, whose fields have their names."""
    parts = (
        (each.name, _parts(each.annotation, unwrap(run).__globals__)) for each in signature(run).parameters.values()
    )
    return {name: type_ for name, (type_, metadata) in parts if _group(metadata) is not None}


def _arguments(run: Callable[..., Any]) -> Iterator[Argument]:
    for parameter in signature(run).parameters.values():
        type_, metadata = _parts(parameter.annotation, unwrap(run).__globals__)
        group = _group(metadata)
        if group is None:
            yield from _argument(parameter.name, type_, metadata, parameter.default)
            continue
        names = vars(sys.modules[group.cls.__module__])
        for each in fields(group.cls):
            default = REQUIRED if each.default is MISSING else each.default
            for one in _argument(each.name, *_parts(each.type, names), default):
                yield replace(one, arg=_in_group(one, group))


def _group(metadata: tuple[Any, ...]) -> ArgumentGroup | None:
    return next((each for each in metadata if isinstance(each, ArgumentGroup)), None)


def _in_group(one: Argument, group: ArgumentGroup) -> Arg:
    people, own = (getattr(values, one.name, None) for values in (group.defaults, group.agents))
    ending = "" if people is None else f" (default {','.join(map(str, people))})."
    help_ = f"{one.arg.help.removesuffix('.')}{ending}" if ending else one.arg.help
    agents = None if one.arg.agents is None else replace(one.arg.agents, default=own)
    return replace(one.arg, help=help_, agents=agents, resumed=one.arg.resumed or group.resumed)


def _argument(name: str, type_: Any, metadata: tuple[Any, ...], default: Any) -> Iterator[Argument]:
    for arg in [each for each in metadata if isinstance(each, Arg)][-1:]:
        yield Argument(name, type_, arg, metadata, default)


def _parts(annotation: Any, names: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return a type without None and without metadata, and the metadata, inner ones first; of a union, the first's."""
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, names)  # noqa: S307 - an annotation of our own code
        except NameError:
            if "Arg(" in annotation or "ArgumentGroup(" in annotation:
                raise
            return Any, ()
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        type_, more = _parts(inner, names)
        return type_, (*more, *metadata)
    if get_origin(annotation) in {Union, UnionType}:
        return _parts(next(each for each in get_args(annotation) if each is not NoneType), names)
    return annotation, ()
