"""Turn a tool's document into its answer, and our errors into tool errors that say what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Annotated, ParamSpec

from mcp.types import CallToolResult, TextContent

from tpudeploy.cli.documents import Document
from tpudeploy.cli.mcp.answers import Answer
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.views import jsonl

P = ParamSpec("P")


def as_tool_result(tool: Callable[P, Document], shape: type[Answer]) -> Callable[P, CallToolResult]:
    """Return the tool with its document as JSON of that shape, and with our errors as tool errors."""

    @wraps(tool)
    def answer(*args: P.args, **kwargs: P.kwargs) -> CallToolResult:
        try:
            text = json.dumps(tool(*args, **kwargs), ensure_ascii=False)
        except TpudeployError as error:
            return error_result(error)
        return CallToolResult(content=[TextContent(text=text)], structured_content=json.loads(text))

    # The SDK makes the schemas of a tool from its signature.
    annotation = Annotated[CallToolResult, shape]
    answer.__signature__ = signature(tool, eval_str=True).replace(return_annotation=annotation)  # type: ignore[attr-defined]  # what `inspect` looks for
    return answer


def error_result(error: TpudeployError) -> CallToolResult:
    """Return an error as text, and as the document that `--json` prints for it."""
    tree = json.loads(jsonl.error(error))
    return CallToolResult(content=[TextContent(text=str(error))], structured_content=tree, is_error=True)
