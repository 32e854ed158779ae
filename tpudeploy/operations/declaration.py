"""Define what a row of the operations is: its arguments, what it may do, and its result.

An operation is one module of this package. Its row, `OPERATION`, makes the method of `Workspace`, the command, its
`--json` document, the JSON Schema of that document, and the agents' tool:

    row                     library             command line              agents
    arguments               checked signature   options, positionals      input schema
    results (classes)       returned            --json, JSON Schema       structured content, output schema
    result.as_text          str(result)         text on stdout            -
    result.exit_code        -                   exit code                 -
    access, title           -                   -                         hints, title
    approval                -                   question, option          -
    first line of `run`     help()              -                         description
    first line of module    -                   --help                    -

Live tables and streams belong to the command line (cli/commands), and how agents get a person's consent to their server
(features/agents).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from functools import wraps
from inspect import signature
from os import PathLike
from typing import Any

from tpudeploy.domain.errors import UsageError


class ArgumentKind(StrEnum):
    """The type of an argument's value. `declared_options` and `input_schema` translate each one."""

    TEXT = "text"
    FLAG = "flag"
    SWITCH = "switch"  # on by default
    PLAN = "plan"  # profiles or a saved plan on the command line, the id of a plan for agents
    COUNT = "count"  # a positive integer
    COUNTS = "counts"  # some of them
    INDEX = "index"  # an integer from 0 on
    DURATION = "duration"  # seconds
    SECONDS = "seconds"  # also as milliseconds
    LATENCY = "latency"  # seconds, also without a unit
    AMOUNT = "amount"  # a positive number
    FILE = "file"  # a path, which on the command line starts from --chdir
    TEXTS = "texts"  # any number of texts
    PROFILE = "profile"
    PROFILES = "profiles"
    VALID_PROFILES = "valid profiles"  # an invalid one does not stop the others
    PROFILE_FILES = "profile files"  # any of them may be invalid; the operation reads them
    PROFILE_OR_NAME = "profile or name"  # of a deployment


