"""What one observation leaves in the state, for runs that come later; and the observation that a state stands in for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from reconcile.cases import (
    FLEX,
    HOUR,
    MINUTE,
    NOW,
    A,
    B,
    attempt,
    failed_landing,
    granted,
    record,
    refused,
    releasing,
    serving,
    slice_of,
)

from tpudeploy.domain.life import Draining, Landing, Life, Queued, Releasing, Requested, Serving, Starting
from tpudeploy.domain.slices import BootPhase, BootReport, CreateOperation, Health, Observed, Phase, Slice
from tpudeploy.domain.state import Attempt, Boot, NodeChange, Record, RefusalRecord, State
from tpudeploy.reconcile.merge_observation import cached_observation, merge_observation

UP, SILENT = Health(serving=True, detail=""), Health(serving=False, detail="connection refused")


def state(*records: Record) -> State:
    return State(deployment="gemma", lineage="0" * 32, records=records)


def merged(one: Record, *slices: Slice, **fields: Any) -> Record:
    """Return the record of a replica after an observation of these slices."""
    observed = Observed(at=NOW, slices={each.name: each for each in slices}, **fields)
    return merge_observation(state(one), observed).record(one.index)


@pytest.mark.parametrize(
    ("before", "phase", "after"),
    [
        pytest.param(Requested(), None, Requested(), id="a request that the cloud does not list yet"),
        pytest.param(Requested(), Phase.REFUSED, Requested(), id="a create that failed lists nothing"),
        pytest.param(Requested(), Phase.CREATING, Queued(), id="the cloud lists the request"),
        pytest.param(Requested(), Phase.QUEUED, Queued(), id="the request waits"),
        pytest.param(Queued(), None, Queued(), id="a request that is gone is not forgotten here"),
        pytest.param(Queued(), Phase.PROVISIONING, Landing(provisioning_at=NOW), id="its machine is created"),
        pytest.param(
            Queued(), Phase.LOST, Landing(provisioning_at=NOW), id="it is granted, and its machine is not visible yet"
        ),
        pytest.param(
            Landing(provisioning_at=NOW - 60),
            Phase.PROVISIONING,
            Landing(provisioning_at=NOW - 60),
            id="the first time that its machine was seen counts",
        ),
        pytest.param(
            Landing(provisioning_at=NOW - 60),
            Phase.UP,
            Starting(granted_at=NOW, provisioning_at=NOW - 60),
            id="its machine is up",
        ),
        pytest.param(
            Starting(granted_at=NOW - 60), Phase.UP, Starting(granted_at=NOW - 60), id="it was granted before"
        ),
        pytest.param(
            Serving(granted_at=NOW - 60), Phase.HUSK, Serving(granted_at=NOW - 60), id="a loss is not decided"
        ),
        pytest.param(
            Releasing(before=Queued(), releasing_at=NOW - 60),
            Phase.UP,
            Releasing(before=Starting(granted_at=NOW), releasing_at=NOW - 60),
            id="a slice that is granted while it is released may be billed",
        ),
    ],
)
def test_how_far_a_request_came(before: Life, phase: Phase | None, after: Life) -> None:
    one = attempt(life=before)
    slices = () if phase is None else (slice_of(one, phase),)
    assert merged(record(one), *slices).attempts == (replace(one, life=after),)


def changed(**fields: Any) -> Attempt:
    """Return a slice whose node was told of change 7, from one server to another."""
    return serving(**{"booted": "old", "change": "7", "told_at": NOW - 60, "booted_at": NOW - HOUR, **fields})


def report(spec: str = "new", phase: BootPhase = BootPhase.STARTING, **fields: Any) -> BootReport:
    return BootReport(phase=phase, **{"spec": spec, "change": "7", **fields})


STARTED_NEW = Boot(server="new", at=NOW, previous="old")


@pytest.mark.parametrize(
    ("one", "boot_report", "boot", "announced", "failed"),
    [
        pytest.param(changed(), report(), STARTED_NEW, False, False, id="the node took it over: its server has ended"),
        pytest.param(changed(), None, changed().boot, True, False, id="the node reports nothing"),
        pytest.param(
            changed(), report(change="6"), changed().boot, True, False, id="the node reports the change before"
        ),
        pytest.param(
            serving(booted="old"), report(change=""), Boot(server="old"), True, False, id="the node was told of none"
        ),
        pytest.param(changed(), report("old"), changed().boot, True, False, id="the server before runs on"),
        pytest.param(
            changed(boot_asked=False),
            report("old"),
            Boot(server="old", at=NOW, previous="old"),
            False,
            False,
            id="the same server was to start again, and did",
        ),
        pytest.param(
            changed(booted="new", booted_before="old"),
            report("old", undone="7"),
            Boot(server="old", at=NOW, previous="new"),
            False,
            False,
            id="the node goes back to the server before, which is another start",
        ),
        pytest.param(
            changed(), report("old", BootPhase.SERVING, undone="7"), changed().boot, True, True, id="it went back"
        ),
        pytest.param(
            changed(is_failed=True),
            report("old", BootPhase.SERVING, undone="7"),
            changed().boot,
            True,
            True,
            id="it went back, and the state says so already",
        ),
        pytest.param(
            changed(), report("old", BootPhase.FAILED, undone="7"), changed().boot, True, False, id="it cannot go back"
        ),
        pytest.param(
            changed(), report("old", BootPhase.SERVING, undone="6"), changed().boot, True, False, id="an earlier undo"
        ),
    ],
)
def test_what_a_node_made_of_a_change(
    one: Attempt, boot_report: BootReport | None, boot: Boot, announced: bool, failed: bool
) -> None:
    reports = {} if boot_report is None else {one.name: boot_report}
    (after,) = merged(record(one), slice_of(one), reports=reports).attempts
    assert (after.boot, after.is_announced, after.is_failed) == (boot, announced, failed)


def test_a_report_without_a_slice_is_not_read() -> None:
    one = changed()
    assert merged(record(one), reports={one.name: report()}).attempts == (one,)


TOLD_OTHER: dict[str, Any] = {
    "booted": "old",
    "change": "7",
    "told_at": NOW - 60,
    "update_asked": "new",
    "update_asked_at": NOW - 60,
}


@pytest.mark.parametrize(
    ("attempts", "health", "names"),
    [
        pytest.param((granted(A),), {"slice-us-east5-a": UP}, ["slice-us-east5-a"], id="it serves"),
        pytest.param((granted(A),), {"slice-us-east5-a": SILENT}, [], id="it does not serve"),
        pytest.param((granted(A),), {}, [], id="it was not probed"),
        pytest.param(
            (granted(A), granted(B, minutes_ago=9)),
            {"slice-us-east5-a": UP, "slice-us-east5-b": UP},
            ["slice-us-east5-b"],
            id="of two that serve, clients get the one that is kept",
        ),
        pytest.param(
            (serving(A), granted(B, minutes_ago=9)),
            {"slice-us-east5-b": UP},
            ["slice-us-east5-a"],
            id="clients have another one already, which is yet to be taken over from",
        ),
        pytest.param(
            (serving(A, releasing_at=NOW - 9), granted(B)),
            {"slice-us-east5-b": UP},
            ["slice-us-east5-a", "slice-us-east5-b"],
            id="the one that clients have is being released",
        ),
        pytest.param(
            (granted(A, **TOLD_OTHER),),
            {"slice-us-east5-a": UP},
            [],
            id="the node was given another server: which one answers is not known",
        ),
        pytest.param(
            (granted(A, **{**TOLD_OTHER, "update_asked": "old"}),),
            {"slice-us-east5-a": UP},
            ["slice-us-east5-a"],
            id="the node was given the same server again",
        ),
        pytest.param(
            (granted(A, booted="old", update_asked="new", update_asked_at=NOW - 60),),
            {"slice-us-east5-a": UP},
            ["slice-us-east5-a"],
            id="only the next boot starts another server",
        ),
        pytest.param(
            (granted(A, **TOLD_OTHER), granted(B)),
            {"slice-us-east5-a": UP, "slice-us-east5-b": UP},
            ["slice-us-east5-b"],
            id="the other one is known to be ours",
        ),
    ],
)
def test_the_slice_that_clients_may_use(
    attempts: tuple[Attempt, ...], health: dict[str, Health], names: list[str]
) -> None:
    after = merged(record(*attempts), *map(slice_of, attempts), health=health)
    assert [one.name for one in after.attempts if one.is_announced] == names


def test_clients_are_not_sent_to_a_place_where_the_last_landing_failed() -> None:
    doubtful, other = granted(A, minutes_ago=9), granted(B)
    before = record(doubtful, other, refusals=[failed_landing(A)])
    after = merged(before, slice_of(doubtful), slice_of(other), health={doubtful.name: UP, other.name: UP})
    assert ([one.name for one in after.attempts if one.is_announced], after.home) == ([other.name], B)


@pytest.mark.parametrize(
    ("attempts", "home"),
    [
        pytest.param((granted(A),), A, id="the zone of its slice"),
        pytest.param((granted(A), granted(B, minutes_ago=9)), B, id="of two, that of the one that is kept"),
        pytest.param((granted(A), releasing(B)), A, id="a slice that is released does not count"),
        pytest.param((releasing(A, granted_at=NOW - 60),), B, id="without a slice, the zone of the last one"),
        pytest.param((attempt(A),), B, id="a request is no slice yet"),
        pytest.param((), B, id="nothing is requested"),
    ],
)
def test_the_zone_that_is_requested_first_after_a_loss(attempts: tuple[Attempt, ...], home: object) -> None:
    assert merged(record(*attempts, home=B)).home == home


def test_a_place_where_a_slice_lasted_is_not_doubtful_any_more() -> None:
    landing, full = failed_landing(A), refused(A, lasts=1)
    lasted, recent = granted(A, minutes_ago=30), granted(A, minutes_ago=29)
    after = [
        merged(record(one, refusals=[landing, full]), *slices).refusals
        for one, slices in (
            (lasted, (slice_of(lasted),)),
            (recent, (slice_of(recent),)),
            (lasted, (slice_of(lasted, Phase.HUSK),)),
            (lasted, ()),
        )
    ]
    assert after == [(full,), (landing, full), (landing, full), (landing, full)]


def test_a_place_that_is_not_doubtful_any_more_is_preferred_again_at_once() -> None:
    lasted, other = granted(A, minutes_ago=30), granted(B, minutes_ago=40, life=None)
    assert merged(record(lasted, other, refusals=[failed_landing(A)]), slice_of(lasted)).home == B
    only_later = granted(B, minutes_ago=20)
    assert merged(record(lasted, only_later, refusals=[failed_landing(A)]), slice_of(lasted)).home == A


LATER = NOW + HOUR


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({"asked_at": LATER}, {"asked_at": NOW}, id="the request"),
        pytest.param(
            {"asked_at": LATER, "expires_at": LATER + MINUTE},
            {"asked_at": NOW, "expires_at": NOW + MINUTE},
            id="the request expires as long after it as before",
        ),
        pytest.param({"expires_at": LATER}, {"expires_at": LATER}, id="the end of a request lies in the future"),
        pytest.param({"life": Starting(granted_at=LATER)}, {"life": Starting(granted_at=NOW)}, id="the grant"),
        pytest.param(
            {"life": Draining(granted_at=NOW - 1, draining_at=LATER)},
            {"life": Draining(granted_at=NOW - 1, draining_at=NOW)},
            id="the drain",
        ),
        pytest.param({"boot": Boot(server="s", at=LATER)}, {"boot": Boot(server="s", at=NOW)}, id="the last restart"),
        pytest.param(
            {"boot": Boot(server="s", at=NOW - 1)}, {"boot": Boot(server="s", at=NOW - 1)}, id="a restart in the past"
        ),
        pytest.param(
            {"change": NodeChange(name="7", sent_at=LATER)},
            {"change": NodeChange(name="7", sent_at=NOW)},
            id="the last change",
        ),
        pytest.param(
            {"change": NodeChange(name="7", sent_at=NOW - 1)},
            {"change": NodeChange(name="7", sent_at=NOW - 1)},
            id="a change in the past",
        ),
    ],
)
def test_no_wait_lasts_until_a_clock_that_went_back_is_there_again(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    one = replace(attempt(), **before)
    assert merged(record(one)).attempts == (replace(one, **after),)


@pytest.mark.parametrize(
    ("ahead", "moved"),
    [
        pytest.param(60, 60, id="its time lies in the future: it holds as long as it did"),
        pytest.param(0.5, 0.5, id="by however little"),
        pytest.param(0, 0, id="it is of now"),
        pytest.param(-60, 0, id="it is of the past"),
    ],
)
def test_a_refusal_holds_no_longer_where_the_clock_went_back(ahead: float, moved: float) -> None:
    def at(seconds: float) -> RefusalRecord:
        return replace(refused(A), at=NOW + seconds, until=NOW + seconds + 300)

    assert merged(record(refusals=[at(ahead)])).refusals == (at(ahead - moved),)


def test_the_other_replicas_stay_as_they_are() -> None:
    one, other = attempt(A), attempt(B)
    before = state(record(one), record(other, index=1))
    after = merge_observation(before, Observed(at=NOW, slices={other.name: slice_of(other, Phase.QUEUED)}))
    assert after.records == (record(one), record(replace(other, life=Queued()), index=1))


def test_an_observation_without_news_returns_the_very_state_so_nothing_is_saved() -> None:
    one = serving()
    before = state(record(one, home=A))
    assert (
        merge_observation(before, Observed(at=NOW, slices={one.name: slice_of(one)}, health={one.name: UP})) is before
    )


@pytest.mark.parametrize(
    ("one", "phase"),
    [
        pytest.param(attempt(), Phase.QUEUED, id="a request waits"),
        pytest.param(granted(), Phase.UP, id="a granted slice is up"),
        pytest.param(releasing(granted_at=NOW - 60), Phase.LEAVING, id="a released slice is being deleted"),
    ],
)
def test_without_an_observation_each_slice_is_as_it_was_last_seen(one: Attempt, phase: Phase) -> None:
    assert cached_observation(state(record(one)), NOW) == Observed(
        at=NOW,
        slices={
            one.name: Slice(
                name=one.name,
                zone=one.zone,
                phase=phase,
                raw_state="not observed",
                provisioning=one.provisioning,
                metadata={"tpudeploy-spec": one.metadata_server},
            )
        },
    )


def test_without_an_observation_a_node_has_the_metadata_that_it_was_last_given() -> None:
    one = serving(A, FLEX, booted="old", update_asked="new", update_asked_at=NOW)
    observed = cached_observation(state(record(one)), NOW)
    assert observed.slices[one.name].metadata == {"tpudeploy-spec": "new"}


def test_an_operation_is_no_sighting() -> None:
    one = attempt(seen=False)
    for operation in (CreateOperation(), CreateOperation(ended_at=NOW)):
        current = slice_of(one, Phase.CREATING, operation=operation)
        assert merged(record(one), current) == record(one)
