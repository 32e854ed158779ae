"""Which replicas a deployment has, and which of them are not preempted, by the profile and the state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from reconcile.cases import (
    FLEX,
    NOW,
    ON_DEMAND,
    RESERVED,
    SPOT,
    A,
    B,
    C,
    attempt,
    candidate,
    deployment,
    granted,
    queued,
    releasing,
    serving,
    slice_of,
)

from tpudeploy.domain.deployment import Scale
from tpudeploy.domain.slices import Observed, Phase
from tpudeploy.domain.state import Attempt, Record, ScalingStep, State
from tpudeploy.reconcile.replicas import (
    at_replica,
    choose_indexes,
    floor_indexes,
    replica_count,
    surplus_indexes,
    with_replicas,
)

CHEAP, DEAR = {"tpu.type": "v6e-1"}, {"tpu.type": "v6e-8"}


def state(*attempts: Attempt | None, replicas: Sequence[int] = (), **fields: Any) -> State:
    """Return a state with these attempts, one for each replica; None for one that has nothing."""
    records = tuple(
        Record(index=index, attempts=() if each is None else (replace(each, name=f"slice-{index}"),))
        for index, each in enumerate(attempts)
    )
    return State(deployment="gemma", lineage="1", records=records, replicas=tuple(replicas), **fields)


def ending(hours: float, **fields: Any) -> Attempt:
    return serving(A, FLEX, spec={**CHEAP, "placement.max_run_duration": f"{hours:g}h"}, **fields)


SERVES, STARTS, WAITS, LEAVES = serving(), granted(), queued(), releasing()


@pytest.mark.parametrize(
    ("one", "number", "expected"),
    [
        pytest.param(state(), 3, (0, 1, 2), id="a new deployment"),
        pytest.param(state(SERVES, SERVES), 2, (0, 1), id="the same number"),
        pytest.param(state(SERVES, SERVES), 4, (0, 1, 2, 3), id="more"),
        pytest.param(state(SERVES, None, SERVES, replicas=(0, 2)), 3, (0, 1, 2), id="more take the lowest free index"),
        pytest.param(state(SERVES, None, SERVES, replicas=(0,)), 2, (0, 2), id="a slice that exists is one of them"),
        pytest.param(state(SERVES, None, LEAVES, replicas=(0,)), 2, (0, 1), id="but not one that leaves"),
        pytest.param(state(SERVES, None, SERVES, replicas=(0, 2)), 2, (0, 2), id="the choice stays"),
        pytest.param(state(SERVES, None, None, replicas=(0, 2)), 2, (0, 2), id="also where one was lost"),
        pytest.param(state(SERVES, None), 2, (0, 1), id="a lost one is requested again"),
        pytest.param(state(None, LEAVES), 1, (0,), id="a lost one is requested before one that leaves is kept"),
        pytest.param(state(SERVES, SERVES, SERVES), 2, (0, 1), id="of equals, the newest goes"),
        pytest.param(state(SERVES, None, SERVES), 2, (0, 2), id="one that has nothing goes first"),
        pytest.param(state(WAITS, SERVES, SERVES), 2, (1, 2), id="one that waits goes before one that serves"),
        pytest.param(state(STARTS, SERVES, WAITS), 2, (0, 1), id="one that waits goes before one that starts"),
        pytest.param(state(STARTS, SERVES, SERVES), 2, (1, 2), id="one that starts goes before one that serves"),
        pytest.param(
            state(serving(draining_at=NOW - 9), SERVES, SERVES), 2, (1, 2), id="one that drains serves no new client"
        ),
        pytest.param(state(LEAVES, STARTS, STARTS), 2, (1, 2), id="one that leaves goes first"),
        pytest.param(
            state(SERVES, serving(A, ON_DEMAND), SERVES), 1, (1,), id="a preemptible one goes before one that lasts"
        ),
        pytest.param(
            state(SERVES, granted(A, ON_DEMAND)), 1, (0,), id="one that serves is kept before one that only lasts"
        ),
        pytest.param(
            state(serving(spec=DEAR), serving(spec=CHEAP), serving(spec=CHEAP)), 2, (1, 2), id="the dearest goes"
        ),
        pytest.param(
            state(serving(spec={}), serving(spec=DEAR)), 1, (1,), id="one of an unknown price may be the dearest"
        ),
        pytest.param(state(ending(2), ending(9), ending(12)), 2, (1, 2), id="the one whose run ends first goes"),
        pytest.param(
            state(ending(12, minutes_ago=300), ending(2, minutes_ago=60)), 1, (0,), id="also where it began last"
        ),
    ],
)
def test_the_indexes_of_replicas(one: State, number: int, expected: tuple[int, ...]) -> None:
    assert choose_indexes(number, one) == expected


def test_a_slice_that_the_cloud_does_not_show_as_up_does_not_serve() -> None:
    one = state(SERVES, SERVES)
    first, second = one.attempts
    gone = Observed(at=NOW, slices={second.name: slice_of(second)})
    assert choose_indexes(1, one, gone) == (1,)
    ending_machine = Observed(
        at=NOW, slices={first.name: slice_of(first, Phase.SUSPENDING), second.name: slice_of(second)}
    )
    assert choose_indexes(1, one, ending_machine) == (1,)
    assert with_replicas(deployment(replicas=1), one, gone).replica_indexes == (1,)


STEP = ScalingStep(at=NOW, before=1, after=2, why="")


@pytest.mark.parametrize(
    ("one", "replicas", "floor", "scale", "expected"),
    [
        pytest.param(
            state(replicas=(0, 1, 2), start=1), 2, 0, (1, 4, 2), 2, id="that of the profile, which was changed"
        ),
        pytest.param(state(replicas=(0, 1, 2), start=2), 2, 0, (1, 4, 2), 3, id="not where it was applied before"),
        pytest.param(
            state(replicas=(0, 1, 2), start=2), 1, 0, (1, 4), 3, id="nor where the profile says none any more"
        ),
        pytest.param(state(replicas=(0, 1, 2)), 2, 0, (1, 4, 2), 2, id="that of the profile, which says one now"),
        pytest.param(state(replicas=(0, 1, 2)), 2, 0, None, 2, id="without bounds, that of the profile"),
        pytest.param(state(), 2, 0, (1, 4), 2, id="at first, that of the profile"),
        pytest.param(state(), 1, 0, (2, 4), 2, id="at least the least number"),
        pytest.param(state(), 1, 3, (2, 4), 3, id="at least the floor"),
        pytest.param(state(replicas=(0, 1, 2), scaled=STEP), 1, 0, (1, 4), 3, id="then the last one"),
        pytest.param(state(replicas=(0, 1, 2)), 1, 0, (1, 2), 2, id="at most the greatest number"),
    ],
)
def test_the_number_of_replicas(
    one: State, replicas: int, floor: int, scale: tuple[int, ...] | None, expected: int
) -> None:
    bounds = None
    if scale is not None:
        start = scale[2] if scale[2:] else None
        bounds = Scale(min=scale[0], max=scale[1], waiting=4, kv_cache=0.8, cooldown_seconds=600, start=start)
    target = deployment(replicas=replicas, on_demand_floor=floor, scale=bounds)
    assert replica_count(target, one) == expected
    assert len(with_replicas(target, one).replica_indexes) == expected


def test_a_choice_is_made_once() -> None:
    target = with_replicas(deployment(replicas=1), state(WAITS, SERVES))
    assert target.replica_indexes == (1,)
    assert with_replicas(target, state(SERVES, WAITS)).replica_indexes == (1,)
    assert surplus_indexes(target, state(WAITS, SERVES, None)) == [0]


FLOOR = (candidate(A, ON_DEMAND), candidate(B, ON_DEMAND))


@pytest.mark.parametrize(
    ("one", "floor", "expected"),
    [
        pytest.param(state(), 0, set(), id="no floor"),
        pytest.param(state(), 1, {0}, id="the first one"),
        pytest.param(state(SERVES, SERVES, SERVES), 2, {0, 1}, id="the first two"),
        pytest.param(state(SERVES, SERVES, serving(A, ON_DEMAND)), 1, {2}, id="one that lasts already"),
        pytest.param(state(SERVES, SERVES, serving(A, RESERVED)), 1, {2}, id="a reserved one lasts too"),
        pytest.param(state(SERVES, serving(A, FLEX)), 1, {0}, id="the run of a flex-start one ends"),
        pytest.param(state(SERVES, releasing(C, ON_DEMAND)), 1, {0}, id="one that leaves does not count"),
        pytest.param(state(SERVES, attempt(C, ON_DEMAND)), 1, {1}, id="a request for one counts"),
    ],
)
def test_the_replicas_of_the_floor(one: State, floor: int, expected: set[int]) -> None:
    target = deployment(replicas=3, on_demand_floor=floor, floor_candidates=FLOOR)
    assert floor_indexes(target, one) == expected


def test_a_replica_of_the_floor_has_other_places() -> None:
    target = deployment([candidate(A, SPOT)], replicas=2, on_demand_floor=1, floor_candidates=FLOOR)
    first, second = at_replica(target, state(), 0), at_replica(target, state(), 1)
    assert first.candidates == FLOOR
    assert first.attributes["placement.provisioning"] == ["on-demand"]
    assert second is target
    plain = deployment(replicas=2)
    assert at_replica(plain, state(), 0) is plain
