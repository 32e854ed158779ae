"""What changed last in a deployment, by its states: slices, restarts, replicas and settings, newest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tpudeploy.config.tokens import masked
from tpudeploy.config.trust import looks_secret
from tpudeploy.domain.deployment import Json
from tpudeploy.domain.names import address
from tpudeploy.domain.state import Attempt, State
from tpudeploy.text.words import value

_MOST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentChange:
    """One change. `at` is in seconds since the epoch, `by` the operation and its user, "" where no state says it."""

    at: float
    what: str
    by: str = ""


def recent_changes(states: Sequence[State]) -> tuple[RecentChange, ...]:
    """Return the last changes by the states that are kept, of which the newest is first."""
    if not states:
        return ()
    changes = [*_of_slices(states[0])]
    for newer, older in pairwise(states):
        changes += _of_settings(older, newer)
    return tuple(sorted(changes, key=lambda change: -change.at)[:_MOST])


def _of_slices(state: State) -> Iterator[RecentChange]:
    for index, attempt in state.indexed_slice_attempts:
        where = address(state.deployment, index)
        if attempt.granted_at is not None:
            yield RecentChange(at=attempt.granted_at, what=f"{where} got its slice in {attempt.zone}")
        if attempt.boot.at is not None:
            is_other = attempt.boot.previous not in ("", attempt.boot.server)
            yield RecentChange(
                at=attempt.boot.at, what=f"{where} restarted {'as changed' if is_other else 'unchanged'}"
            )
    if state.scaled is not None:
        step = state.scaled
        yield RecentChange(at=step.at, what=f"replicas: {step.before} -> {step.after} ({step.why})")


def _of_settings(older: State, newer: State) -> Iterator[RecentChange]:
    """Yield the settings in which a replica's slice differs from the one before."""
    if newer.written is None:
        return
    before, after = _specs(older), _specs(newer)
    by = f"{newer.written.operation} by {newer.written.by}"
    reported = set[str]()  # replicas change alike
    for index in before.keys() & after.keys():
        for path in sorted(before[index].keys() | after[index].keys()):
            if before[index].get(path) != after[index].get(path) and path not in reported:
                reported.add(path)
                what = f"{path}: {_setting_text(path, before[index])} -> {_setting_text(path, after[index])}"
                yield RecentChange(at=newer.written.at, what=what, by=by)


def _specs(state: State) -> Mapping[int, Mapping[str, Json]]:
    """Return the settings of each replica's slice, of which the last one counts."""
    attempts: dict[int, Attempt] = {index: each for index, each in state.indexed_slice_attempts if each.holds_slice}
    return {index: attempt.spec for index, attempt in attempts.items()}


def _setting_text(path: str, spec: Mapping[str, Json]) -> str:
    if path not in spec:
        return "(default)"
    is_private = path.startswith("secrets.") or looks_secret(path.rpartition(".")[2])
    return "(not shown)" if is_private else masked(value(spec[path]))
