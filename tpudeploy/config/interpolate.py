"""Fill in `${env:NAME}` and `${env:NAME:-default}` in values; `$$` is a dollar."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tpudeploy.config import codes, core_scalars
from tpudeploy.config.diagnose import did_you_mean, problem, quoted
from tpudeploy.config.nodes import Entry, ListNode, MapNode, Node, Path, ScalarNode, with_entries, with_items
from tpudeploy.config.tokens import tokens_in
from tpudeploy.config.trust import TRUSTED, Trust
from tpudeploy.domain.diagnostics import Diagnostic, Location

_DOLLAR = re.compile(r"\$\$|\$\{(?P<inside>[^}]*)(?P<end>\}?)")
_ENV = re.compile(r"env:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<fallback>:-(?P<default>.*))?", re.DOTALL)


class Interpolation:
    """One pass over a tree. `problems` collects what cannot be filled in, and what `trust` does not allow to read."""

    def __init__(self, environment: Mapping[str, str], problems: list[Diagnostic], trust: Trust = TRUSTED) -> None:
        self.environment = environment
        self.problems = problems
        self.trust = trust

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
        """Return the entry itself if nothing was filled in."""
        value = self.node(entry.value, path)
        return entry if value is entry.value else entry._replace(value=value)

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
        text = _DOLLAR.sub(lambda match: self._replacement(match, node.at, path), node.value)
        reference = node.value if self._reads_environment(node.value) else None
        return node._replace(value=self._value(text, node, path), text=text, reference=reference)

    @staticmethod
    def _reads_environment(text: str) -> bool:
        return any(match["end"] and _ENV.fullmatch(match["inside"]) for match in _DOLLAR.finditer(text))

    def _value(self, text: str, node: ScalarNode, path: Path) -> bool | int | float | str:
        """Return the value of a filled-in text: without quotes it is read as YAML, but it is never null."""
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

    def _replacement(self, match: re.Match[str], at: Location, path: Path) -> str:
        if match[0] == "$$":
            return "$"
        variable = _ENV.fullmatch(match["inside"]) if match["end"] else None
        if variable is None:
            hint = "write ${env:NAME} or ${env:NAME:-default}; a dollar before a brace is $$"
            self._note(codes.INTERPOLATION_FORM, f"Unknown interpolation {quoted(match[0])}", at, path, hint)
            return ""
        name = variable["name"]
        # A default must not hide the refusal, or the same profile would mean different things on different machines.
        # The message must not depend on the variable, not even on whether it is set.
        if not self.trust.may_read(name):
            self._refuse(name, at, path)
            return ""
        # As in a shell, `:-` applies to an empty variable too.
        value = self.environment.get(name)
        if variable["fallback"]:
            return self._safe(value, at, path) or variable["default"]
        if value is None:
            self._unset(name, at, path)
        return self._safe(value, at, path)

    def _safe(self, value: str | None, at: Location, path: Path) -> str:
        """Return the value, or "" with a problem if it contains a credential: longer text would hide it."""
        for kind, _, _ in tokens_in(value or "", anywhere=True):
            hint = "keep it in Secret Manager and name it under `secrets`"
            self._note(codes.CREDENTIAL, f"The variable's value looks like {kind}", at, path, hint)
            return ""
        return value or ""

    def _refuse(self, name: str, at: Location, path: Path) -> None:
        if self.trust.is_trusted:
            message = f"Environment variable {name} looks like a secret, and its value would be written out"
            hint = "keep it in Secret Manager and name it under `secrets`"
            hint += f"; if it is not a secret, allow it: --allow-env {name}"
            self._note(codes.SECRET_VARIABLE, message, at, path, hint)
            return
        message = f"This profile is untrusted and may not read the environment variable {name}"
        hint = (
            f"write the value itself; the operator of tpudeploy can allow it: --allow-env {name}, or "
            "TPUDEPLOY_ALLOW_ENV"
        )
        self._note(codes.VARIABLE_NOT_ALLOWED, message, at, path, hint)

    def _unset(self, name: str, at: Location, path: Path) -> None:
        readable = [variable for variable in self.environment if self.trust.may_read(variable)]
        hint = did_you_mean(name, readable) or f"set {name}, or write ${{env:{name}:-default}}"
        self._note(codes.UNSET_VARIABLE, f"Environment variable {name} is not set", at, path, hint)
