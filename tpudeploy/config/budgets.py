"""Parse budgets.yaml, the budgets of a team beside its states: a page of YAML, read as strictly as a profile."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.config import codes
from tpudeploy.config.diagnose import did_you_mean, problem, quoted
from tpudeploy.config.document import read_mapping, unusable
from tpudeploy.config.nodes import MapNode, Node, Path, ScalarNode
from tpudeploy.domain.cost_budget import CostBudget, TeamBudgets
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.names import PROJECT

_LIMITS = ("day", "month")
_PROJECTS = "projects"
_FORM = "{day: 50, month: 1000, projects: {my-project: {day: 20}}}"


def parse_budgets(name: str, content: bytes) -> TeamBudgets:
    """Return the budgets of a file. Raise ConfigError with every problem in it, each with its place."""
    _, root = read_mapping(name, content, noun="budgets", example=_FORM)
    problems = [*_of_limits(root, (), (*_LIMITS, _PROJECTS)), *_of_projects(root)]
    if problems:
        raise unusable(name, problems)
    entry = root.entries.get(_PROJECTS)
    projects = entry.value.entries if entry is not None and isinstance(entry.value, MapNode) else {}
    return TeamBudgets(together=_budget(root), projects={key: _budget(each.value) for key, each in projects.items()})


def _of_projects(root: MapNode) -> Iterator[Diagnostic]:
    entry = root.entries.get(_PROJECTS)
    if entry is None:
        return
    if not isinstance(entry.value, MapNode):
        hint = "e.g. projects: {my-project: {day: 20}}"
        yield problem(codes.WRONG_TYPE, "Expected a mapping", entry.value.at, path=(_PROJECTS,), hint=hint)
        return
    for key, each in entry.value.entries.items():
        if not PROJECT.fullmatch(key):
            yield problem(codes.WRONG_FORM, f"{quoted(key)} is not a project id", each.key, hint="e.g. my-project")
        elif isinstance(each.value, MapNode):
            yield from _of_limits(each.value, (_PROJECTS, key), _LIMITS)
        else:
            hint = f"e.g. {key}: {{day: 20}}"
            yield problem(codes.WRONG_TYPE, "Expected a mapping", each.value.at, path=(_PROJECTS, key), hint=hint)


def _of_limits(node: MapNode, path: Path, keys: tuple[str, ...]) -> Iterator[Diagnostic]:
    for key, entry in node.entries.items():
        if key not in keys:
            hint = did_you_mean(key, keys)
            yield problem(codes.UNKNOWN_KEY, f"Unknown key {quoted(key)}", entry.key, path=(*path, key), hint=hint)
        elif key in _LIMITS and not _is_amount(entry.value):
            hint = f"{key}: 20, in USD"
            message = "Must be a number that is at least 0"
            yield problem(codes.OUT_OF_RANGE, message, entry.value.at, path=(*path, key), hint=hint)


def _is_amount(node: Node) -> bool:
    value = node.value if isinstance(node, ScalarNode) else None
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _budget(node: Node) -> CostBudget:
    return CostBudget(usd_per_day=_limit(node, "day"), usd_per_month=_limit(node, "month"))


def _limit(node: Node, key: str) -> float | None:
    entry = node.entries.get(key) if isinstance(node, MapNode) else None
    value = entry.value.value if entry is not None and isinstance(entry.value, ScalarNode) else None
    return float(value) if isinstance(value, int | float) else None
