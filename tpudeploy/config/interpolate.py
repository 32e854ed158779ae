"""`${env:NAME}` and `${env:NAME:-default}` in values; `$$` is a dollar."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from tpudeploy.config import codes, core_scalars
from tpudeploy.config.diagnose import did_you_mean, problem, quoted
from tpudeploy.config.nodes import Entry, ListNode, MapNode, Node, Path, ScalarNode, with_entries, with_items
from tpudeploy.domain.diagnostics import Diagnostic, Location

_DOLLAR = re.compile(r"\$\$|\$\{(?P<inside>[^}]*)(?P<end>\}?)")
_ENV = re.compile(r"env:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<fallback>:-(?P<default>.*))?", re.DOTALL)


class Interpolation:
    """One pass over a tree; `problems` gathers what could not be filled in."""

    def __init__(self, environment: Mapping[str, str], problems: list[Diagnostic]) -> None:
        self.environment = environment
        self.problems = problems

    def tree(self, root: MapNode, path: Path = ()) -> MapNode:
        for key, entry in root.entries.items():
            if "${" in key:
                self._note(
                    codes.INTERPOLATION_IN_KEY,
                    f"Interpolation in the key {quoted(key)}",
                    entry.key,
                    (*path, key),
                    "values may hold ${env:NAME}, keys may not",
                )
        return with_entries(root, {key: self._entry(entry, (*path, key)) for key, entry in root.entries.items()})

    def _entry(self, entry: Entry, path: Path) -> Entry:
        """Itself where nothing was filled in."""
        value = self.node(entry.value, path)
        return entry if value is entry.value else replace(entry, value=value)

    def node(self, node: Node, path: Path) -> Node:
        match node:
            case MapNode():
                return self.tree(node, path)
            case ListNode():
                return with_items(node, tuple(self.node(item, (*path, i)) for i, item in enumerate(node.items)))
            case ScalarNode():
                return self._scalar(node, path)

    def _scalar(self, node: ScalarNode, path: Path) -> ScalarNode:
        if not isinstance(node.value, str) or "$" not in node.value:
            return node
        text = _DOLLAR.sub(lambda match: self._filled(match, node.at, path), node.value)
        return replace(node, value=self._value(text, node, path), text=text)

    def _value(self, text: str, node: ScalarNode, path: Path) -> bool | int | float | str:
        """What was written without quotes is read as if the text had stood there, but is never null."""
        if not core_scalars.is_clean(text):
            self._note(codes.CONTROL_CHARACTER, "The variable's value is not text", node.at, path, "leave it out")
        if not node.plain:
            return text
        try:
            value = core_scalars.resolve(text)
        except core_scalars.NotFinite:
            self._note(codes.NOT_FINITE, "The variable's value is not a finite number", node.at, path, "quote it")
            return text
        return text if value is None else value

    def _note(self, code: str, message: str, at: Location, path: Path, hint: str) -> None:
        self.problems.append(problem(code, message, at, path=path, hint=hint))

    def _filled(self, match: re.Match[str], at: Location, path: Path) -> str:
        if match[0] == "$$":
            return "$"
        known = _ENV.fullmatch(match["inside"]) if match["end"] else None
        if known is None:
            hint = "write ${env:NAME} or ${env:NAME:-default}; a dollar before a brace is $$"
            self._note(codes.INTERPOLATION_FORM, f"Unknown interpolation {quoted(match[0])}", at, path, hint)
            return ""
        # As in a shell, `:-` fills in for an empty variable too.
        found = self.environment.get(known["name"])
        if known["fallback"]:
            return found or known["default"]
        if found is None:
            self._unset(known["name"], at, path)
        return found or ""

    def _unset(self, name: str, at: Location, path: Path) -> None:
        hint = did_you_mean(name, self.environment) or f"set {name}, or write ${{env:{name}:-default}}"
        self._note(codes.UNSET_VARIABLE, f"Environment variable {name} is not set", at, path, hint)
