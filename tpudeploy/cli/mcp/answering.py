"""What a tool answers: a document as `--json` prints it; what stopped it becomes an error that says what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Annotated, ParamSpec

from mcp.types import CallToolResult, TextContent

from tpudeploy.cli.documents import Document
from tpudeploy.cli.mcp.answers import Answer
from tpudeploy.domain.errors import ConfigError, TpudeployError
from tpudeploy.views import jsonl
from tpudeploy.views.excerpt import diagnostics
from tpudeploy.views.paint import Paint
from tpudeploy.views.words import plain

P = ParamSpec("P")


def answering(tool: Callable[P, Document], shape: type[Answer]) -> Callable[P, CallToolResult]:
    """The tool with its document in `shape`, as plain JSON, and with our errors as errors of a tool."""

    @wraps(tool)
    def answer(*args: P.args, **kwargs: P.kwargs) -> CallToolResult:
        try:
            text = json.dumps(tool(*args, **kwargs), ensure_ascii=False)
        except TpudeployError as error:
            return refusal(error)
        return CallToolResult(content=[TextContent(text=text)], structured_content=json.loads(text))

    # The SDK makes the schemas of a tool from its signature.
    told = Annotated[CallToolResult, shape]
    answer.__signature__ = signature(tool, eval_str=True).replace(return_annotation=told)  # type: ignore[attr-defined]  # what `inspect` looks for
    return answer


def refusal(error: TpudeployError) -> CallToolResult:
    """What, why and what to do; for programs the last line that `--json` prints of a command that was stopped."""
    told = [plain(f"Error: {error.message} [{error.code}]"), *map(plain, error.hint.splitlines())]
    if isinstance(error, ConfigError) and error.diagnostics:
        told = [diagnostics(error.diagnostics, Paint())]
    tree = json.loads(jsonl.error(error))
    return CallToolResult(content=[TextContent(text="\n".join(told))], structured_content=tree, is_error=True)
