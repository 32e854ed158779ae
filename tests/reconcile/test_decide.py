"""Every step that is right for one replica after one observation: what a user gets, row by row. No cloud, no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from reconcile.cases import (
    FLEX,
    HOUR,
    INSTANCES,
    MINUTE,
    NOW,
    PATIENCE,
    SPEC,
    SPOT,
    TPU_API,
    A,
    B,
    C,
    D,
    attempt,
    candidate,
    context,
    deployment,
    failed_landing,
    granted,
    queued,
    record,
    refusal,
    refused,
    releasing,
    serving,
    slice_of,
)

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Deployment, Place
from tpudeploy.domain.errors import Denied, GivenUpUpdate, RolledBack, ServingError
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import Absence, BootPhase, BootReport, Health, Phase, Refusal, RefusalScope, Slice
from tpudeploy.domain.state import Attempt, RefusalRecord
from tpudeploy.domain.step import Done, Drain, Forget, GiveUp, PushChange, Reclaim, Release, Renew, Request, Step, Wait
from tpudeploy.node.fingerprint import server_print
from tpudeploy.node.node_facts import CHANGE_KEY, SPEC_KEY
from tpudeploy.reconcile.attempt_status import DecisionContext
from tpudeploy.reconcile.decide import decide, fits, matches, remove

REPLICA = 3
FULL, NOT_CLEAR = refusal(), refusal(is_known=False)
ANSWERS = Health(serving=True, detail="")
SERVER = server_print(SPEC)
IDLE = {f"slice-{A}": 0}

# Builders of one row: what is observed of an attempt, the world around it, and the steps.


@dataclass(frozen=True)
class View:
    """One attempt, the slice that the cloud shows for it, and whether its endpoint answers."""

    attempt: Attempt
    slice: Slice | None = None
    health: Health | None = None
    report: BootReport | None = None


@dataclass(frozen=True)
class World:
    views: tuple[View, ...]
    target: Deployment
    refusals: tuple[RefusalRecord, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)

    def decision_context(self) -> DecisionContext:
        return context(
            *(view.slice for view in self.views if view.slice is not None),
            health={view.attempt.name: view.health for view in self.views if view.health is not None},
            reports={view.attempt.name: view.report for view in self.views if view.report is not None},
            **self.context,
        )


def places(*zones: Zone, **fields: Any) -> Deployment:
    """Return a deployment that may be requested in these zones, as spot."""
    return deployment([candidate(zone) for zone in zones], **fields)


def either_api(*zones: Zone, requests: int = 4, **fields: Any) -> Deployment:
    """Return a deployment that may be requested in these zones at both APIs, as spot."""
    runtimes = {TPU_API: "v2-alpha-tpuv6e", INSTANCES: "ubuntu"}
    backends = list(runtimes)
    return deployment(
        [candidate(z, backend=backends[(n + shift) % 2]) for shift in (0, 1) for n, z in enumerate(zones)],
        requests=requests,
        runtimes=runtimes,
        attributes={"placement.backend": "auto", **fields.pop("attributes", {})},
        **fields,
    )


def world(
    *views: View, target: Deployment | None = None, refusals: Sequence[RefusalRecord] = (), **fields: Any
) -> World:
    return World(views=views, target=target or places(A, B), refusals=tuple(refusals), context=fields)


def shows(one: Attempt, phase: Phase, **fields: Any) -> View:
    """Return an attempt whose slice is in this phase. A slice that is up has the current metadata."""
    values = {"metadata": {SPEC_KEY: SERVER}, **fields} if phase is Phase.UP else fields
    return View(attempt=one, slice=slice_of(one, phase, **values))


def answers(one: Attempt, **fields: Any) -> View:
    """Return an attempt whose slice is up and completes a prompt."""
    return replace(shows(one, Phase.UP, **fields), health=ANSWERS)


def boots(one: Attempt) -> View:
    """Return an attempt whose slice is up, and whose server does not answer yet."""
    return shows(one, Phase.UP)


def silent(one: Attempt) -> View:
    """Return an attempt whose slice is up, and whose server did not answer its probe."""
    return replace(shows(one, Phase.UP), health=replace(ANSWERS, serving=False))


def fails(one: Attempt) -> View:
    """Return an attempt whose slice is up, and whose server failed."""
    return replace(shows(one, Phase.UP), report=BootReport(phase=BootPhase.FAILED, detail="no memory", spec=SERVER))


def queues(one: Attempt) -> View:
    return shows(one, Phase.QUEUED)


def lands(one: Attempt) -> View:
    return shows(one, Phase.PROVISIONING)


def booting(zone: Zone = A, **fields: Any) -> Attempt:
    """Return a slice that was granted five minutes ago, with the profile's server."""
    return granted(zone, **{"booted": SERVER, **fields})


def landing(zone: Zone = A, model: Any = SPOT, *, minutes_ago: float = 1, **fields: Any) -> Attempt:
    return attempt(zone, model, provisioning_at=NOW - minutes_ago * MINUTE, **{"seen": True, **fields})


def request(zone: Zone, model: Any = SPOT, backend: Backend = TPU_API) -> Request:
    return Request(replica=REPLICA, candidate=candidate(zone, model, backend=backend))


def release(zone: Zone, reason: str, *, answer: Refusal | None = None, **flags: bool) -> Release:
    return Release(replica=REPLICA, name=f"slice-{zone}", reason=reason, refusal=answer, **flags)


def spare(zone: Zone, reason: str = "another slice is kept") -> Release:
    return release(zone, reason, is_spare=True)


def forget(zone: Zone, reason: str, answer: Refusal | None = None) -> Forget:
    return Forget(replica=REPLICA, name=f"slice-{zone}", absence=Absence(reason), refusal=answer)


def reclaim(zone: Zone, reason: str = "the slice that was to replace it failed") -> Reclaim:
    return Reclaim(replica=REPLICA, name=f"slice-{zone}", reason=reason)


def drain(zone: Zone, *, begins: bool = True) -> Drain:
    return Drain(replica=REPLICA, name=f"slice-{zone}", begins=begins)


def wait(why: str, seconds: float | None = None, *, rationed_at: Backend | None = None) -> Wait:
    return Wait(replica=REPLICA, why=why, seconds=seconds, rationed_at=rationed_at)


def done_in(zone: Zone = A) -> Done:
    return Done(replica=REPLICA, name=f"slice-{zone}", health=ANSWERS)


def steps(there: World) -> tuple[Step, ...]:
    attempts = [view.attempt for view in there.views]
    return decide(there.target, record(*attempts, refusals=there.refusals, index=REPLICA), there.decision_context())


def removal(there: World) -> tuple[Step, ...]:
    return remove(record(*(view.attempt for view in there.views), index=REPLICA), there.decision_context())


BOOTS = wait("the server is starting", 600.0)
PREEMPTED = BootReport(phase=BootPhase.SERVING, preempted_at=NOW - 5)
CHOOSING = wait("choosing the next place", 0.0)
OUTDATED = {"tpu.type": "v6e-4"}
UNANSWERED = refusal(
    kind="unanswered", message="no slice appeared in the 2 min after the request", holds_seconds=PATIENCE.grace
)


