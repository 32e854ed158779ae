"""Exports: the same deployment for another tool, as a text, and what that tool cannot express."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from tpudeploy.domain.deployment import Deployment

_WIDTH = 116


def missing_rules(deployment: Deployment) -> Iterator[str]:
    """Yield the rules of the number of replicas that no other tool has."""
    if deployment.on_demand_floor:
        yield "placement.on_demand_floor: every replica is requested in the same way here."
    if deployment.scale is not None:
        yield "scale: the number of replicas is fixed here; `tpudeploy apply -watch` changes it by vLLM's own metrics."


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """`body` is the file without its head. `missing` says what the tool cannot express, one sentence each."""

    title: str
    body: str
    missing: tuple[str, ...]

    def as_text(self, first_line: str = "") -> str:
        """Return the file. Its head says, in comments, what it is and what is missing; `first_line` precedes that."""
        sentences = [self.title]
        if self.missing:
            sentences.append("Not in this file, because the tool cannot express it:")
        lines = [line for sentence in sentences for line in textwrap.wrap(sentence, _WIDTH, break_on_hyphens=False)]
        for sentence in self.missing:
            lines += textwrap.wrap(
                sentence, _WIDTH, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False
            )
        head = "".join(f"# {line}\n" for line in lines)
        return f"{first_line}{head}{self.body}"
