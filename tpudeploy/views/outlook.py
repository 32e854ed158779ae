"""Where replicas stand with their places: summed up in words, or a line each, as wide as a screen and no wider."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from tpudeploy.domain.outlook import Place, PlaceState
from tpudeploy.views import words
from tpudeploy.views.paint import Paint

Outlooks: TypeAlias = Mapping[str, Sequence[Place]]  # by the replica's address

_RANK = {state: rank for rank, state in enumerate(PlaceState)}
_WAITING = {PlaceState.ASKED, PlaceState.QUEUED, PlaceState.PROVISIONING}
_FREE = "not asked"
# What ends by itself, before the time that is left.
_ENDS = {
    PlaceState.UP: "ends in",
    PlaceState.QUEUED: "lapses in",
    PlaceState.ASKED: "lapses in",
    PlaceState.REFUSED: "again in",
    PlaceState.FREE: "asked in",
}


def summary(places: Iterable[Place]) -> str:
    """`1 provisioning, 2 queued, 9 refused (7 stockout, 2 quota), 3 not asked`."""
    known = list(places)
    counts = Counter(p.state for p in known)
    told = (f"{counts[s]} {_word(s)}{_kinds(known) if s is PlaceState.REFUSED else ''}" for s in _RANK if counts[s])
    return ", ".join(told) or "nothing is left"


def waiting(why: str, places: Iterable[Place]) -> str:
    """What is waited for: requests that may be granted, else `why`; and what refused, until one is about to land."""
    known = list(places)
    counts = Counter(p.state for p in known)
    refused = counts[PlaceState.REFUSED]
    asked = [p for p in known if p.state in _WAITING]
    if refused and refused == len(known):
        return f"refused everywhere{_kinds(known)}"
    if asked and not counts[PlaceState.UP]:
        why = asked[0].why or asked[0].state if len(asked) == 1 else summary(asked)
    if not refused or counts[PlaceState.PROVISIONING]:
        return why
    return f"{why}; refused in {refused} place{'s' if refused > 1 else ''}{_kinds(known)}"


def table(outlooks: Outlooks, *, now: float, width: int, most: int, paint: Paint) -> tuple[str, ...]:
    """The places that came furthest, a line each; the last of at most `most` lines says what is left out."""
    rows = sorted(((a, p) for a, places in outlooks.items() for p in places), key=lambda row: _order(*row))
    shown = rows if len(rows) <= most else rows[: max(0, most - 1)]
    cells = [_cells(where if len(outlooks) > 1 else "", place, now) for where, place in shown]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        _painted(place, words.cut(_aligned(row, widths), width), paint)
        for row, (_, place) in zip(cells, shown, strict=True)
    ]
    rest = [place for _, place in rows[len(shown) :]]
    if rest:
        lines.append(paint.dim(words.cut(f"  … and {_more(rest)}", width)))
    return tuple(lines)


def _more(rest: Sequence[Place]) -> str:
    return summary(rest) if len({p.state for p in rest}) == 1 else f"{len(rest)} more: {summary(rest)}"


def _order(where: str, place: Place) -> tuple[int, float, str, str, str]:
    """Whatever was first to come furthest; of refusals, the one that is over first."""
    since = place.until if place.state is PlaceState.REFUSED else place.since
    return (_RANK[place.state], since or 0.0, where, place.zone, place.provisioning)


def _cells(where: str, place: Place, now: float) -> tuple[str, ...]:
    """All but the last of which say little, and are shown whole."""
    since = "" if place.since is None else words.duration(max(0.0, now - place.since))
    ends = ""
    if place.state in _ENDS and place.until is not None and place.until > now:
        ends = f"{_ENDS[place.state]} {words.duration(place.until - now)}"
    why = " ".join(words.plain(place.why).split())
    return (where, place.zone, place.provisioning, _word(place.state), since, ends, why)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    columns = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True) if width)
    return f"  {'  '.join(columns)}".rstrip()


def _painted(place: Place, line: str, paint: Paint) -> str:
    match place.state:
        case PlaceState.UP:
            return paint.green(line)
        case PlaceState.PROVISIONING:
            return paint.yellow(line)
        case PlaceState.QUEUED | PlaceState.ASKED:
            return line
    return paint.dim(line)


def _word(state: PlaceState) -> str:
    return _FREE if state is PlaceState.FREE else state.value


def _kinds(places: Iterable[Place]) -> str:
    """` (stockout)`, or with counts where they differ."""
    kinds = Counter(p.kind for p in places if p.state is PlaceState.REFUSED)
    if len(kinds) == 1:
        return f" ({next(iter(kinds))})"
    return f" ({', '.join(f'{n} {kind}' for kind, n in kinds.most_common())})"
