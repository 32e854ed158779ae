"""Make an agents' tool from the row of an operation: its arguments, its answer, and its hints."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from inspect import Parameter, Signature, cleandoc
from typing import Annotated, Any, Literal, get_args

from annotated_types import MinLen
from mcp.types import ToolAnnotations
from pydantic import Field, create_model

from tpudeploy.domain.errors import UsageError
from tpudeploy.features.agents.answers import ToolDocument
from tpudeploy.features.agents.project import Opened
from tpudeploy.features.agents.session import AgentSession, Call, session
from tpudeploy.loading import is_name
from tpudeploy.operations.arguments import REQUIRED, Argument, NamesProfiles
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.results import Result

# What a client is told that a call can do. The hints are for clients; the server itself enforces the limits.
HINTS = {
    Access.OFFLINE: ToolAnnotations(read_only_hint=True, open_world_hint=False),
    Access.LOOK: ToolAnnotations(read_only_hint=True, open_world_hint=True),
    Access.CHANGE: ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=True
    ),
    Access.LOAD: ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True
    ),
    Access.END: ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
    ),
}
# Tools that take values on top of their profiles, with the word of the command line.
_TAKES_VALUES = frozenset({"plan", "render", "size", "tune_propose", "validate"})
_VALUES = "set"
_MOST_VALUES, _LONGEST_VALUE = 64, 4096
_SEVERAL_PROFILES = frozenset({NamesProfiles.SEVERAL, NamesProfiles.EACH_VALID})
_JSON_TYPES: dict[str, Any] = {"string": str, "number": float, "integer": int, "boolean": bool, "null": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call of a tool. `values` are its arguments with the profiles loaded, `paths` the profiles as it names them.

    `sets` are the values on top of the profiles.
    """

    session: AgentSession
    row: Operation
    opened: Opened
    paths: list[str]
    values: dict[str, Any]
    sets: tuple[str, ...] = ()

    def result(self) -> Any:
        return self.row.run(self.opened.workspace, **self.values)


Response = Callable[[ToolCall], dict[str, Any]]  # makes the document that answers a call


def respond_with_result(call: ToolCall) -> dict[str, Any]:
    document: dict[str, Any] = call.result().to_dict()
    return document


def tool_function(operation: Operation, respond: Response) -> Callable[..., dict[str, Any]]:
    """Return the function of a tool, whose arguments are those of the row: `respond` makes the document of a call."""
    offered = tuple(argument for argument in operation.arguments if argument.arg.agents is not None)

    def call(ctx: Call, **values: Any) -> dict[str, Any]:
        server_session = session(ctx)
        project = server_session.project
        opened: Opened | None = None
        paths: list[str] = []
        sets = tuple(values.pop(_VALUES, ()))
        with ExitStack() as closing:
            for argument in offered:
                value = values[argument.name]
                if value is None and is_only_profile(operation, argument):
                    value = project.only_profile()
                _check_name(argument, value)
                if argument.agents_profiles is NamesProfiles.ONE and value is not None:
                    one = closing.enter_context(project.opened(value, sets=sets))
                    values[argument.name] = one.profile
                    opened = opened or one  # the workspace is that of the first profile
                    paths.append(value)
                elif argument.agents_profiles in _SEVERAL_PROFILES:
                    paths += value
                    # Only a removal needs no profile: what to delete is in the state.
                    opening = project.opened(*value, takes_names=values.get("destroy") is True, sets=sets)
                    opened = closing.enter_context(opening)
                    values[argument.name] = (*opened.profiles, *opened.names)
            if opened is None:
                opened = closing.enter_context(project.opened(*paths[:1]))
            return respond(
                ToolCall(
                    session=server_session,
                    row=operation,
                    opened=opened,
                    paths=paths,
                    values=operation.grouped(values),
                    sets=sets,
                )
            )

    parameters = [Parameter("ctx", Parameter.POSITIONAL_OR_KEYWORD, annotation=Call)]
    parameters += [_parameter(argument, is_left_out=is_only_profile(operation, argument)) for argument in offered]
    parameters += [_VALUES_PARAMETER] if operation.tool in _TAKES_VALUES else []
    call.__name__ = operation.tool
    call.__doc__ = cleandoc(operation.run.__doc__ or "").partition("\n\n")[0]
    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what `inspect` looks for
    call.__annotations__ = {"ctx": Call}
    return call