# What is over.


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        pytest.param(
            world(View(attempt(seen=True)), target=places(A)),
            (forget(A, "gone"), request(A)),
            id="a slice that is gone is forgotten, and requested again in the same observation",
        ),
        pytest.param(
            world(View(attempt()), target=places(A)),
            (forget(A, "never appeared", UNANSWERED), CHOOSING),
            id="a request that never appeared counts against its place before the next one is chosen",
        ),
        pytest.param(
            world(shows(attempt(), Phase.REFUSED, refusal=FULL)),
            (forget(A, "refused", FULL), CHOOSING),
            id="a refusal is recorded before the next place is chosen",
        ),
        pytest.param(
            world(shows(attempt(asked_at=NOW - 60.0), Phase.REFUSED, refusal=NOT_CLEAR)),
            (release(A, "refused", answer=NOT_CLEAR, is_refused=True), CHOOSING),
            id="what failed for an unknown reason is released with nothing to delete",
        ),
        pytest.param(
            world(shows(attempt(), Phase.HUSK, refusal=FULL)),
            (release(A, "HUSK: nothing runs there, but it uses quota", answer=FULL), CHOOSING),
            id="a husk is deleted, and its refusal recorded before the next place is chosen",
        ),
        pytest.param(
            world(shows(attempt(), Phase.HUSK)),
            (release(A, "HUSK: nothing runs there, but it uses quota"), request(A), request(B)),
            id="a husk without a reason is deleted, and the hunt continues",
        ),
        pytest.param(
            world(
                View(attempt(seen=True)),
                target=places(A),
                refusals=[refused(lasts=60, scope=RefusalScope.ZONE_QUOTA, held=8)],
            ),
            (forget(A, "gone"), request(A), wait("refused everywhere else", HOUR)),
            id="what is gone uses no quota any more",
        ),
        pytest.param(
            world(shows(attempt(A), Phase.HUSK), queues(queued(B, SPOT)), target=places(A, B, requests=1)),
            (release(A, "HUSK: nothing runs there, but it uses quota"), wait("QUEUED")),
            id="a husk takes no request's place",
        ),
        pytest.param(
            world(View(serving(), slice_of(serving()), ANSWERS, PREEMPTED)),
            (request(B),),
            id="the successor of a slice that Google takes back is requested while it is up, and in another place first",
        ),
        pytest.param(
            world(View(serving(), slice_of(serving()), ANSWERS, PREEMPTED), answers(serving(B))),
            (done_in(B), wait(f"for slice-{A} to be gone (UP, being preempted)")),
            id="and is not deleted once its successor serves",
        ),
    ],
)
def test_what_is_over_makes_room(there: World, expected: tuple[Step, ...]) -> None:
    assert steps(there) == expected


@pytest.mark.parametrize(
    ("phase", "seconds_ago", "is_requested"),
    [
        pytest.param(Phase.UP, 19, False, id="a deletion gets 20 seconds to show"),
        pytest.param(Phase.UP, 20, True, id="a slice that is still up is deleted again"),
        pytest.param(Phase.PROVISIONING, 20, True, id="so is one whose deletion failed while it was made"),
        pytest.param(Phase.HUSK, 999, True, id="and a husk"),
        pytest.param(Phase.SUSPENDING, 999, False, id="what Google takes away is not deleted again"),
        pytest.param(Phase.LEAVING, 999, False, id="nor what is being deleted"),
        pytest.param(None, 999, False, id="nor what a silent zone hides"),
    ],
)
@pytest.mark.parametrize("is_spare", [True, False])
def test_a_deletion_that_did_not_take_is_requested_again(
    phase: Phase | None, seconds_ago: float, is_requested: bool, is_spare: bool
) -> None:
    # The profile does not allow its place, so it is not taken back.
    one = landing(C, releasing_at=NOW - seconds_ago, release_reason="replaced", is_spare=is_spare)
    there = world(View(one), unseen={one.name: "503"}) if phase is None else world(shows(one, phase))
    again = release(C, "replaced", is_spare=is_spare)
    assert [step for step in steps(there) if isinstance(step, Release)] == ([again] if is_requested else [])


def test_a_slice_that_google_takes_away_is_never_deleted_by_us() -> None:
    assert not [step for step in steps(world(shows(serving(), Phase.SUSPENDING))) if isinstance(step, Release)]


# The hunt: where to ask.

TWO_KINDS = deployment([candidate(A, FLEX), candidate(B, FLEX), candidate(C), candidate(D)], requests=4)

# 8, 24 and 8 USD an hour.
PRICED = deployment([candidate(A, usd=1.0), candidate(B, usd=3.0), candidate(C, usd=1.0)], requests=4)


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        pytest.param(world(), (request(A), request(B)), id="nothing is there: as many places as may be are requested"),
        pytest.param(world(target=places(A, B, C)), (request(A), request(B)), id="and no more, best first"),
        pytest.param(
            world(creates={TPU_API: 2}), (request(A), request(B)), id="as many creates as the project has left"
        ),
        pytest.param(
            world(creates={TPU_API: 1}, creates_in={TPU_API: 7.0}),
            (request(A), wait("the project's limit of creates per minute is reached", 7.0, rationed_at=TPU_API)),
            id="what the project's creates do not allow waits until they do",
        ),
        pytest.param(
            world(creates={TPU_API: 0}),
            (wait("the project's limit of creates per minute is reached", 1.0, rationed_at=TPU_API),),
            id="and at least as long as one create takes",
        ),
        pytest.param(
            world(refusals=[refused(A, lasts=3), refused(B, lasts=2)]),
            (wait("refused everywhere", 120.0),),
            id="full everywhere: it waits until the first place may be requested again",
        ),
        pytest.param(
            world(refusals=[refused(A, lasts=3)]),
            (request(B), wait("refused everywhere else", 180.0)),
            id="one place is full: the other is requested, and the wait ends when the first opens",
        ),
        pytest.param(
            world(queues(queued(A, SPOT)), refusals=[refused(B, lasts=3)]),
            (wait("QUEUED"), wait("refused everywhere else", 180.0)),
            id="beside a request that waits, the full place is tried when it opens",
        ),
        pytest.param(
            world(
                queues(queued(A, SPOT)), queues(queued(B, SPOT)), refusals=[refused(C, lasts=3)], target=places(A, B, C)
            ),
            (wait("QUEUED"), wait("QUEUED")),
            id="all requests wait: no opening matters",
        ),
        pytest.param(
            world(queues(queued(A, SPOT)), target=places(A)),
            (wait("QUEUED"),),
            id="the only place has a request: it waits",
        ),
        pytest.param(
            world(queues(queued(A, SPOT)), creates={TPU_API: 1}, target=places(A, B, C, requests=3)),
            (
                wait("QUEUED"),
                request(B),
                wait("the project's limit of creates per minute is reached", 1.0, rationed_at=TPU_API),
            ),
            id="a request that waits is no create",
        ),
        pytest.param(
            world(View(attempt(asked_at=NOW - 50)), target=places(A)),
            (wait("requested; not visible yet", 70.0),),
            id="a request that is not visible yet is waited for, until the grace is over",
        ),
        pytest.param(
            world(View(attempt(asked_at=NOW - 50)), target=places(A, B)),
            (wait("requested; not visible yet", 70.0), request(B)),
            id="while the other places are requested",
        ),
        pytest.param(
            world(View(releasing(asked_at=NOW - 50)), target=places(A)),
            (request(A),),
            id="a request that was given up before it was visible holds no place",
        ),
        pytest.param(
            world(shows(attempt(), Phase.SUSPENDING), target=places(A)),
            (wait("for slice-us-east5-a to be gone (SUSPENDING)"),),
            id="a refusal that is not explained yet closes its place until it is",
        ),
        pytest.param(
            world(shows(attempt(), Phase.SUSPENDING)),
            (request(B),),
            id="the other places are requested meanwhile",
        ),
        pytest.param(
            world(shows(releasing(), Phase.SUSPENDING)),
            (request(A), request(B)),
            id="what we gave up ourselves closes nothing",
        ),
        pytest.param(
            world(shows(attempt(), Phase.SUSPENDING), refusals=[refused(B, lasts=3)]),
            (wait("refused everywhere", 180.0),),
            id="an opening is waited for before a deletion",
        ),
        pytest.param(
            world(
                View(releasing(B, asked_at=NOW - 50)),
                shows(attempt(), Phase.SUSPENDING),
                target=places(A),
            ),
            (wait("requested; not visible yet", 70.0),),
            id="of several that leave, the first is named",
        ),
        pytest.param(
            world(queues(queued(A, SPOT)), refusals=[refused(C, lasts=3)], target=places(A, B, C)),
            (wait("QUEUED"), request(B)),
            id="a request that waits and a new one are all that is allowed: no opening matters",
        ),
        pytest.param(
            world(refusals=[refused(A, lasts=1 / 120)], target=places(A)),
            (wait("refused everywhere", 0.5),),
            id="a place that opens in half a second is requested then",
        ),
        pytest.param(
            world(
                queues(queued(A, minutes_ago=1)),
                queues(queued(B, minutes_ago=9)),
                queues(queued(C, SPOT, minutes_ago=99)),
                target=replace(TWO_KINDS, max_parallel_requests=2),
            ),
            (spare(C, "more requests wait than the profile allows"), wait("QUEUED"), wait("QUEUED")),
            id="fewer requests are allowed than wait: queues keep their place before any sweep",
        ),
        pytest.param(
            world(
                queues(queued(A, minutes_ago=1)),
                queues(queued(B, minutes_ago=9)),
                target=replace(TWO_KINDS, max_parallel_requests=1),
            ),
            (spare(A, "more requests wait than the profile allows"), wait("QUEUED")),
            id="and of two queues the longest wait is kept",
        ),
        pytest.param(
            world(
                queues(queued(A, SPOT, minutes_ago=1)),
                queues(queued(B, SPOT, minutes_ago=9)),
                target=replace(PRICED, search_usd_per_hour=24.0),
            ),
            (spare(A, "more requests wait than the profile allows"), wait("QUEUED")),
            id="both would cost more than the search may",
        ),
        pytest.param(
            world(queues(queued(A, SPOT)), target=replace(PRICED, search_usd_per_hour=24.0)),
            (wait("QUEUED"), replace(request(C), candidate=candidate(C, usd=1.0))),
            id="a place that is too expensive beside the others is passed over",
        ),
        pytest.param(
            world(
                queues(queued(A, SPOT)),
                target=replace(PRICED, search_usd_per_hour=12.0),
                refusals=[refused(C, lasts=1)],
            ),
            (wait("QUEUED"),),
            id="without money for one more, no refusal is waited for",
        ),
        pytest.param(
            world(target=places(A, B, C, requests=1), scores={Place(B, SPOT): 0.9}),
            (request(A),),
            id="a good record elsewhere does not change a listed order",
        ),
        pytest.param(
            world(target=places(A, B, requests=1, attributes={"placement.zones": "any"}), scores={Place(B, SPOT): 0.9}),
            (request(B),),
            id="where any zone will do, the one that granted most is requested first",
        ),
        pytest.param(
            world(target=either_api(A, B, requests=2)),
            (request(A), request(B, backend=INSTANCES)),
            id="with two APIs each zone is requested once before it is requested at the other API",
        ),
        pytest.param(
            world(target=either_api(A, B), refusals=[refused(A, lasts=3, scope=RefusalScope.PROJECT)]),
            (request(B, backend=INSTANCES), request(A, backend=INSTANCES), wait("refused everywhere else", 180.0)),
            id="whatever one API refuses, the other one is requested",
        ),
        pytest.param(
            world(target=either_api(A, B), creates={TPU_API: 0, INSTANCES: 1}, creates_in={TPU_API: 30.0}),
            (
                request(B, backend=INSTANCES),
                wait("the project's limit of creates per minute is reached", 30.0, rationed_at=TPU_API),
                wait("the project's limit of creates per minute is reached", 1.0, rationed_at=INSTANCES),
            ),
            id="each API has creates of its own",
        ),
    ],
)
def test_where_to_ask(there: World, expected: tuple[Step, ...]) -> None:
    assert steps(there) == expected


