"""What one look decides where a place has failed before, as tables: data in, steps out."""

from __future__ import annotations

import pytest
from bench.hunting.ours import PATIENCE, deployment
from bench.hunting.setting import HOUR, MINUTE, Setting
from bench.hunting.worlds import Place, World

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.life import Landing, ReleaseWithdrawn, Releasing, Starting
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import Observed, Phase, Refusal, Remedy, Scope, Slice
from tpudeploy.domain.state import Attempt, Boot, Record, Refused
from tpudeploy.domain.step import Reclaim, Release, Request, Step
from tpudeploy.reconcile.attempt_status import DecisionContext
from tpudeploy.reconcile.decide import decide
from tpudeploy.reconcile.failed_landings import LASTING, PREEMPTED

SPOT, FLEX = Provisioning.SPOT, Provisioning.FLEX_START
A, B, C, D = ZONES = tuple(Zone(f"xx-west{i}-a") for i in range(1, 5))
NOW = 100 * HOUR
FAILED_IN_A = Refused(
    zone=A,
    provisioning=FLEX,
    kind=PREEMPTED,
    scope=Scope.PAIR,
    message="",
    at=NOW - 3 * HOUR,
    until=NOW - HOUR,
    landed=True,
)
WORLD = World(setting=Setting(gap=HOUR), places=tuple(Place(zone, iter(()), frozenset({FLEX})) for zone in ZONES))
AIM = deployment(WORLD, 4, (FLEX,))
UNDELETED = Refusal(kind="any", message="", remedy=Remedy.LOOK_AGAIN, scope=Scope.PAIR, holds_seconds=0.0)


def attempt(zone: Zone, *, spare: bool = False, granted_ago: float | None = None) -> Attempt:
    landed: Landing | Starting = Landing(provisioning_at=NOW - MINUTE)
    if granted_ago is not None:
        landed = Starting(granted_at=NOW - granted_ago, provisioning_at=NOW - MINUTE)
    return Attempt(
        name=f"slice-{zone}",
        project="p",
        zone=zone,
        provisioning=FLEX,
        spec=AIM.attributes,
        asked_at=NOW - 10 * MINUTE,
        boot=Boot(server=""),
        life=Releasing(before=landed, releasing_at=NOW - 5, is_spare=True) if spare else landed,
    )


def steps(
    phases: dict[Zone, Phase],
    *,
    spares: tuple[Zone, ...] = (),
    failed: bool = True,
    undeleted: bool = False,
    granted_ago: float = MINUTE,
) -> tuple[Step, ...]:
    attempts = tuple(
        attempt(zone, spare=zone in spares, granted_ago=granted_ago if phase is Phase.UP else None)
        for zone, phase in phases.items()
    )
    slices = {
        a.name: Slice(
            name=a.name,
            zone=a.zone,
            phase=phases[a.zone],
            raw_state="",
            provisioning=FLEX,
            undeleted=UNDELETED if undeleted and a.is_spare else None,
        )
        for a in attempts
    }
    record = Record(index=0, attempts=attempts, refusals=(FAILED_IN_A,) if failed else ())
    return decide(AIM, record, DecisionContext(observed=Observed(at=NOW, slices=slices), patience=PATIENCE))


def released(those: tuple[Step, ...]) -> list[str]:
    return [step.name.removeprefix("slice-") for step in those if isinstance(step, Release)]


def requested(those: tuple[Step, ...]) -> list[Zone]:
    return [step.candidate.zone for step in those if isinstance(step, Request)]


LANDS_IN_A = {A: Phase.PROVISIONING, B: Phase.QUEUED, C: Phase.QUEUED}


def test_a_landing_ends_the_hunt_but_for_one_spare() -> None:
    decided = steps(LANDS_IN_A, failed=False)
    assert (released(decided), requested(decided)) == ([C], [])


def test_a_landing_in_a_place_that_failed_before_is_one_request_among_others() -> None:
    decided = steps(LANDS_IN_A)
    assert (released(decided), requested(decided)) == ([], [D])


def test_a_landing_elsewhere_ends_the_hunt_as_ever() -> None:
    decided = steps({A: Phase.QUEUED, B: Phase.PROVISIONING, C: Phase.QUEUED})
    assert (len(released(decided)), requested(decided)) == (1, [])


UP_IN_A = {A: Phase.UP, B: Phase.QUEUED}


@pytest.mark.parametrize(
    ("failed", "granted_ago", "given_up", "asked_for"),
    [(False, MINUTE, [B], []), (True, MINUTE, [], [C, D]), (True, LASTING, [B], [])],
)
def test_beside_a_slice_that_is_up_where_landings_failed_the_hunt_goes_on_until_it_has_lasted(
    failed: bool, granted_ago: float, given_up: list[Zone], asked_for: list[Zone]
) -> None:
    decided = steps(UP_IN_A, failed=failed, granted_ago=granted_ago)
    assert (released(decided), requested(decided)) == (given_up, asked_for)


@pytest.mark.parametrize(
    ("phases", "undeleted", "kept"),
    [
        ({B: Phase.PROVISIONING}, False, [B]),  # the other one has died: what Google still makes is kept
        ({B: Phase.UP}, False, [B]),
        ({B: Phase.LEAVING}, False, []),  # Google is deleting it
        ({B: Phase.PROVISIONING, C: Phase.PROVISIONING}, False, []),  # another is sure to land
        ({B: Phase.UP, C: Phase.PROVISIONING}, False, []),
        ({B: Phase.UP, C: Phase.PROVISIONING}, True, [B]),  # up, and certain to stay: better than about to be
        ({B: Phase.UP, C: Phase.UP}, True, []),
        ({B: Phase.PROVISIONING, A: Phase.PROVISIONING}, False, [B]),  # what lands in A may be gone in minutes
    ],
)
def test_a_spare_is_kept_after_all_where_nothing_else_is_sure(
    phases: dict[Zone, Phase], undeleted: bool, kept: list[Zone]
) -> None:
    decided = steps(phases, spares=(B,), undeleted=undeleted)
    assert [step.name.removeprefix("slice-") for step in decided if isinstance(step, Reclaim)] == kept


def test_a_spare_that_was_taken_back_is_doubtful_until_its_deletion_is_seen_to_have_failed() -> None:
    taken_back = attempt(B, spare=True).after(ReleaseWithdrawn())
    for undeleted, asked_for in ((None, 3), (UNDELETED, 0)):
        slices = {
            taken_back.name: Slice(
                name=taken_back.name,
                zone=B,
                phase=Phase.PROVISIONING,
                raw_state="",
                provisioning=FLEX,
                undeleted=undeleted,
            )
        }
        context = DecisionContext(observed=Observed(at=NOW, slices=slices), patience=PATIENCE)
        assert len(requested(decide(AIM, Record(index=0, attempts=(taken_back,)), context))) == asked_for
