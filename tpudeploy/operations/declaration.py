"""Define what a row of the operations is: its arguments, what it may do, and its result.

An operation is one module of this package. Its row, `OPERATION`, makes the method of `Workspace`, the command, its
`--json` document, the JSON Schema of that document, and the agents' tool:

    row                     library             command line              agents
    signature of `run`      checked             options, positionals      input schema
    results (classes)       returned            --json, JSON Schema       structured content, output schema
    result.as_text          str(result)         text on stdout            -
    result.exit_code        -                   exit code                 -
    access, title           -                   -                         hints, title
    approval                -                   question, option          -
    first line of `run`     help()              -                         description
    first line of module    -                   --help                    -

An argument is declared once, in that signature (arguments.py). Live tables and streams belong to the command line
(cli/commands), and how agents get a person's consent to their server (features/agents).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from functools import wraps
from inspect import signature
from os import PathLike
from typing import Any

from tpudeploy.domain.errors import UsageError
from tpudeploy.operations.arguments import Argument, arguments, groups


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
    `also` are arguments that come from another operation: those of what is made first, a plan or a proposal.
    """

    run: Callable[..., Any]
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
    also: tuple[Argument, ...] = ()

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return (*self.also, *arguments(self.run))

    def grouped(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of arguments as `run` takes them: those of a group in one object, or None without it.

        A group is absent where a field without a default has no value.
        """
        rest = dict(values)
        for name, group in groups(self.run).items():
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
        several = {each.name for each in arguments(self.run) if each.is_repeatable} & of_run.parameters.keys()
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
        objects = (values.get(name) for name in groups(self.run))
        flat = {
            **values,
            **{each.name: getattr(group, each.name) for group in objects if group for each in fields(group)},
        }
        for argument in self.arguments:
            if argument.arg.resumed and flat.get(argument.name):
                option = f"--{argument.option}"
                raise UsageError(
                    f"{option} cannot be changed when resuming.",
                    hint=f"Omit {option}, or start again without --resume.",
                )
