"""The overlay of a tuning: a profile with only what differs, and the evidence for it as comments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from tpudeploy.features.tune.search import ClaimFinding
from tpudeploy.features.tune.tuning import Tuning
from tpudeploy.features.tune.view import claim_text, load_text
from tpudeploy.text.words import EMULATED

_Tree: TypeAlias = "dict[str, _Tree | str]"
_CLAIMED = (ClaimFinding.BETTER, ClaimFinding.MEETS)


def overlay(tuning: Tuning) -> str:
    """Return the YAML of the settings that were shown to be better; comments alone where none were."""
    lines = [f"# {line}" for line in _comments(tuning)]
    verdict = tuning.verdict
    if verdict is None or verdict.finding not in _CLAIMED:
        return "\n".join([*lines, "version: 1"]) + "\n"
    tree: _Tree = {}
    for path, value in verdict.winner:
        *above, last = path.split(".")
        branch = tree
        for name in above:
            inner = branch.setdefault(name, {})
            assert isinstance(inner, dict)
            branch = inner
        branch[last] = value
    return "\n".join([*lines, *_yaml(tree, 0)]) + "\n"


def _comments(tuning: Tuning) -> Iterator[str]:
    yield f"From tpudeploy tune, {tuning.id}: {tuning.deployment} on {tuning.where}"
    yield load_text(tuning)
    if tuning.is_emulated:
        yield EMULATED
    yield claim_text(tuning)


def _yaml(tree: Mapping[str, _Tree | str], depth: int) -> Iterator[str]:
    for name, value in tree.items():
        if isinstance(value, str):
            yield f"{'  ' * depth}{name}: {value}"
        else:
            yield f"{'  ' * depth}{name}:"
            yield from _yaml(value, depth + 1)
