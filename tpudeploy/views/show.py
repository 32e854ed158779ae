"""Format the slices in states as they were last applied, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpudeploy.domain.names import address
from tpudeploy.domain.policy import nested, resource
from tpudeploy.domain.state import Attempt, State
from tpudeploy.text import words
from tpudeploy.text.paint import Paint


def slices_text(states: Iterable[State], paint: Paint) -> str:
    blocks = ["\n".join(_slice(where, attempt, paint)) for _, where, attempt in _slices(states)]
    return "\n\n".join(blocks) or "The states here hold no slice."


def values(states: Iterable[State]) -> dict[str, object]:
    """Return the keys of the document that `show --json` prints: Terraform's `values`, with each state's lineage."""
    rows = list(states)
    return {
        "states": [{"deployment": s.deployment, "lineage": s.lineage, "serial": s.serial} for s in rows],
        "values": {"root_module": {"resources": [_resource(*row) for row in _slices(rows)]}},
    }


def _slices(states: Iterable[State]) -> Iterator[tuple[State, str, Attempt]]:
    for state in states:
        for record in state.records:
            yield from ((state, address(state.deployment, record.index), a) for a in record.attempts)


def _slice(where: str, attempt: Attempt, paint: Paint) -> Iterator[str]:
    yield f"# {paint.bold(where)} = {attempt.name} ({attempt.zone}, {attempt.provisioning}){_status(attempt)}"
    width = max(map(len, attempt.spec), default=0)
    yield from (f"    {path.ljust(width)} = {words.value(value)}" for path, value in sorted(attempt.spec.items()))


def _status(attempt: Attempt) -> str:
    if attempt.releasing_at is not None:
        return ", being released"
    return "" if attempt.granted_at is not None else ", not granted when last observed"


def _resource(state: State, where: str, attempt: Attempt) -> dict[str, object]:
    index = next(r.index for r in state.records if r.attempt(attempt.name) is not None)
    values = {**nested(attempt.spec), "slice_name": attempt.name, "zone": attempt.zone}
    return {**resource(state.deployment, index), "address": where, "values": values}
