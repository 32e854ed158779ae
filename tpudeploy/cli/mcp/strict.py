"""Define a tool that rejects unknown arguments, which would otherwise be ignored silently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations
from pydantic import ValidationError

from tpudeploy.catalog import closest
from tpudeploy.cli.mcp.answering import error_result
from tpudeploy.domain.errors import UsageError


class StrictTool(Tool):
    """A tool of the SDK whose input schema is closed. The server checks too, because a client need not validate."""

    @classmethod
    def wrap(cls, function: Any, *, name: str, title: str, description: str, annotations: ToolAnnotations) -> Self:
        """Return the tool that calls `function`, whose signature says what it takes."""
        tool = cls.from_function(function, name=name, title=title, description=description, annotations=annotations)
        assert isinstance(tool, cls)
        tool.parameters = {**tool.parameters, "additionalProperties": False}
        return tool

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        """Call the function, or return an error that says which arguments are wrong and what to write instead."""
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