_VALUES_PARAMETER = Parameter(
    _VALUES,
    Parameter.KEYWORD_ONLY,
    annotation=Annotated[
        tuple[Annotated[str, Field(max_length=_LONGEST_VALUE)], ...],
        Field(max_length=_MOST_VALUES, description="values on top of the profiles: serving.max_num_seqs=128"),
    ],
    default=(),
)


def is_only_profile(operation: Operation, argument: Argument) -> bool:
    """Return whether an agent may leave out an argument, because the project's only profile is meant.

    Only what reads may guess: what changes something is told which.
    """
    is_reading = operation.access in {Access.OFFLINE, Access.LOOK}
    return is_reading and argument.agents_profiles is NamesProfiles.ONE and _is_required(argument)


def _is_required(argument: Argument) -> bool:
    return argument.is_required or argument.agents.required


def _check_name(argument: Argument, value: object) -> None:
    """Raise `errors.UsageError` for a path where an agent may only name a deployment.

    The operation would load a path as the user's own profile, and quote it. Profiles of an agent are untrusted, and are
    loaded by the project alone.
    """
    is_name_only = argument.profiles is NamesProfiles.ONE_OR_NAME and argument.agents_profiles is None
    if is_name_only and value is not None and not is_name(str(value)):
        raise UsageError(f"`{value}` is not the name of a deployment.", hint="A name has neither a dot nor a slash.")


def _parameter(one: Argument, *, is_left_out: bool) -> Parameter:
    """Return the parameter of the tool's function, from which the SDK makes the input schema and checks values."""
    required = _is_required(one) and not is_left_out
    default = one.default if one.agents.default is None else one.agents.default
    if required or default is REQUIRED:
        default = REQUIRED if required else None
    kind: Any = _kind(one)
    if required and (kind is str or one.is_several or one.agents_profiles is not None):
        kind = Annotated[kind, MinLen(1)]
    for bound in one.agents_bounds:  # after it: they may ask for more
        kind = Annotated[kind, bound]
    kind = kind | None if default is None else kind
    kind = Annotated[kind, Field(description=one.agents_help)]
    return Parameter(one.name, Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _kind(one: Argument) -> Any:
    """Return the type of what an agent gives: profiles are named by their paths."""
    if one.agents_profiles is NamesProfiles.ONE or (one.profiles and one.agents_profiles is None):
        return str
    if one.agents_profiles is not None:
        return tuple[str, ...]
    if one.is_several:
        return tuple[get_args(one.type)[0], ...]  # type: ignore[misc]  # a type that is made at run time
    return Literal[one.choices] if one.choices else one.type


def answer_model(result: type[Result], *others: type[Result]) -> type[ToolDocument]:
    """Return the model of the document's top-level keys; `tpudeploy schema` describes what is inside them.

    The keys that one of the `others`, with which a tool may answer too, does not have may be missing.
    """
    properties = result.schema()["properties"]
    keys: dict[str, Any] = {}
    for key in result.promised_keys():
        is_always = all(key in other.promised_keys() for other in others)
        kind: Any = _python_type(properties[key])
        for other in others if is_always else ():
            kind |= _python_type(other.schema()["properties"][key])
        about = {"description": properties[key]["description"]} if "description" in properties[key] else {}
        keys[key] = (kind, Field(**about)) if is_always else (kind | None, Field(default=None, **about))
    return create_model(result.__name__, __base__=ToolDocument, **keys)


def _python_type(schema: dict[str, Any]) -> Any:  # noqa: PLR0911 - one return for each form of a schema
    """Return the type of a key. What is inside a list or an object is left open."""
    match schema:
        case _ if not schema:
            return Any  # as JSON Schema says: any value
        case {"const": value}:
            return Literal[value]
        case {"enum": values}:
            return Literal[tuple(values)]
        case {"anyOf": choices}:
            return functools.reduce(operator.or_, map(_python_type, choices))
        case {"type": list(kinds)}:
            return functools.reduce(operator.or_, (_JSON_TYPES.get(kind, dict[str, Any]) for kind in kinds))
        case {"type": "array", "items": items}:
            return list[_python_type(items)]  # type: ignore[misc]  # a type that is made at run time
        case {"type": "object", "additionalProperties": values}:
            return dict[str, _python_type(values)]  # type: ignore[misc]  # the same
        case {"type": kind}:
            return _JSON_TYPES.get(kind, dict[str, Any])
        case _:
            return dict[str, Any]
