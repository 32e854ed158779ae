"""Format the state of each place that a replica may run in: as a summary, or as a table as wide as the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.request_table import PlaceState, PlaceStatus
from tpudeploy.text import words
from tpudeploy.text.paint import Paint
from tpudeploy.text.words import aligned

Outlooks: TypeAlias = Mapping[str, Sequence[PlaceStatus]]  # by the replica's address

_RANK = {state: rank for rank, state in enumerate(PlaceState)}
_PENDING = {PlaceState.ASKED, PlaceState.QUEUED}
_WAITING = _PENDING | {PlaceState.PROVISIONING}
_STYLES = {PlaceState.UP: "green", PlaceState.PROVISIONING: "yellow"}
_FREE = "not asked"
# The text before the remaining time, for states that end by themselves.
_ENDS = {
    PlaceState.UP: "ends in",
    PlaceState.QUEUED: "lapses in",
    PlaceState.ASKED: "lapses in",
    PlaceState.REFUSED: "again in",
    PlaceState.FREE: "asked in",
}


def summary(places: Iterable[PlaceStatus]) -> str:
    """Return `1 provisioning, 2 queued, 9 refused (7 stockout, 2 quota), 3 not asked`."""
    rows = list(places)
    counts = Counter(p.state for p in rows)
    parts = (f"{counts[s]} {_word(s)}{_kinds(rows) if s is PlaceState.REFUSED else ''}" for s in _RANK if counts[s])
    return ", ".join(parts) or "no place remains"


def waiting(why: str, places: Iterable[PlaceStatus]) -> str:
    """Return what the run waits for: pending requests, else `why`; and the refusals, until one is provisioning."""
    rows = list(places)
    counts = Counter(p.state for p in rows)
    refused = counts[PlaceState.REFUSED]
    pending = [p for p in rows if p.state in _WAITING]
    if refused and refused == len(rows):
        return f"refused everywhere{_kinds(rows)}"
    if pending and not counts[PlaceState.UP]:
        why = pending[0].why or pending[0].state if len(pending) == 1 else summary(pending)
    if not refused or counts[PlaceState.PROVISIONING]:
        return why
    return f"{why}; refused in {words.plural(refused, 'place')}{_kinds(rows)}"


def table(outlooks: Outlooks, *, now: float, width: int, max_lines: int, paint: Paint) -> tuple[str, ...]:
    """Return the most advanced places, one line each; the last of at most `max_lines` lines summarises the others."""
    rows = sorted(((a, p) for a, places in outlooks.items() for p in places), key=lambda row: _rank(*row))
    visible = rows if len(rows) <= max_lines else rows[: max(0, max_lines - 1)]
    texts = aligned([_cells(address if len(outlooks) > 1 else "", place, now) for address, place in visible])
    lines = []
    for text, (_, place) in zip(texts, visible, strict=True):
        line = words.cut(f"  {text}", width)
        lines.append(line if place.state in _PENDING else paint.styled(_STYLES.get(place.state, "dim"), line))
    hidden = [place for _, place in rows[len(visible) :]]
    if hidden:
        lines.append(paint.dim(words.cut(f"  … and {_describe_hidden(hidden)}", width)))
    return tuple(lines)


def _describe_hidden(places: Sequence[PlaceStatus]) -> str:
    if len({place.state for place in places}) == 1:
        return summary(places)
    return f"{len(places)} more: {summary(places)}"


def _rank(address: str, place: PlaceStatus) -> tuple[int, float, str, str, str, str]:
    """Return the sort key: most advanced first, then longest in that state; for refusals, the one that ends first."""
    since = place.until if place.state is PlaceState.REFUSED else place.since
    return (_RANK[place.state], since or 0.0, address, place.zone, place.provisioning, place.backend)


def _cells(address: str, place: PlaceStatus, now: float) -> tuple[str, ...]:
    """Return the cells of a row. Only the last one may be long enough to be cut."""
    since = "" if place.since is None else words.duration(max(0.0, now - place.since))
    ends = ""
    if place.state in _ENDS and place.until is not None and place.until > now:
        ends = f"{_ENDS[place.state]} {words.duration(place.until - now)}"
    why = " ".join(words.plain(place.why).split())
    backend = "" if place.backend == Backend.QUEUED_RESOURCE else place.backend
    return (address, place.zone, place.provisioning, backend, _word(place.state), since, ends, why)


def _word(state: PlaceState) -> str:
    return _FREE if state is PlaceState.FREE else state.value


def _kinds(places: Iterable[PlaceStatus]) -> str:
    """Return ` (stockout)`, with counts if there are several kinds."""
    kinds = Counter(p.kind for p in places if p.state is PlaceState.REFUSED)
    if len(kinds) == 1:
        return f" ({next(iter(kinds))})"
    return f" ({', '.join(f'{n} {kind}' for kind, n in kinds.most_common())})"