@pytest.mark.parametrize(
    ("there", "message", "hint"),
    [
        pytest.param(
            world(target=deployment(())),
            "The profile allows no zone and provisioning model to try.",
            "Widen placement.zones, placement.provisioning or placement.max_price_per_chip_hour.",
            id="no place fits the profile",
        ),
        pytest.param(
            world(refusals=[refused(A, lasts=3), refused(B, lasts=3, kind="api-off", stops=True, message="Disabled.")]),
            "Disabled.",
            "`tpudeploy explain api-off` says what to do.",
            id="a refusal that only a person can lift ends the run, though other places are open later",
        ),
        pytest.param(
            world(refusals=[refused(A, lasts=121), refused(B, lasts=121)]),
            "All allowed zones refused the request, and retrying will not help.",
            "us-east5-a, spot; us-east5-b, spot: ZONE is full.\n"
            "Or widen placement.zones. The next `tpudeploy apply` then tries every zone again.",
            id="every place refuses for longer than two hours",
        ),
        pytest.param(
            world(
                target=either_api(A),
                refusals=[
                    refused(A, lasts=3, kind="api-off", stops=True, message="Disabled."),
                    refused(A, lasts=3, kind="denied", stops=True, message="Denied.", backend=INSTANCES),
                ],
            ),
            "Disabled.\nDenied.",
            "`tpudeploy explain api-off` says what to do.\n`tpudeploy explain denied` says what to do.",
            id="each of two APIs refuses what only a person can lift",
        ),
        pytest.param(
            world(
                target=either_api(A),
                refusals=[
                    refused(A, lasts=3, stops=True, message="Disabled."),
                    refused(A, lasts=121, backend=INSTANCES, scope=RefusalScope.ZONE),
                ],
            ),
            "All allowed zones refused the request, and retrying will not help.",
            "us-east5-a, spot: Disabled.\nus-east5-a, spot, gce-instance: us-east5-a is full.\n"
            "Or widen placement.zones. The next `tpudeploy apply` then tries every zone again.",
            id="one API needs a person, and the other refuses for longer than two hours",
        ),
    ],
)
def test_where_waiting_will_not_help_it_gives_up_with_the_reason_and_a_remedy(
    there: World, message: str, hint: str
) -> None:
    (step,) = steps(there)
    assert isinstance(step, GiveUp)
    assert (step.replica, step.name, step.serves) == (REPLICA, "", False)
    assert (type(step.error), step.error.message, step.error.hint) == (Denied, message, hint)


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        pytest.param(
            world(shows(releasing(), Phase.LEAVING), target=deployment(())),
            (wait("for slice-us-east5-a to be gone (LEAVING)"),),
            id="it gives up only once nothing of ours is left",
        ),
        pytest.param(
            world(View(releasing(asked_at=NOW - 50)), target=deployment(())),
            (wait("requested; not visible yet", 70.0),),
            id="and nothing of ours may still appear",
        ),
        pytest.param(
            world(View(attempt(seen=True)), shows(releasing(B), Phase.LEAVING), target=deployment(())),
            (forget(A, "gone"), wait("for slice-us-east5-b to be gone (LEAVING)")),
            id="what is gone is not waited for",
        ),
        pytest.param(
            world(refusals=[refused(A, lasts=120), refused(B, lasts=120)]),
            (wait("refused everywhere", 7200.0),),
            id="two hours are waited for",
        ),
        pytest.param(
            world(refusals=[refused(A, 99, lasts=-1, stops=True), refused(B, lasts=2)]),
            (request(A), wait("refused everywhere else", 120.0)),
            id="a refusal that has lapsed ends nothing",
        ),
        pytest.param(
            world(target=either_api(A, B), refusals=[refused(A, lasts=3, stops=True)]),
            (request(B, backend=INSTANCES), request(A, backend=INSTANCES), wait("refused everywhere else", 180.0)),
            id="what only a person can lift at one API leaves the other",
        ),
    ],
)
def test_what_can_still_change_is_waited_for(there: World, expected: tuple[Step, ...]) -> None:
    assert steps(there) == expected


def another(zone: Zone = B, *, minutes_ago: float = 10, model: Any = FLEX) -> View:
    return queues(queued(zone, model, minutes_ago=minutes_ago))


