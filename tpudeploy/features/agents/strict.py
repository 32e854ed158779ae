"""Define a tool that rejects unknown arguments, and answers with its document or with an error that says what to do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, ParamSpec, Self

from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field, ValidationError

from tpudeploy.catalog import closest
from tpudeploy.cli.documents import Document
from tpudeploy.cli.error_report import bug
from tpudeploy.domain.errors import TpudeployError, UsageError
from tpudeploy.domain.excerpt import plain, visible_tree
from tpudeploy.features.agents.answers import ToolDocument
from tpudeploy.features.agents.shortening import (
    GREATEST_LIMIT,
    LEAST_LIMIT,
    MOST_BYTES,
    shortened,
    shortened_text,
)
from tpudeploy.views import jsonl

P = ParamSpec("P")
_LIMIT = "max_bytes"
_ASK = "For the whole, call `{name}` with the same arguments and max_bytes={{bytes}}."
_ASK_LATER = "The tool `operation` has it, with max_bytes={bytes}."
_LIMIT_PARAMETER = Parameter(
    _LIMIT,
    Parameter.KEYWORD_ONLY,
    annotation=Annotated[int, Field(ge=LEAST_LIMIT, le=GREATEST_LIMIT, description="of the answer")],
    default=MOST_BYTES,
)


def as_tool_result(
    tool: Callable[P, Document], shape: type[ToolDocument], *, is_reading: bool = True
) -> Callable[P, CallToolResult]:
    """Return the tool with its document as JSON of that shape, and with our errors as tool errors.

    An answer has at most `max_bytes`, which is an argument of a tool that only reads: another one is not called twice.
    """
    ask = _ASK.format(name=tool.__name__) if is_reading else _ASK_LATER

    @wraps(tool)
    def answer(*args: P.args, **kwargs: P.kwargs) -> CallToolResult:
        most = kwargs.pop(_LIMIT, MOST_BYTES)
        assert isinstance(most, int)
        try:
            tree = json.loads(json.dumps(tool(*args, **kwargs)))
        except TpudeployError as error:
            return error_result(error, most=most, ask=ask)
        except Exception:  # noqa: BLE001 - the boundary of a call: whatever comes here is our bug, and is reported
            return error_result(bug())
        return tool_result(tree, most=most, ask=ask)

    # The SDK makes the schemas of a tool from its signature.
    own = signature(tool, eval_str=True)
    parameters = [*own.parameters.values(), *([_LIMIT_PARAMETER] if is_reading else [])]
    answer.__signature__ = own.replace(  # type: ignore[attr-defined]  # what `inspect` looks for
        parameters=parameters, return_annotation=Annotated[CallToolResult, shape]
    )
    return answer


def error_result(error: TpudeployError, *, most: int = MOST_BYTES, ask: str = "") -> CallToolResult:
    """Return an error as text, and as the document that `--json` prints for it."""
    return tool_result(json.loads(jsonl.error(error)), str(error), is_error=True, most=most, ask=ask)


def tool_result(
    tree: Document, text: str | None = None, *, is_error: bool = False, most: int = MOST_BYTES, ask: str = ""
) -> CallToolResult:
    """Return what a model and its client get to read, without characters that hide or reorder other text.

    `text` is the document itself where it is None. Neither has more than `most` bytes; `ask` says how to get the whole.
    Every answer of a tool is made here.
    """
    safe = shortened(visible_tree(tree), most, ask)
    content = json.dumps(safe, ensure_ascii=False) if text is None else shortened_text(plain(text), most)
    return CallToolResult(content=[TextContent(text=content)], structured_content=safe, is_error=is_error)


class StrictTool(Tool):
    """A tool of the SDK whose input schema is closed. The server checks too, because a client need not validate.

    `values` are arguments that a call need not give.
    """

    values: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def wrap(cls, function: Any, *, name: str, title: str, description: str, annotations: ToolAnnotations) -> Self:
        """Return the tool that calls `function`, whose signature says what it takes."""
        tool = cls.from_function(function, name=name, title=title, description=description, annotations=annotations)
        assert isinstance(tool, cls)
        tool.parameters = {**tool.parameters, "additionalProperties": False}
        return tool

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        """Call the function, or return an error that says which arguments are wrong and what to write instead."""
        arguments = {**self.values, **arguments}
        error = self._unknown_argument(arguments) or self._invalid_argument(arguments)
        if error is not None:
            return error_result(error)
        return await super().run(arguments, context, convert_result)

    def _unknown_argument(self, arguments: Mapping[str, Any]) -> UsageError | None:
        properties = self.parameters.get("properties", {})
        unknown = [name for name in arguments if name not in properties]
        if not unknown:
            return None
        names = ", ".join(f"`{name}`" for name in unknown)
        hints = [_hint(name, [other for other in properties if other not in arguments]) for name in unknown]
        takes = ", ".join(f"`{name}`" for name in properties) or "no arguments"
        return UsageError(
            f"The tool `{self.name}` has no argument {names}. Nothing was done.",
            hint="\n".join([*filter(None, hints), f"It takes {takes}."]),
        )

    def _invalid_argument(self, arguments: dict[str, Any]) -> UsageError | None:
        try:
            self.fn_metadata.validate_arguments(arguments)
        except ValidationError as invalid:
            problems = [f"`{'.'.join(map(str, each['loc']))}`: {each['msg']}." for each in invalid.errors()]
            return UsageError(
                f"The arguments of the tool `{self.name}` are not valid. Nothing was done.", hint="\n".join(problems)
            )
        return None


def _hint(name: str, names: list[str]) -> str:
    near = closest(name, names)
    return f"Did you mean `{near}` instead of `{name}`?" if near else ""