PROFILE_KINDS = frozenset(
    {
        ArgumentKind.PROFILE,
        ArgumentKind.PROFILES,
        ArgumentKind.VALID_PROFILES,
        ArgumentKind.PROFILE_FILES,
        ArgumentKind.PROFILE_OR_NAME,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandForm:
    """How the command line takes an argument, where its name and kind don't say it.

    `option` is the option's name. `variable` names the environment variable where another command's option of this name
    takes another kind of value: "recommend-context" is TPUDEPLOY_RECOMMEND_CONTEXT. An argument that `is_optional` is
    required but on the command line, which has other forms of the command.
    """

    option: str = ""
    variable: str = ""
    is_optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentForm:
    """How agents are given an argument: in other words than `help`, of another kind, with another default.

    One that `is_required` is required of them, though not of people.
    """

    about: str = ""
    kind: ArgumentKind | None = None
    default: Any = None
    is_required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of an operation. `name` is what the library and agents call it.

    A `positional` argument has no name on the command line. `metavar` stands for its value in `help`. `least` and
    `most` bound a number, or how many texts there are. What is resumed has its own value of an argument that
    `is_resumed`. One without a form for the `command` line, or for `agents`, is not theirs.
    """

    name: str
    help: str = ""
    metavar: str = ""
    kind: ArgumentKind = ArgumentKind.TEXT
    positional: bool = False
    is_required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    least: int = 1
    most: int | None = None
    is_resumed: bool = False
    command: CommandForm | None = CommandForm()
    agents: AgentForm | None = AgentForm()
    declared: Any = None  # where it was read from a signature

    @property
    def is_required_option(self) -> bool:
        return self.is_required and not (self.command is not None and self.command.is_optional)

    @property
    def option_name(self) -> str:
        own = "" if self.command is None else self.command.option
        return own or self.name.replace("_", "-")

    @property
    def agents_kind(self) -> ArgumentKind:
        own = None if self.agents is None else self.agents.kind
        return own or self.kind

    @property
    def agents_default(self) -> Any:
        own = None if self.agents is None else self.agents.default
        return self.default if own is None else own

    @property
    def agents_help(self) -> str:
        own = "" if self.agents is None else self.agents.about
        return own or self.help


def profile(*, is_optional_option: bool = False) -> Argument:
    """Return the argument that names one profile."""
    return Argument(
        name="profile",
        kind=ArgumentKind.PROFILE,
        is_required=True,
        command=CommandForm(is_optional=is_optional_option),
        agents=AgentForm(about="a profile's path inside the project"),
    )


def some_profiles(agents: str = "paths inside the project; none for everything in the states") -> Argument:
    """Return the argument that names any number of profiles, of which an invalid one stops the operation."""
    return Argument(name="profiles", kind=ArgumentKind.PROFILES, default=(), agents=AgentForm(about=agents))


def valid_profiles(
    *, is_required: bool, agents: str = "paths inside the project: profiles, or folders of them"
) -> Argument:
    """Return the argument that names profiles, of which an invalid one is reported and does not stop the others."""
    return Argument(
        name="profiles",
        kind=ArgumentKind.VALID_PROFILES,
        is_required=is_required,
        default=None if is_required else (),
        agents=AgentForm(about=agents),
    )


def flag(name: str, help_: str, *, for_agents: bool = True) -> Argument:
    """Return a switch that is off by default."""
    agents = AgentForm() if for_agents else None
    return Argument(name=name, help=help_, kind=ArgumentKind.FLAG, default=False, agents=agents)


class Access(StrEnum):
    """What an operation reaches. Agents see it as hints; only the first two are offered by a server that only reads."""

    OFFLINE = "offline"
    LOOK = "look"  # reads the cloud, a state or a server
    CHANGE = "change"
    LOAD = "load"  # puts load on a server
    END = "end"  # may restart or delete


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a person is asked about: what an operation would do, and the values that it runs with after a yes."""

    result: Any = None
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalForm:
    """What the command line asks a person before the operation runs; the option of the name `option` skips it.

    `otherwise` is the hint where there is no terminal to ask at. `preview` takes what `run` takes, and changes nothing.
    """

    question: str
    otherwise: str
    option: str = "auto-approve"
    preview: Callable[..., Preview] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A row: see the head of this module. `run` takes the workspace and the arguments by their names.

    `results` are the classes of what it returns, that of the agents' tool first. `tool` is the name of that tool, ""
    for none. `options` are what the command line adds of its own (cli/options.py): where states are, locks,
    parallelism. With `takes_invalid`, `run` gets the error of each invalid file too, as `invalid`; with `takes_events`,
    a listener as `on_event`; with `takes_pieces`, one as `on_piece`, for a text that is printed while it arrives.
    `groups` are parameters that are made of several arguments: classes whose fields have the names of these.
    """

    run: Callable[..., Any]
    arguments: tuple[Argument, ...] = ()
    results: tuple[type[Any], ...] = ()
    access: Access = Access.LOOK
    title: str = ""
    tool: str = ""
    options: tuple[str, ...] = ("backend",)
    takes_invalid: bool = False
    takes_events: bool = False
    takes_pieces: bool = False
    approval: ApprovalForm | None = None
    needs_workspace: bool = True
    groups: Mapping[str, type[Any]] = field(default_factory=dict)

    def grouped(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of arguments as `run` takes them: those of a group in one object, or None without it.

        A group is absent where a field without a default has no value.
        """
        rest = dict(values)
        for name, group in self.groups.items():
            own = {each.name: rest.pop(each.name) for each in fields(group) if each.name in rest}
            needed = (each.name for each in fields(group) if each.default is MISSING)
            rest[name] = None if any(own.get(each) is None for each in needed) else group(**own)
        return rest

    def argument(self, name: str) -> Argument:
        return next(argument for argument in self.arguments if argument.name == name)

    @property
    def method(self) -> Callable[..., Any]:
        """Return `run` as a program calls it: with one text or path where several are taken, which is not split.

        It raises `errors.UsageError` for an argument that is set although what is resumed has its own.
        """
        of_run = signature(self.run)
        texts = (argument.name for argument in self.arguments if argument.kind is ArgumentKind.TEXTS)
        several = [name for name in texts if name in of_run.parameters]
        if not several and "resume" not in of_run.parameters:
            return self.run

        @wraps(self.run)
        def method(*args: Any, **values: Any) -> Any:
            bound = of_run.bind(*args, **values)
            for name in several:
                if isinstance(bound.arguments.get(name), str | PathLike):
                    bound.arguments[name] = (bound.arguments[name],)
            if bound.arguments.get("resume") is not None:
                self._check_resumed(bound.arguments)
            return self.run(*bound.args, **bound.kwargs)

        return method

    def _check_resumed(self, values: Mapping[str, Any]) -> None:
        groups = (values.get(name) for name in self.groups)
        flat = {
            **values,
            **{each.name: getattr(group, each.name) for group in groups if group for each in fields(group)},
        }
        for argument in self.arguments:
            if argument.is_resumed and flat.get(argument.name):
                option = f"--{argument.option_name}"
                raise UsageError(
                    f"{option} cannot be changed when resuming.",
                    hint=f"Omit {option}, or start again without --resume.",
                )