LANDING_ELSEWHERE = "another one is about to land"


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        pytest.param(
            world(lands(landing(C)), another(A, minutes_ago=1), another(B, minutes_ago=9), target=TWO_KINDS),
            (spare(A, LANDING_ELSEWHERE), wait("PROVISIONING"), wait("QUEUED")),
            id="a landing ends the hunt, but for the longest queue in case it fails",
        ),
        pytest.param(
            world(
                lands(landing(C)), another(D, model=SPOT, minutes_ago=99), another(B, minutes_ago=9), target=TWO_KINDS
            ),
            (spare(D, LANDING_ELSEWHERE), wait("PROVISIONING"), wait("QUEUED")),
            id="a queue is a better spare than a sweep, however long that has waited",
        ),
        pytest.param(
            world(another(A), lands(landing(C)), lands(landing(D)), target=TWO_KINDS),
            (wait("PROVISIONING"), wait("PROVISIONING"), wait("QUEUED")),
            id="two that land are both waited for",
        ),
        pytest.param(
            world(
                lands(landing(A, model=FLEX, minutes_ago=3)),
                lands(landing(C, minutes_ago=2)),
                lands(landing(D)),
                target=TWO_KINDS,
            ),
            (wait("PROVISIONING"), wait("PROVISIONING"), wait("PROVISIONING")),
            id="of three that land, none is given back before one is granted",
        ),
        pytest.param(
            world(lands(landing(C, minutes_ago=9.9)), target=TWO_KINDS),
            (wait("PROVISIONING"),),
            id="a landing takes up to ten minutes",
        ),
        pytest.param(
            world(lands(landing(C, minutes_ago=10)), target=TWO_KINDS),
            (wait("PROVISIONING"), request(A, FLEX), request(B, FLEX), request(D)),
            id="one that takes longer may never end, so the hunt continues",
        ),
        pytest.param(
            world(lands(attempt(C, seen=True)), target=TWO_KINDS),
            (wait("PROVISIONING"),),
            id="a landing that is new to us has just begun",
        ),
        pytest.param(
            world(shows(landing(C), Phase.LOST), target=TWO_KINDS),
            (wait("LOST"),),
            id="a granted node that is not visible yet lands, too",
        ),
        pytest.param(
            world(shows(landing(C), Phase.QUEUED), target=TWO_KINDS),
            (wait("QUEUED"), request(A, FLEX), request(B, FLEX), request(D)),
            id="a landing that went back into its queue lands no more",
        ),
        pytest.param(
            world(View(landing(C)), unseen={f"slice-{C}": "503"}, target=TWO_KINDS),
            (wait(f"{C} does not answer"), request(A, FLEX), request(B, FLEX), request(D)),
            id="one in a silent zone may or may not land",
        ),
        pytest.param(
            world(View(attempt(A, FLEX, asked_at=NOW)), lands(landing(C)), target=TWO_KINDS),
            (wait("PROVISIONING"), wait("requested; not visible yet", 120.0)),
            id="a request that is not visible yet is a spare, too",
        ),
        pytest.param(
            world(lands(landing(C)), another(A), another(B), target=TWO_KINDS, refusals=[failed_landing(C)]),
            (wait("PROVISIONING"), wait("QUEUED"), wait("QUEUED"), request(D)),
            id="where landings failed before, a landing is one request among others",
        ),
        pytest.param(
            world(
                lands(landing(C)),
                target=TWO_KINDS,
                refusals=[failed_landing(D), refused(C, lasts=1)],
            ),
            (wait("PROVISIONING"),),
            id="failed landings elsewhere do not matter",
        ),
        pytest.param(
            world(lands(landing(C, is_reclaimed=True)), target=TWO_KINDS),
            (wait("PROVISIONING"), request(A, FLEX), request(B, FLEX), request(D)),
            id="one that was taken back may still be deleted, so the hunt continues",
        ),
        pytest.param(
            world(shows(landing(C, is_reclaimed=True), Phase.PROVISIONING, undeleted=FULL), target=TWO_KINDS),
            (wait("PROVISIONING; its deletion failed: There is no more capacity."),),
            id="once its deletion is known to have failed, it lands as any other",
        ),
    ],
)
def test_once_a_slice_is_about_to_land(there: World, expected: tuple[Step, ...]) -> None:
    assert steps(there) == expected


# A slice that is up.

DOUBTFUL = [failed_landing(A)]


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        pytest.param(world(boots(booting())), (BOOTS,), id="a granted slice boots, and nothing else is requested"),
        pytest.param(world(answers(serving())), (done_in(),), id="it serves: done"),
        pytest.param(
            world(boots(booting()), queues(queued(B, SPOT))),
            (spare(B), BOOTS),
            id="a request that waits beside it is given up",
        ),
        pytest.param(
            world(answers(serving()), queues(queued(B, SPOT))),
            (spare(B), done_in(), wait("QUEUED")),
            id="it serves, and is done only when the request beside it is gone",
        ),
        pytest.param(
            world(answers(serving()), View(attempt(seen=True, name="slice-us-east5-b"))),
            (forget(B, "gone"), done_in()),
            id="what is gone is not waited for",
        ),
        pytest.param(
            world(answers(serving()), View(attempt(B, asked_at=NOW))),
            (done_in(), wait("requested; not visible yet", 120.0)),
            id="a request that may still appear is waited for, not deleted unseen",
        ),
        pytest.param(
            world(answers(serving()), shows(releasing(B), Phase.LEAVING)),
            (done_in(), wait("for slice-us-east5-b to be gone (LEAVING)")),
            id="so is a deletion",
        ),
        pytest.param(
            world(boots(booting(A, minutes_ago=2)), boots(booting(B, minutes_ago=5))),
            (spare(A), BOOTS),
            id="two were granted: the first one is kept",
        ),
        pytest.param(
            world(boots(booting(A)), boots(booting(B, minutes_ago=2)), refusals=DOUBTFUL),
            (spare(A), wait("the server is starting", 780.0)),
            id="but not where landings failed before",
        ),
        pytest.param(
            world(boots(booting(A)), answers(serving(B, minutes_ago=2))),
            (spare(A), done_in(B), wait("UP")),
            id="and one that clients use is kept before any other",
        ),
        pytest.param(
            world(answers(serving(A)), answers(serving(B, minutes_ago=2))),
            (done_in(A), drain(B), wait("UP")),
            id="clients may use both: one drains",
        ),
        pytest.param(
            world(boots(serving(A)), answers(serving(B, minutes_ago=2))),
            (BOOTS,),
            id="but not before the other one answers",
        ),
        pytest.param(
            world(answers(serving(draining_at=NOW - 5))),
            (done_in(), drain(A, begins=False)),
            id="clients are sent back to a slice that fits after all",
        ),
        pytest.param(
            world(boots(booting()), target=places(A, B, C), refusals=DOUBTFUL),
            (BOOTS, request(B)),
            id="where landings failed before, the hunt continues beside it until it serves",
        ),
        pytest.param(
            world(boots(booting()), queues(queued(C, SPOT)), target=places(A, B, C), refusals=DOUBTFUL),
            (BOOTS, wait("QUEUED")),
            id="and a request that waits keeps its place",
        ),
        pytest.param(
            world(boots(booting()), target=places(A, B, requests=1), refusals=DOUBTFUL),
            (BOOTS,),
            id="unless only one request is allowed",
        ),
        pytest.param(
            world(boots(booting()), target=places(A, B), refusals=DOUBTFUL, may_request=False),
            (BOOTS,),
            id="or nothing may be requested",
        ),
        pytest.param(
            world(boots(serving()), refusals=DOUBTFUL),
            (BOOTS,),
            id="a slice that has served is trusted",
        ),
        pytest.param(
            world(boots(booting(booted_at=NOW, minutes_ago=30)), refusals=DOUBTFUL),
            (wait("the server is starting", 900.0),),
            id="and so is one that has been up for half an hour",
        ),
        pytest.param(
            world(boots(booting(booted_at=NOW, minutes_ago=29)), refusals=DOUBTFUL),
            (wait("the server is starting", 900.0), request(B)),
            id="but not a minute earlier",
        ),
        pytest.param(
            world(answers(booting()), refusals=DOUBTFUL),
            (done_in(),),
            id="one that serves ends the hunt, wherever it is",
        ),
        pytest.param(
            world(boots(booting(is_reclaimed=True))),
            (BOOTS, request(B)),
            id="one that was taken back may still be deleted: the hunt continues beside it",
        ),
        pytest.param(
            world(shows(booting(is_reclaimed=True), Phase.UP, undeleted=FULL)),
            (BOOTS,),
            id="until its deletion is known to have failed",
        ),
    ],
)
def test_a_slice_that_is_up(there: World, expected: tuple[Step, ...]) -> None:
    assert steps(there) == expected


# The end of a run, and of a slice that failed.

RENEWED = places(A, B, lifecycle={"renew": True})
RUN = {**SPEC, "placement.max_run_duration": "10h"}


def limited(*, hours_ago: float, **fields: Any) -> Attempt:
    return serving(A, minutes_ago=hours_ago * 60, **{"spec": RUN, **fields})


# Every place of `places(A, B)` refuses for longer than two hours.
CLOSED = [refused(A, lasts=121, scope=RefusalScope.REGION_RESOURCES)]


