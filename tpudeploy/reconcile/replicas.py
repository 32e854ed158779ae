"""Which replicas a deployment has, and which of them may not be preempted: functions of the profile and the state.

A replica keeps its index, and so its address, for as long as it exists. More replicas take the lowest free indexes.
Fewer replicas lose the one that costs least to lose: one that does not serve, because it serves no client; then a
preemptible one, because it may be lost at any time; then the dearest, and of equals the one whose run ends first; then
the newest, whose caches have seen the fewest prompts. The state keeps the choice, so that a run that is killed, and a
replica that is lost meanwhile, change nothing about it.

The floor (`placement.on_demand_floor`) is a number, not a list of addresses: a replica whose slice is on-demand or
reserved already counts first, so that a change of the floor replaces only what it must.

Why: decision 67 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import count, islice
from math import inf

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.slices import Observed
from tpudeploy.domain.state import Attempt, Record, State
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.readiness import takes_requests

_HOUR = 3600.0


def with_replicas(deployment: Deployment, state: State, observed: Observed | None = None) -> Deployment:
    """Return the deployment with the indexes of its replicas. An earlier choice stays.

    Without `observed`, each slice that has served counts as serving.
    """
    if deployment.indexes is not None:
        return deployment
    return replace(deployment, indexes=choose_indexes(replica_count(deployment, state), state, observed))


def replica_count(deployment: Deployment, state: State) -> int:
    """Return the number of replicas: that of the profile, or with `scale` the last one, within its bounds."""
    scale = deployment.scale
    if scale is None:
        return deployment.replicas
    # The number in the profile is where scaling begins: at the first apply, and where that number is another one.
    begins = not state.replicas or (scale.start is not None and scale.start != state.start)
    number = deployment.replicas if begins else len(state.replicas)
    return max(scale.min, deployment.on_demand_floor, min(number, scale.max))


def choose_indexes(number: int, state: State, observed: Observed | None = None) -> tuple[int, ...]:
    """Return the indexes of `number` replicas, in order."""
    current = _current_indexes(number, state)
    if len(current) <= number:
        # A slice that exists already, for example an imported one, is one of the new replicas.
        existing = [record.index for record in state.records if _is_wanted(record) and record.index not in current]
        free = (index for index in count() if index not in current and index not in existing)
        return tuple(sorted([*current, *islice(_chain(existing, free), number - len(current))]))
    return tuple(sorted(sorted(current, key=lambda index: _keep_key(state.record(index), observed))[:number]))


def floor_indexes(deployment: Deployment, state: State) -> frozenset[int]:
    """Return the replicas of the on-demand floor: those that have such a slice already come first."""
    indexes = sorted(deployment.replica_indexes, key=lambda index: (not _has_lasting(state.record(index)), index))
    return frozenset(indexes[: deployment.on_demand_floor])


def at_replica(deployment: Deployment, state: State, index: int) -> Deployment:
    """Return the deployment as it is for one replica: one of the floor has other places than the rest."""
    if not deployment.on_demand_floor or index not in floor_indexes(deployment, state):
        return deployment
    models = list(dict.fromkeys(candidate.provisioning.value for candidate in deployment.floor_candidates))
    return replace(
        deployment,
        candidates=deployment.floor_candidates,
        attributes={**deployment.attributes, "placement.provisioning": [*models]},
    )


def _current_indexes(number: int, state: State) -> tuple[int, ...]:
    """Return the replicas by the last choice; in states without one, those that exist."""
    if state.replicas:
        return state.replicas
    existing = {record.index for record in state.records if record.attempts}
    # A replica that has nothing now, because it was lost, is one of the first ones too.
    return tuple(sorted(existing | set(range(number))))


def _chain(first: Iterable[int], then: Iterable[int]) -> Iterable[int]:
    yield from first
    yield from then


def _is_wanted(record: Record) -> bool:
    return any(attempt.release is None and attempt.draining_at is None for attempt in record.attempts)


def _has_lasting(record: Record) -> bool:
    return any(attempt.provisioning.is_lasting and attempt.release is None for attempt in record.attempts)


def _keep_key(record: Record, observed: Observed | None) -> tuple[bool, bool, bool, float, float, int]:
    """Return the key by which replicas are compared. The one with the greatest key goes first."""
    attempts = [attempt for attempt in record.attempts if attempt.release is None]
    serving = [attempt for attempt in attempts if _serves(attempt, observed)]
    slices = serving or [attempt for attempt in attempts if attempt.holds_slice]
    known_prices = [price for attempt in slices if (price := prices.usd_per_hour(attempt)) is not None]
    return (
        not serving,
        not slices,
        not any(attempt.provisioning.is_lasting for attempt in slices),
        max(known_prices, default=inf),
        -max((_run_end(attempt) for attempt in slices), default=0.0),
        record.index,
    )


def _serves(attempt: Attempt, observed: Observed | None) -> bool:
    if observed is not None:
        return takes_requests(attempt, observed)
    return attempt.is_announced and attempt.draining_at is None and attempt.release is None


def _run_end(attempt: Attempt) -> float:
    hours = prices.run_hours(attempt)
    return inf if hours is None or attempt.granted_at is None else attempt.granted_at + hours * _HOUR


def surplus_indexes(deployment: Deployment, state: State) -> list[int]:
    """Return the replicas that exist and that the deployment does not have any more."""
    own: Collection[int] = deployment.replica_indexes
    return sorted(record.index for record in state.records if record.attempts and record.index not in own)