def renewing(*views: View, **fields: Any) -> World:
    target = places(A, B, lifecycle={"renew": True}, attributes={"placement.max_run_duration": "10h"})
    return world(*views, target=target, **fields)


RENEW = Renew(replica=REPLICA, name=f"slice-{A}")


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        pytest.param(
            renewing(answers(limited(hours_ago=9)), renews=True),
            (done_in(), RENEW, wait("its run ends", 0.0)),
            id="its run ends soon: a successor is requested while it serves",
        ),
        pytest.param(renewing(answers(limited(hours_ago=9))), (done_in(),), id="not by a run that may not renew"),
        pytest.param(renewing(answers(limited(hours_ago=1)), renews=True), (done_in(),), id="not before it is time"),
        pytest.param(
            renewing(boots(limited(hours_ago=9, booted_at=NOW)), renews=True),
            (wait("the server is starting", 900.0),),
            id="and not while it does not serve",
        ),
        pytest.param(
            renewing(answers(limited(hours_ago=9, is_ending=True))),
            (request(A), request(B)),
            id="the successor is requested beside it",
        ),
        pytest.param(
            renewing(answers(limited(hours_ago=9, is_ending=True)), refusals=CLOSED),
            (wait("UP"),),
            id="where no place takes a successor, its end is waited for",
        ),
        pytest.param(
            renewing(answers(limited(hours_ago=9, is_ending=True)), boots(booting(B, spec=RUN))),
            (BOOTS,),
            id="it serves until the successor does",
        ),
        pytest.param(
            renewing(answers(limited(hours_ago=9, is_ending=True)), answers(booting(B, spec=RUN))),
            (done_in(B), drain(A), wait("UP")),
            id="then it drains",
        ),
        pytest.param(
            renewing(answers(limited(hours_ago=9.9, is_ending=True)), others_serve=True),
            (request(A), request(B), drain(A)),
            id="where others serve, it drains before its end without a successor too",
        ),
        pytest.param(
            renewing(
                answers(limited(hours_ago=9.9, is_ending=True, draining_at=NOW - 5)), refusals=CLOSED, others_serve=True
            ),
            (wait(f"for clients that may still use slice-{A}", 895.0),),
            id="and is not put on the list again while none is granted",
        ),
        pytest.param(
            renewing(answers(limited(hours_ago=9.9, is_ending=True)), boots(booting(B, spec=RUN)), others_serve=True),
            (BOOTS, drain(A)),
            id="and while its successor starts",
        ),
        pytest.param(
            renewing(answers(limited(hours_ago=9.9)), others_serve=True),
            (done_in(), drain(A)),
            id="where others serve, it leaves the list one drain before Google deletes it",
        ),
        pytest.param(
            renewing(answers(limited(hours_ago=9.9, draining_at=NOW - 5)), others_serve=True),
            (done_in(),),
            id="and is not put on the list again",
        ),
    ],
)
def test_a_run_that_ends(there: World, expected: tuple[Step, ...]) -> None:
    assert steps(there) == expected


def test_a_slice_whose_server_failed_is_kept_with_the_reason() -> None:
    (step,) = steps(world(fails(booting())))
    assert isinstance(step, GiveUp)
    assert type(step.error) is ServingError
    assert step.error.message == "gemma[3] does not serve: no memory"
    assert step.name == f"slice-{A}"


def test_a_slice_that_failed_ends_the_hunt_beside_it_too() -> None:
    assert [type(step) for step in steps(world(fails(booting()), refusals=DOUBTFUL))] == [GiveUp]


# A replacement: the profile asks for another slice than the one that is there.

LARGER = {"tpu.type": "v6e-16"}
NOT_WANTED = "the profile asks for another slice"
REPLACED = places(A, B, attributes=LARGER)
DESTROYED_FIRST = places(A, B, attributes=LARGER, lifecycle={"create_before_destroy": False})
GONE_SOON = f"for slice-{A} to be gone"


def larger(zone: Zone = B, **fields: Any) -> Attempt:
    """Return a slice that is what the profile asks for now."""
    return booting(zone, spec=LARGER, **fields)


def test_the_advice_to_delete_first_knows_that_other_replicas_serve() -> None:
    (step,) = steps(world(answers(serving()), target=REPLACED, refusals=CLOSED, others_serve=True))
    assert isinstance(step, GiveUp)
    assert "first. Only the other replicas serve until the new slice does.\n" in step.error.hint


@pytest.mark.parametrize(
    ("views", "refusals", "advice"),
    [
        pytest.param(
            [answers(serving())],
            CLOSED,
            f"slice-{A}, which is kept, uses a part of that quota: lifecycle.replace: destroy-before-create deletes it "
            "first. Nothing serves until the new slice does.\n",
            id="a quota that the slice fills",
        ),
        pytest.param([answers(serving(C))], CLOSED, "", id="a quota of another region"),
        pytest.param([answers(serving())], [refused(A, lasts=121, scope=RefusalScope.REGION)], "", id="no quota"),
    ],
)
def test_a_replacement_that_no_place_takes_ends_the_run_and_keeps_the_slice(
    views: Sequence[View], refusals: Sequence[RefusalRecord], advice: str
) -> None:
    (step,) = steps(world(*views, target=REPLACED, refusals=refusals))
    assert isinstance(step, GiveUp)
    assert step.error.message == "All allowed zones refused the request, and retrying will not help."
    first, _, rest = step.error.hint.partition("\n")
    assert first == f"{A}, spot: {A} is full."
    # Each cause but a quota has a remedy of its own.
    wider = "Request more quota, or widen" if refusals[0].scope is not RefusalScope.REGION else "Or widen"
    assert rest == f"{advice}{wider} placement.zones. The next `tpudeploy apply` then tries every zone again."


def test_a_replacement_that_no_place_takes_waits_for_a_request_of_ours_that_leaves() -> None:
    leaves = shows(releasing(B, spec=LARGER), Phase.LEAVING)
    assert steps(world(answers(serving()), leaves, target=REPLACED, refusals=CLOSED)) == (
        wait(f"for slice-{B} to be gone (LEAVING)"),
    )


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        pytest.param(
            world(answers(serving()), target=REPLACED),
            (request(A), request(B)),
            id="it serves until another slice does: that one is requested beside it",
        ),
        pytest.param(
            world(boots(booting()), target=REPLACED),
            (request(A), request(B)),
            id="a slice that no client uses stays as well, until there is another",
        ),
        pytest.param(
            world(queues(queued(A, SPOT)), target=REPLACED),
            (release(A, NOT_WANTED), wait("QUEUED")),
            id="a request for another slice is deleted first, because it holds nothing that serves",
        ),
        pytest.param(
            world(queues(queued(A, SPOT)), queues(queued(B, SPOT, spec=LARGER)), target=REPLACED),
            (release(A, NOT_WANTED), wait("QUEUED"), wait("QUEUED")),
            id="and nothing new is requested until it is gone",
        ),
        pytest.param(
            world(answers(serving()), target=DESTROYED_FIRST),
            (release(A, NOT_WANTED), wait("UP")),
            id="no slice beside it: it is deleted first",
        ),
        pytest.param(
            world(shows(granted(releasing_at=NOW - 2 * HOUR), Phase.LEAVING), target=DESTROYED_FIRST),
            (wait(f"{GONE_SOON} (LEAVING)"),),
            id="and waited for as long as it takes",
        ),
        pytest.param(
            world(shows(granted(releasing_at=NOW - 59), Phase.LEAVING), target=REPLACED),
            (wait(f"{GONE_SOON} (LEAVING)"),),
            id="a slice that leaves uses quota: it is waited for, for a minute",
        ),
        pytest.param(
            world(shows(granted(releasing_at=NOW - 60), Phase.LEAVING), target=REPLACED),
            (request(A), request(B)),
            id="and then no longer",
        ),
        pytest.param(
            world(shows(granted(), Phase.SUSPENDING), target=REPLACED),
            (wait(f"{GONE_SOON} (SUSPENDING)"),),
            id="a slice that Google takes away is waited for, because it says why only at the end",
        ),
        pytest.param(
            world(shows(granted(model=FLEX), Phase.HUSK), target=REPLACED),
            (
                release(A, "HUSK: nothing runs there, but it uses quota"),
                wait(f"{GONE_SOON} (HUSK)"),
            ),
            id="a husk of a slice that was granted is waited for as well",
        ),
        pytest.param(
            world(answers(serving()), target=places(B, C)),
            (request(B), request(C)),
            id="a slice in a zone that the profile does not allow any more is replaced",
        ),
        pytest.param(
            world(answers(serving(is_to_go=True))),
            (request(A), request(B)),
            id="and one that the user asked to replace",
        ),
        pytest.param(
            world(answers(serving()), boots(larger()), target=REPLACED),
            (BOOTS,),
            id="the old slice serves while the new one boots",
        ),
        pytest.param(
            world(
                answers(serving()),
                boots(larger()),
                refusals=[failed_landing(B)],
                target=places(A, B, C, attributes=LARGER),
            ),
            (BOOTS,),
            id="and no third is requested, wherever the new one is",
        ),
        pytest.param(
            world(answers(serving()), answers(larger()), target=REPLACED),
            (done_in(B), drain(A), wait("UP")),
            id="the new slice serves: clients are sent there, and the old one drains",
        ),
        pytest.param(
            world(boots(booting()), answers(larger()), target=REPLACED),
            (done_in(B), release(A, "its replacement serves"), wait("UP")),
            id="an old slice that no client uses is deleted at once",
        ),
        pytest.param(
            world(answers(serving(draining_at=NOW - 59)), answers(larger(served=True)), target=REPLACED, running=IDLE),
            (done_in(B), wait(f"for clients that may still use slice-{A}", 1.0)),
            id="it drains for a minute",
        ),
        pytest.param(
            world(answers(serving(draining_at=NOW - 60)), answers(larger(served=True)), target=REPLACED, running=IDLE),
            (done_in(B), release(A, "its replacement serves"), wait(f"for clients that may still use slice-{A}", 0.0)),
            id="and is then deleted",
        ),
        pytest.param(
            world(answers(serving(draining_at=NOW - 60)), answers(larger(served=True)), target=REPLACED),
            (done_in(B), wait(f"for clients that may still use slice-{A}", 840.0)),
            id="unless it does not say whether it still runs requests",
        ),
        pytest.param(
            world(
                answers(serving(draining_at=NOW - 60)),
                answers(larger(served=True)),
                target=REPLACED,
                running={f"slice-{A}": 2},
            ),
            (done_in(B), wait(f"for 2 requests that slice-{A} still runs", 840.0)),
            id="unless it still runs requests",
        ),
        pytest.param(
            world(
                answers(serving(draining_at=NOW - 900)),
                answers(larger(served=True)),
                target=REPLACED,
                running={f"slice-{A}": 2},
            ),
            (
                done_in(B),
                release(A, "its replacement serves; 2 requests exceeded the drain limit"),
                wait(f"for 2 requests that slice-{A} still runs", 0.0),
            ),
            id="for which it gets 15 minutes",
        ),
        pytest.param(
            world(
                queues(queued(C, SPOT)), answers(serving()), boots(larger()), target=places(A, B, C, attributes=LARGER)
            ),
            (BOOTS,),
            id="a request for the old slice holds nothing, and is left until the new one serves",
        ),
        pytest.param(
            world(queues(queued(C, SPOT)), answers(larger()), target=places(A, B, C, attributes=LARGER)),
            (done_in(B), release(C, "its replacement serves"), wait("QUEUED")),
            id="and is then deleted",
        ),
    ],
)
def test_a_slice_that_is_replaced(there: World, expected: tuple[Step, ...]) -> None:
    assert steps(there) == expected


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        pytest.param(
            world(answers(serving(draining_at=NOW - 5)), target=REPLACED),
            (drain(A, begins=False), request(A), request(B)),
            id="clients are sent back to it, and another successor is requested",
        ),
        pytest.param(
            world(silent(serving(draining_at=NOW - 5)), answers(serving(B)), target=REPLACED),
            (wait(f"for clients that may still use slice-{A}", 55.0),),
            id="not where a slice still takes its clients: it drains on, and then goes",
        ),
        pytest.param(
            world(silent(serving(draining_at=NOW - 60)), answers(serving(B)), target=REPLACED),
            (
                release(A, "its replacement serves"),
                wait(f"for clients that may still use slice-{A}", 0.0),
            ),
            id="and is deleted once no client can use it any more",
        ),
        pytest.param(
            world(boots(serving(draining_at=NOW - 5)), boots(serving(B)), target=REPLACED),
            (drain(A, begins=False), request(A), request(B)),
            id="a slice that does not answer takes no clients",
        ),
    ],
)
def test_a_slice_drains_and_what_was_to_take_over_is_lost(there: World, expected: tuple[Step, ...]) -> None:
    assert steps(there) == expected


@pytest.mark.parametrize(
    ("there", "kind", "message", "others"),
    [
        pytest.param(
            world(answers(serving()), fails(larger()), target=REPLACED),
            GivenUpUpdate,
            f"gemma[3] does not serve on its new slice: no memory\ngemma[3] serves as before: slice-{A} was not changed,"
            " and clients are still sent there.",
            (),
            id="the old slice serves on, and the error says so",
        ),
        pytest.param(
            world(answers(serving(draining_at=NOW - 5)), fails(larger()), target=REPLACED),
            GivenUpUpdate,
            f"gemma[3] does not serve on its new slice: no memory\ngemma[3] serves as before: slice-{A} was not changed,"
            " and clients are still sent there.",
            (drain(A, begins=False),),
            id="clients are sent back to an old slice that drained",
        ),
        pytest.param(
            world(answers(serving()), fails(larger(served=True, draining_at=NOW - 5)), target=REPLACED),
            GivenUpUpdate,
            f"gemma[3] does not serve on its new slice: no memory\ngemma[3] serves as before: slice-{A} was not changed,"
            " and clients are still sent there.",
            (),
            id="no client is sent to the new slice, which served once",
        ),
        pytest.param(
            world(boots(serving()), fails(larger()), target=REPLACED),
            ServingError,
            "gemma[3] does not serve: no memory",
            (),
            id="the old slice does not answer either",
        ),
        pytest.param(
            world(answers(serving()), fails(larger()), shows(releasing(C), Phase.LEAVING), target=REPLACED),
            GivenUpUpdate,
            f"gemma[3] does not serve on its new slice: no memory\ngemma[3] serves as before: slice-{A} was not changed,"
            " and clients are still sent there.",
            (wait(f"for slice-{C} to be gone (LEAVING)"),),
            id="what is being deleted is waited for, but not what serves on",
        ),
    ],
)
def test_the_new_slice_fails(there: World, kind: type[ServingError], message: str, others: tuple[Step, ...]) -> None:
    step, *rest = steps(there)
    assert isinstance(step, GiveUp)
    assert (type(step.error), step.error.message, step.name) == (kind, message, f"slice-{B}")
    assert tuple(rest) == others


def undone(one: Attempt, *, changes: str = "7") -> View:
    """Return an attempt whose node undid a change, and serves with the server before."""
    view = answers(one, metadata={SPEC_KEY: SERVER, CHANGE_KEY: changes})
    report = BootReport(phase=BootPhase.SERVING, change=changes, undone=changes, cause="no such flag")
    return replace(view, report=report)


@pytest.mark.parametrize(
    ("views", "kind", "message"),
    [
        pytest.param(
            (),
            RolledBack,
            "gemma[3] runs the previous server again, because the change failed: no such flag",
            id="one slice: the server before serves again",
        ),
        pytest.param(
            (answers(serving(A)),),
            GivenUpUpdate,
            f"gemma[3] does not serve on its new slice: no such flag\ngemma[3] serves as before: slice-{A} was not"
            " changed, and clients are still sent there.",
            id="a second slice: no client was ever sent there, so the update failed",
        ),
    ],
)
def test_a_change_that_was_undone(views: tuple[View, ...], kind: type[ServingError], message: str) -> None:
    changed = larger(booted="before", change="7", told_at=NOW - MINUTE)
    step, *rest = steps(world(*views, undone(changed), target=REPLACED))
    assert isinstance(step, GiveUp)
    assert (type(step.error), step.error.message, step.serves, rest) == (kind, message, True, [])


def test_clients_come_back_to_a_slice_that_undid_its_change() -> None:
    changed = larger(booted="before", change="7", told_at=NOW - MINUTE, served=True, draining_at=NOW - 5)
    step, *rest = steps(world(undone(changed), target=REPLACED))
    assert isinstance(step, GiveUp)
    assert rest == [drain(B, begins=False)]


@pytest.mark.parametrize(
    ("views", "expected"),
    [
        pytest.param(
            (boots(booting()), View(queued(B, SPOT))),
            (wait(f"{B} does not answer"), BOOTS),
            id="the slice that is up starts, and the other request is deleted later",
        ),
        pytest.param(
            (answers(serving()), View(queued(B, SPOT))),
            (wait(f"{B} does not answer"), done_in(A), wait(f"{B} does not answer")),
            id="the end is reached once it is gone",
        ),
    ],
)
def test_an_api_that_does_not_answer_is_sent_no_deletion(views: tuple[View, ...], expected: tuple[Step, ...]) -> None:
    assert steps(world(*views, unseen={f"slice-{B}": "503"})) == expected


# A destroy.

UNWANTED = "no longer wanted"


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        pytest.param(world(), (), id="nothing is there: nothing is left to do"),
        pytest.param(world(View(attempt(seen=True))), (forget(A, "gone"),), id="what is gone is forgotten"),
        pytest.param(
            world(answers(serving())), (release(A, UNWANTED), wait("UP")), id="a slice that serves is deleted"
        ),
        pytest.param(
            world(queues(queued(A))), (release(A, UNWANTED), wait("QUEUED")), id="and so is a request that waits"
        ),
        pytest.param(
            world(shows(releasing(), Phase.LEAVING)), (wait(f"{GONE_SOON} (LEAVING)"),), id="a deletion is waited for"
        ),
        pytest.param(
            world(shows(attempt(), Phase.HUSK)),
            (release(A, "HUSK: nothing runs there, but it uses quota"), wait(f"{GONE_SOON} (HUSK)")),
            id="a husk is deleted",
        ),
        pytest.param(
            world(View(attempt(asked_at=NOW - 20))),
            (wait("requested; not visible yet", 100.0),),
            id="a request that is not visible yet is waited for, because it may still be granted",
        ),
        pytest.param(
            world(shows(releasing(asked_at=NOW - 20), Phase.REFUSED)),
            (wait("refused", 100.0),),
            id="a request that failed for an unknown reason is waited for until the grace is over",
        ),
        pytest.param(
            world(answers(serving(draining_at=NOW)), running=IDLE),
            (release(A, UNWANTED), wait(f"for clients that may still use slice-{A}", 60.0)),
            id="a slice that drains is deleted at once",
        ),
        pytest.param(
            world(shows(releasing(), Phase.UP, undeleted=FULL)),
            (
                release(A, ""),
                wait(f"{GONE_SOON} (UP; its deletion failed: There is no more capacity.)"),
            ),
            id="a deletion that failed is requested again, and the reason is named",
        ),
        pytest.param(
            world(answers(serving(A)), queues(queued(B)), View(attempt(C, seen=True))),
            (forget(C, "gone"), release(A, UNWANTED), release(B, UNWANTED), wait("UP"), wait("QUEUED")),
            id="everything is deleted at once",
        ),
    ],
)
def test_a_destroy_leaves_nothing(there: World, expected: tuple[Step, ...]) -> None:
    assert removal(there) == expected


def test_a_refused_request_is_asked_about_until_the_last_second_of_the_grace() -> None:
    one = releasing(asked_at=NOW - 200, releasing_at=NOW - 200)
    assert removal(world(View(replace(one, asked_at=NOW - 119.5)))) == (wait("requested; not visible yet", 0.5),)


# Beside other replicas (decision 60).

CHANGED = places(A, B, attributes={"serving.max_model_len": 8192})
CHANGED_SERVER = server_print(CHANGED.attributes)
HELD = "until gemma[1] serves (lifecycle.max_unavailable: 1)"
FIRST_GOES = places(A, attributes=LARGER, lifecycle={"create_before_destroy": False})


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        pytest.param(
            world(answers(serving()), target=CHANGED, others_serve=True),
            (drain(A),),
            id="it leaves the list before its server is changed",
        ),
        pytest.param(
            world(answers(serving(draining_at=NOW - 30)), target=CHANGED, others_serve=True, running=IDLE),
            (wait(f"for clients that may still use slice-{A}", 30.0),),
            id="it is not changed while a router may still send requests",
        ),
        pytest.param(
            world(answers(serving(draining_at=NOW - 60)), target=CHANGED, others_serve=True, running=IDLE),
            (PushChange(replica=REPLICA, name=f"slice-{A}", boot=CHANGED_SERVER),),
            id="it is changed once it has no requests",
        ),
        pytest.param(
            world(answers(serving(draining_at=NOW - 60)), target=CHANGED, others_serve=True, running={f"slice-{A}": 2}),
            (wait(f"for 2 requests that slice-{A} still runs", 840.0),),
            id="not while it has requests",
        ),
        pytest.param(
            world(
                answers(serving(draining_at=NOW - 900)), target=CHANGED, others_serve=True, running={f"slice-{A}": 2}
            ),
            (PushChange(replica=REPLICA, name=f"slice-{A}", boot=CHANGED_SERVER),),
            id="but for 15 minutes at most",
        ),
        pytest.param(
            world(answers(serving()), target=CHANGED),
            (PushChange(replica=REPLICA, name=f"slice-{A}", boot=CHANGED_SERVER),),
            id="without another replica it is changed at once",
        ),
        pytest.param(
            world(answers(serving(draining_at=NOW - 5)), target=CHANGED),
            (PushChange(replica=REPLICA, name=f"slice-{A}", boot=CHANGED_SERVER),),
            id="also where the other one is lost while it drains, and may be absent too",
        ),
        pytest.param(
            world(answers(serving()), target=CHANGED, others_serve=True, held_because=HELD),
            (Wait(replica=REPLICA, why=HELD, is_for_replicas=True),),
            id="it waits while another replica is absent",
        ),
        pytest.param(
            world(answers(serving(draining_at=NOW - 99)), target=CHANGED, held_because=HELD),
            (drain(A, begins=False),),
            id="it comes back where the other one is lost while it drains",
        ),
        pytest.param(
            world(boots(serving(served=False)), target=CHANGED, others_serve=True, held_because=HELD),
            (PushChange(replica=REPLICA, name=f"slice-{A}", boot=CHANGED_SERVER),),
            id="a server that serves nobody is changed at once",
        ),
        pytest.param(
            world(
                replace(answers(serving()), health=Health(serving=False, detail="503")),
                target=CHANGED,
                others_serve=True,
            ),
            (PushChange(replica=REPLICA, name=f"slice-{A}", boot=CHANGED_SERVER),),
            id="so is one that does not answer",
        ),
        pytest.param(
            world(answers(serving(draining_at=NOW - 59.5)), target=CHANGED, others_serve=True, running=IDLE),
            (wait(f"for clients that may still use slice-{A}", 0.5),),
            id="it drains to its last second",
        ),
        pytest.param(
            world(answers(serving(draining_at=NOW - 99)), others_serve=True),
            (done_in(A), drain(A, begins=False)),
            id="it comes back once it answers a completion",
        ),
        pytest.param(
            world(answers(serving()), target=FIRST_GOES, others_serve=True),
            (drain(A), wait("UP")),
            id="it leaves the list before it is deleted for its replacement",
        ),
    ],
)
def test_a_replica_beside_others(there: World, expected: tuple[Step, ...]) -> None:
    assert steps(there) == expected


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        pytest.param(
            world(answers(serving()), others_serve=True),
            (drain(A), wait("UP")),
            id="it leaves the list before it is deleted",
        ),
        pytest.param(
            world(answers(serving(draining_at=NOW - 60)), others_serve=True, running=IDLE),
            (release(A, UNWANTED), wait(f"for clients that may still use slice-{A}", 0.0)),
            id="it is deleted once it has no requests",
        ),
        pytest.param(
            world(answers(serving(draining_at=NOW - 900)), others_serve=True, running={f"slice-{A}": 2}),
            (
                release(A, f"{UNWANTED}; 2 requests exceeded the drain limit"),
                wait(f"for 2 requests that slice-{A} still runs", 0.0),
            ),
            id="the reason counts the requests that it did not complete",
        ),
        pytest.param(
            world(answers(serving()), held_because="until another replica serves"),
            (Wait(replica=REPLICA, why="until another replica serves", is_for_replicas=True),),
            id="it stays until those that are kept serve",
        ),
        pytest.param(
            world(
                answers(serving()),
                View(granted(C)),
                shows(releasing(B, releasing_at=NOW - 3600), Phase.PROVISIONING),
                held_because="until another replica serves",
            ),
            (
                forget(C, "gone"),
                release(B, ""),
                Wait(replica=REPLICA, why="until another replica serves", is_for_replicas=True),
            ),
            id="meanwhile what is gone is forgotten, and a deletion that had no effect is repeated",
        ),
        pytest.param(
            world(queues(queued(B)), others_serve=True),
            (release(B, UNWANTED), wait("QUEUED")),
            id="a request is deleted at once",
        ),
    ],
)
def test_a_replica_that_is_removed_beside_others(there: World, expected: tuple[Step, ...]) -> None:
    assert removal(there) == expected


# What fits.


@pytest.mark.parametrize(
    ("target", "one", "does_match", "does_fit"),
    [
        pytest.param(places(A), serving(), True, True, id="the slice that the profile asks for"),
        pytest.param(places(B), serving(), False, False, id="in a zone that it does not allow"),
        pytest.param(deployment([candidate(A, FLEX)]), serving(), False, False, id="by a model that it does not allow"),
        pytest.param(places(A), serving(is_to_go=True), False, False, id="the user asked to replace it"),
        pytest.param(places(A, attributes=LARGER), serving(), False, False, id="of another size"),
        pytest.param(
            places(A, attributes={"serving.max_model_len": 1024}),
            serving(),
            True,
            True,
            id="its server can be changed in place",
        ),
        pytest.param(
            places(A, attributes={"serving.max_model_len": 1024}, lifecycle={"blue_green": True}),
            serving(),
            False,
            True,
            id="its server is changed on a second slice, of the same kind",
        ),
        pytest.param(
            places(A, lifecycle={"renew": True}),
            serving(is_ending=True),
            False,
            True,
            id="its run ends: another of the same kind",
        ),
        pytest.param(
            places(A, attributes=LARGER, lifecycle={"ignore_changes": ("tpu.type",)}),
            serving(),
            True,
            True,
            id="the profile ignores the difference",
        ),
    ],
)
def test_what_need_not_be_replaced(target: Deployment, one: Attempt, does_match: bool, does_fit: bool) -> None:
    assert (matches(target, one), fits(target, one)) == (does_match, does_fit)


# A spare that is needed after all.


def given_up(zone: Zone = B, **fields: Any) -> Attempt:
    return landing(
        zone, **{"releasing_at": NOW - 5, "is_spare": True, "release_reason": "another slice is kept", **fields}
    )


def given_up_granted(zone: Zone = B, **fields: Any) -> Attempt:
    return booting(
        zone, **{"releasing_at": NOW - 5, "is_spare": True, "release_reason": "another slice is kept", **fields}
    )


AFTER_ALL = wait(f"slice-{B} is kept after all", 0.0)


@pytest.mark.parametrize(
    ("there", "is_kept"),
    [
        pytest.param(world(lands(given_up())), True, id="the other one is lost: what Google still makes is kept"),
        pytest.param(world(boots(given_up_granted())), True, id="and what it has made"),
        pytest.param(world(lands(given_up(is_spare=False))), False, id="what was given up for another reason is not"),
        pytest.param(world(shows(given_up(), Phase.LEAVING)), False, id="nor what Google deletes"),
        pytest.param(world(queues(given_up())), False, id="nor a request that waits again"),
        pytest.param(world(View(given_up()), unseen={f"slice-{B}": "503"}), False, id="nor what a silent zone hides"),
        pytest.param(
            world(lands(given_up()), target=places(A)), False, id="nor what the profile does not allow any more"
        ),
        pytest.param(world(lands(given_up()), lands(landing(A))), False, id="another one is sure to land"),
        pytest.param(
            world(lands(given_up()), lands(landing(A)), refusals=DOUBTFUL), True, id="not where landings failed before"
        ),
        pytest.param(
            world(lands(given_up()), lands(landing(A, minutes_ago=10))), True, id="nor one that takes for ever"
        ),
        pytest.param(world(lands(given_up()), queues(queued(A, SPOT))), True, id="a request that waits is not sure"),
        pytest.param(
            world(boots(given_up_granted()), lands(landing(A))),
            False,
            id="its deletion may succeed, and the landing is sure",
        ),
        pytest.param(
            world(shows(given_up_granted(), Phase.UP, undeleted=FULL), lands(landing(A))),
            True,
            id="one that is up, and whose deletion failed, is better than one about to land",
        ),
        pytest.param(
            world(shows(given_up(), Phase.PROVISIONING, undeleted=FULL), lands(landing(A))),
            False,
            id="but not one that is still made",
        ),
        pytest.param(
            world(shows(given_up_granted(), Phase.UP, undeleted=FULL), boots(booting(A))), False, id="another one is up"
        ),
        pytest.param(
            world(answers(given_up_granted(B), undeleted=FULL), boots(booting(A))),
            True,
            id="one that serves, and whose deletion failed, is better than one that starts",
        ),
        pytest.param(
            world(answers(given_up_granted(B), undeleted=FULL), answers(booting(A))),
            False,
            id="but not than one that serves too",
        ),
        pytest.param(
            world(answers(given_up_granted()), boots(booting(A))),
            False,
            id="nor while its deletion may succeed",
        ),
        pytest.param(
            world(answers(given_up_granted(A), undeleted=FULL), boots(booting(B)), refusals=DOUBTFUL),
            False,
            id="nor where landings failed before",
        ),
        pytest.param(
            world(lands(given_up()), boots(booting(A)), refusals=DOUBTFUL),
            True,
            id="not where landings failed before: it may be gone in minutes",
        ),
        pytest.param(
            world(lands(given_up()), answers(serving(A)), refusals=DOUBTFUL), False, id="unless clients use it"
        ),
        pytest.param(
            world(lands(given_up()), answers(serving(A, spec=LARGER))), True, id="what is to be replaced does not count"
        ),
        pytest.param(
            world(lands(given_up()), boots(booting(A, releasing_at=NOW))), True, id="nor what is being released"
        ),
    ],
)
def test_a_spare_is_kept_where_nothing_else_is_sure(there: World, is_kept: bool) -> None:
    kept = [step.name for step in steps(there) if isinstance(step, Reclaim)]
    assert kept == ([f"slice-{B}"] if is_kept else [])


def test_why_a_spare_is_kept() -> None:
    assert reclaim(B) in steps(world(answers(given_up_granted()), queues(queued(A, SPOT))))
    first = world(answers(given_up_granted(), undeleted=FULL), boots(booting(A)))
    assert steps(first) == (reclaim(B, "it serves already"), AFTER_ALL)


def test_a_spare_is_kept_before_anything_else_is_decided() -> None:
    there = world(lands(given_up()), View(attempt(A, seen=True)), shows(attempt(C), Phase.HUSK))
    dead = release(C, "HUSK: nothing runs there, but it uses quota")
    assert steps(there) == (forget(A, "gone"), dead, reclaim(B), AFTER_ALL)


def test_a_spare_that_is_kept_is_not_deleted_again() -> None:
    there = world(boots(given_up_granted(releasing_at=NOW - 99)), target=places(B))
    assert steps(there) == (reclaim(B), AFTER_ALL)


def test_of_two_spares_the_one_that_was_granted_is_kept() -> None:
    assert steps(world(lands(given_up(A)), boots(given_up_granted(B)))) == (reclaim(B), AFTER_ALL)


def test_and_of_two_that_were_granted_not_the_one_where_landings_failed() -> None:
    there = world(boots(given_up_granted(A, minutes_ago=9)), boots(given_up_granted(B)), refusals=DOUBTFUL)
    assert steps(there) == (reclaim(B), AFTER_ALL)
