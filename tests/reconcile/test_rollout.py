"""How a slice that is up gets the server of the profile: what is sent to its node, what is waited for, what ends it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from reconcile.cases import (
    HOUR,
    MINUTE,
    NOW,
    PATIENCE,
    SPEC,
    SPOT,
    attempt,
    budget,
    context,
    deployment,
    granted,
    serving,
    slice_of,
)

from tpudeploy.domain.budget import EngineSettings, Unsized
from tpudeploy.domain.deployment import HealthGoal, Via
from tpudeploy.domain.errors import ChangeNotAcknowledged, RolledBack, ServingError
from tpudeploy.domain.names import ROUTER, Zone
from tpudeploy.domain.slices import BootPhase, BootReport, Health
from tpudeploy.domain.state import Attempt
from tpudeploy.domain.step import Adopt, Done, GiveUp, PatchMetadata, PushChange, Reset, Step, Wait
from tpudeploy.node.fingerprint import server_print, text_print
from tpudeploy.node.node_facts import CHANGE_KEY, SCRIPT_KEY, SPEC_KEY
from tpudeploy.reconcile.rollout import ServerStatus, serve

# The server of the profile, and the one that ran before.
SERVER, PREVIOUS = server_print(SPEC), "the previous server"
CURRENT = {SPEC_KEY: SERVER}
UP, SILENT = Health(serving=True, detail=""), Health(serving=False, detail="connection refused")
SCRIPT = "#!/bin/sh"


def status(
    one: Attempt,
    metadata: Mapping[str, str] = CURRENT,
    *,
    report: BootReport | None = None,
    health: Health | None = None,
    may_reset: bool = False,
    labels: Mapping[str, str] | None = None,
    **fields: Any,
) -> ServerStatus:
    """Return one observation of a slice that is up. `metadata` are what its node shows."""
    others = {key: text for key, text in metadata.items() if key != SCRIPT_KEY}
    script = text_print(metadata[SCRIPT_KEY]) if SCRIPT_KEY in metadata else ""
    at = context(
        slice_of(one, metadata=others, script=script, labels=labels or {}),
        reports={} if report is None else {one.name: report},
        health={} if health is None else {one.name: health},
        may_reset=may_reset,
    )
    return ServerStatus(deployment=deployment(**fields), replica=3, attempt=one, context=at)


def beside_others(one: ServerStatus) -> ServerStatus:
    """Return the same observation where another replica takes requests."""
    return dataclasses.replace(one, context=dataclasses.replace(one.context, others_serve=True))


def boot_report(phase: BootPhase, spec: str = SERVER, **fields: Any) -> BootReport:
    """Return the report of a node that runs this server."""
    return BootReport(phase=phase, spec=spec, **fields)


def wait(why: str, seconds: float | None = None) -> Wait:
    return Wait(replica=3, why=why, seconds=seconds)


def push(one: str = "slice-us-east5-a") -> PushChange:
    return PushChange(replica=3, name=one, boot=SERVER)


PATCH = PatchMetadata(replica=3, name="slice-us-east5-a", boot=SERVER)
PUSH = push()
TAKES_METADATA = wait("the node does not show its new metadata yet")
DONE = Done(replica=3, name="slice-us-east5-a", health=UP)


def updated(seconds_ago: float, server: str = SERVER, **fields: Any) -> Attempt:
    """Return a slice whose node was given this server's metadata so many seconds ago."""
    return serving(update_asked=server, update_asked_at=NOW - seconds_ago, **fields)


LABELED = {**SPEC, "placement.labels.team": "search"}


@pytest.mark.parametrize(
    ("one", "metadata", "step"),
    [
        pytest.param(serving(), CURRENT, DONE, id="it has all of it"),
        pytest.param(serving(), {SPEC_KEY: PREVIOUS}, PATCH, id="it would boot another server: nothing restarts now"),
        pytest.param(serving(), {}, PATCH, id="it names no server"),
        pytest.param(serving(booted=PREVIOUS), {SPEC_KEY: PREVIOUS}, PUSH, id="the server itself changes"),
        pytest.param(
            updated(59, booted=PREVIOUS), {SPEC_KEY: PREVIOUS}, TAKES_METADATA, id="a patch takes a minute to show"
        ),
        pytest.param(updated(59), {SPEC_KEY: PREVIOUS}, TAKES_METADATA, id="also one that restarts nothing"),
        pytest.param(
            updated(60, booted=PREVIOUS), {SPEC_KEY: PREVIOUS}, PUSH, id="after a minute, the patch is sent again"
        ),
        pytest.param(
            updated(1, "another", booted=PREVIOUS), {SPEC_KEY: PREVIOUS}, PUSH, id="the profile changed in between"
        ),
        pytest.param(
            serving(script=text_print(SCRIPT)),
            {**CURRENT, SCRIPT_KEY: "rm -rf /"},
            PATCH,
            id="someone changed its startup script",
        ),
        pytest.param(
            serving(script=text_print(SCRIPT)), {**CURRENT, SCRIPT_KEY: SCRIPT}, DONE, id="its startup script is ours"
        ),
        pytest.param(serving(script=text_print(SCRIPT)), CURRENT, DONE, id="its startup script cannot be read"),
        pytest.param(
            serving(), {**CURRENT, SCRIPT_KEY: "rm -rf /"}, DONE, id="an earlier version did not record its script"
        ),
    ],
)
def test_what_the_metadata_of_a_node_need(one: Attempt, metadata: Mapping[str, str], step: Step) -> None:
    assert serve(status(one, metadata, health=UP)) == step


@pytest.mark.parametrize(
    ("one", "labels", "step"),
    [
        pytest.param(serving(), {}, PATCH, id="the profile has a new label"),
        pytest.param(
            updated(59, spec=LABELED),
            {},
            wait("the node does not show its new labels and tags yet"),
            id="the label does not show yet",
        ),
        pytest.param(updated(59, spec=LABELED), {"team": "search"}, DONE, id="the label shows"),
        pytest.param(
            updated(60, spec=LABELED), {}, DONE, id="after a minute, a label that does not show is drift and no wait"
        ),
        pytest.param(
            updated(1, "another", spec=LABELED), {}, DONE, id="a label that someone removed is drift and no wait"
        ),
        pytest.param(
            serving(spec=LABELED), {}, DONE, id="so it is where no update was sent since the slice was created"
        ),
    ],
)
def test_what_the_labels_of_a_node_need(one: Attempt, labels: Mapping[str, str], step: Step) -> None:
    assert serve(status(one, labels=labels, health=UP, attributes=LABELED)) == step


def restarted(seconds_ago: float, **fields: Any) -> Attempt:
    """Return a slice whose server was started again so many seconds ago."""
    return serving(booted_at=NOW - seconds_ago, **{"booted_before": PREVIOUS, **fields})


TIME_LEFT = 15 * MINUTE
BOOTS = wait("the server is starting", 10 * MINUTE)


@pytest.mark.parametrize(
    ("one", "report", "health", "step"),
    [
        pytest.param(serving(), None, UP, DONE, id="it answers, and its machine reports nothing"),
        pytest.param(
            serving(), boot_report(BootPhase.SERVING), UP, DONE, id="it answers, and its machine names the server"
        ),
        pytest.param(
            serving(), boot_report(BootPhase.SERVING, ""), UP, DONE, id="it answers; the report names no server"
        ),
        pytest.param(
            serving(), boot_report(BootPhase.SERVING, PREVIOUS), UP, BOOTS, id="another server than ours answers"
        ),
        pytest.param(serving(), None, SILENT, BOOTS, id="it does not answer yet"),
        pytest.param(serving(), None, None, BOOTS, id="it was not probed"),
        pytest.param(
            restarted(239),
            None,
            UP,
            wait("the server is starting", TIME_LEFT - 239),
            id="the server before the reboot may answer",
        ),
        pytest.param(restarted(240), None, UP, DONE, id="no reboot takes longer than that"),
        pytest.param(
            restarted(240),
            boot_report(BootPhase.STARTING, ""),
            UP,
            DONE,
            id="a report that names no server does not contradict that",
        ),
        pytest.param(
            restarted(600), boot_report(BootPhase.STARTING, ""), UP, DONE, id="nor does it say that the reboot was lost"
        ),
        pytest.param(
            restarted(1), boot_report(BootPhase.SERVING), UP, DONE, id="its machine says that the new server runs"
        ),
        pytest.param(
            restarted(599),
            boot_report(BootPhase.SERVING, PREVIOUS),
            UP,
            wait("the server is starting", TIME_LEFT - 599),
            id="its machine still runs the server before",
        ),
    ],
)
def test_whether_the_server_that_answers_is_ours(
    one: Attempt, report: BootReport | None, health: Health | None, step: Step
) -> None:
    assert serve(status(one, report=report, health=health)) == step


def test_a_slice_that_serves_takes_what_costs_nothing_from_the_profile() -> None:
    one = serving()
    assert serve(status(one, health=UP, attributes={"health.timeout": "30m"})) == Adopt(replica=3, name=one.name)


def changed(seconds_ago: float = 10, change: str = "7", **fields: Any) -> Attempt:
    """Return a slice that runs the previous server, and whose node was told of the change so many seconds ago."""
    values = {"booted": PREVIOUS, "change": change, "told_at": NOW - seconds_ago if change else 0.0}
    return serving(**{**values, **fields})


SENT = {SPEC_KEY: SERVER, CHANGE_KEY: "7"}
YET_TO_TAKE_OVER = "the node has not picked up the change yet"
LOST_REBOOT = boot_report(BootPhase.SERVING, PREVIOUS)


@pytest.mark.parametrize(
    ("one", "metadata", "report", "step"),
    [
        pytest.param(changed(change=""), CURRENT, None, PUSH, id="the change has no name yet"),
        pytest.param(serving(boot_asked=False), CURRENT, None, PUSH, id="a restart was saved, and not requested"),
        pytest.param(restarted(600), CURRENT, LOST_REBOOT, PUSH, id="a reboot of ten minutes ago was lost"),
        pytest.param(changed(59), CURRENT, None, TAKES_METADATA, id="the node does not show the change yet"),
        pytest.param(changed(60), CURRENT, None, PUSH, id="after a minute, the change is sent again"),
        pytest.param(changed(59), {**SENT, CHANGE_KEY: "6"}, None, TAKES_METADATA, id="it shows the change before"),
        pytest.param(changed(60), {**SENT, CHANGE_KEY: "6"}, None, PUSH, id="it shows another one's change"),
        pytest.param(changed(60), SENT, None, wait(YET_TO_TAKE_OVER, 120), id="it shows the change, and says nothing"),
        pytest.param(
            changed(179), SENT, LOST_REBOOT, wait(YET_TO_TAKE_OVER, 1), id="it runs the previous server for now"
        ),
    ],
)
def test_how_a_node_gets_a_change(
    one: Attempt, metadata: Mapping[str, str], report: BootReport | None, step: Step
) -> None:
    assert serve(status(one, metadata, report=report, health=UP)) == step


RESET = Reset(replica=3, name="slice-us-east5-a", boot=SERVER)


@pytest.mark.parametrize(
    ("one", "step"),
    [
        pytest.param(
            changed(180, booted_at=NOW - 180),
            wait("the node does not report for now", TIME_LEFT - 180),
            id="it took the change over, and its report is missing: a reset would cut it short",
        ),
        pytest.param(
            changed(60, booted_at=NOW - 60),
            wait("the node does not report for now", TIME_LEFT - 60),
            id="however soon that is",
        ),
        pytest.param(
            changed(899, booted_at=NOW - 899), wait("the node does not report for now", 1), id="until the end"
        ),
        pytest.param(changed(900, booted_at=NOW - 900), RESET, id="of the time that a start takes"),
        pytest.param(changed(180, booted_at=NOW - 181), RESET, id="it has not taken this change over"),
        pytest.param(changed(180), RESET, id="it has not been started again at all"),
    ],
)
def test_when_a_node_that_says_nothing_is_reset(one: Attempt, step: Step) -> None:
    assert serve(status(one, SENT, may_reset=True)) == step


def test_a_node_that_speaks_of_its_previous_server_is_reset_too() -> None:
    assert serve(status(changed(180, booted_at=NOW - 180), SENT, report=LOST_REBOOT, may_reset=True)) == RESET


@pytest.mark.parametrize(
    ("report", "message"),
    [
        pytest.param(
            LOST_REBOOT,
            "gemma[3] still runs the previous server: its node did not pick up the change within 3 min.",
            id="it reports the previous server",
        ),
        pytest.param(
            None,
            "gemma[3] may still run the previous server: its node does not report whether it picked up the change (guest "
            "attributes).",
            id="it reports nothing",
        ),
    ],
)
def test_what_a_user_reads_where_the_node_would_have_to_be_reset(report: BootReport | None, message: str) -> None:
    step = serve(status(changed(180), SENT, report=report))
    assert isinstance(step, GiveUp)
    assert (step.replica, step.name, step.serves) == (3, "", False)
    assert isinstance(step.error, ChangeNotAcknowledged)
    assert step.error.message == message
    assert step.error.hint == (
        "A reset reboots slice-us-east5-a into the changed server: nothing serves for about 4 min, and the chips are "
        "kept.\nThe change stays in the node's metadata. `tpudeploy apply -auto-approve` resets the node and continues."
    )


def test_a_reset_leaves_the_other_replicas_alone() -> None:
    step = serve(beside_others(status(changed(180), SENT, report=LOST_REBOOT)))
    assert isinstance(step, GiveUp)
    assert "into the changed server: only the other replicas serve for about 4 min, and the chips" in step.error.hint


def test_a_reset_of_a_routers_vm_stops_requests_and_keeps_the_vm() -> None:
    step = serve(replace(status(changed(180), SENT, report=LOST_REBOOT), replica=ROUTER))
    assert isinstance(step, GiveUp)
    assert "changed server: the router takes no request for about 4 min, and the VM is kept.\n" in step.error.hint


def test_the_times_in_that_message_are_those_of_the_run() -> None:
    before = status(changed(2 * HOUR), SENT, report=LOST_REBOOT)
    patience = dataclasses.replace(PATIENCE, acknowledge=HOUR, restart=HOUR)
    step = serve(dataclasses.replace(before, context=dataclasses.replace(before.context, patience=patience)))
    assert isinstance(step, GiveUp)
    assert "within 60 min" in step.error.message
    assert "for about 60 min" in step.error.hint


def undone(phase: BootPhase, cause: str = "unknown flag --turbo", **fields: Any) -> BootReport:
    """Return the report of a node that goes back, or went back, to the previous server."""
    return boot_report(phase, PREVIOUS, change="7", undone="7", cause=cause, **fields)


NO_ENDPOINT = "Nothing serves on the slice, so its endpoint is withdrawn until a server does.\n"
KEPT = (
    "The slice slice-us-east5-a in us-east5-a is kept, at about $11.23/h.\n"
    "Fix the cause and run `tpudeploy apply` again: it restarts the server and keeps the chips.\n"
    "Or delete the slice with `tpudeploy destroy`."
)


def test_a_change_that_was_undone_ends_the_run_and_the_previous_server_serves() -> None:
    step = serve(status(changed(), SENT, report=undone(BootPhase.SERVING)))
    assert isinstance(step, GiveUp)
    assert (step.replica, step.name, step.serves) == (3, "slice-us-east5-a", True)
    assert isinstance(step.error, RolledBack)
    assert (
        step.error.message == "gemma[3] runs the previous server again, because the change failed: unknown flag --turbo"
    )
    assert step.error.hint == (
        "The previous server serves on the same chips, and its endpoint is unchanged.\n"
        "Fix the cause and run `tpudeploy apply` again. `tpudeploy plan` shows what changes."
    )


def test_the_remedy_of_a_change_that_was_undone_comes_first() -> None:
    step = serve(status(changed(), SENT, report=undone(BootPhase.SERVING, "docker: no space left on device")))
    assert isinstance(step, GiveUp)
    assert step.error.hint.startswith("Raise tpu.boot_disk_size;")
    assert "\nThe previous server serves" in step.error.hint


@pytest.mark.parametrize(
    ("one", "report", "step"),
    [
        pytest.param(
            changed(),
            undone(BootPhase.STARTING),
            wait("the change failed; the previous server starts again", 25 * MINUTE),
            id="the previous server starts",
        ),
        pytest.param(
            changed(), undone(BootPhase.STARTING, ""), wait(YET_TO_TAKE_OVER, 170), id="a report without a cause"
        ),
        pytest.param(
            changed(change="8"),
            undone(BootPhase.STARTING),
            wait(YET_TO_TAKE_OVER, 170),
            id="it undid the change before this one",
        ),
    ],
)
def test_while_a_change_is_undone_the_run_waits(one: Attempt, report: BootReport, step: Step) -> None:
    assert serve(status(one, {**SENT, CHANGE_KEY: one.change_name}, report=report)) == step


def test_the_error_of_a_router_that_does_not_answer_says_what_becomes_of_its_vm() -> None:
    one = serving(served=False, spec={"vm.machine": "e2-small"})
    step = serve(
        replace(status(one, SENT, report=BootReport(phase=BootPhase.FAILED, detail="no way out")), replica=ROUTER)
    )
    assert isinstance(step, GiveUp)
    assert step.error.message == "gemma[router] does not serve: no way out"
    assert step.error.hint == (
        "The VM slice-us-east5-a in us-east5-a is kept, at about $0.02/h. The replicas serve without it.\n"
        "Fix the cause and run `tpudeploy apply` again: it starts the router again on the same VM.\n"
        "Or run `tpudeploy apply -replace 'gemma[router]'`: it starts the router on another VM."
    )


@pytest.mark.parametrize(
    ("one", "report", "cause"),
    [
        pytest.param(
            changed(),
            undone(BootPhase.FAILED, detail="both failed: an unknown flag, and no disk"),
            "both failed: an unknown flag, and no disk",
            id="the node names both causes",
        ),
        pytest.param(
            changed(minutes_ago=99, booted_at=NOW - 30 * MINUTE),
            undone(BootPhase.STARTING),
            "unknown flag --turbo (the server before did not come back either: 30 min have passed; the machine last "
            "reported: starting)",
            id="the node does not come to an end",
        ),
    ],
)
def test_a_change_that_cannot_be_undone_withdraws_the_endpoint(one: Attempt, report: BootReport, cause: str) -> None:
    step = serve(status(one, SENT, report=report))
    assert isinstance(step, GiveUp)
    assert (step.replica, step.name, step.serves) == (3, "slice-us-east5-a", False)
    assert type(step.error) is ServingError
    assert (step.error.message, step.error.hint) == (f"gemma[3] does not serve: {cause}", f"{NO_ENDPOINT}{KEPT}")
    beside = serve(beside_others(status(one, SENT, report=report)))
    assert isinstance(beside, GiveUp)
    assert beside.error.hint == (
        f"Nothing serves on the slice; the other replicas take its requests until a server does.\n{KEPT}"
    )


def test_an_endpoint_that_answers_does_not_stand_for_a_server_that_the_node_could_not_bring_back() -> None:
    report = BootReport(phase=BootPhase.FAILED, change="7", undone="7", cause="an unknown flag", detail="both failed")
    step = serve(status(changed(), SENT, report=report, health=UP))
    assert isinstance(step, GiveUp)
    assert step.error.message == "gemma[3] does not serve: both failed"


FAILED = boot_report(BootPhase.FAILED, detail="a setup step failed")
ANSWER = {"change": "7", "told_at": NOW - 10}


@pytest.mark.parametrize(
    ("one", "report", "health", "step"),
    [
        pytest.param(serving(), FAILED, None, "a setup step failed", id="its machine says so"),
        pytest.param(
            serving(),
            boot_report(BootPhase.FAILED, "", detail="no docker"),
            None,
            "no docker",
            id="its machine failed before it knew its server",
        ),
        pytest.param(
            restarted(10),
            boot_report(BootPhase.FAILED, PREVIOUS, detail="an old failure"),
            None,
            wait("the server is starting", TIME_LEFT - 10),
            id="the report is the previous server's",
        ),
        pytest.param(serving(), FAILED, UP, DONE, id="it answers nevertheless"),
        pytest.param(restarted(10), FAILED, None, "a setup step failed", id="a restart into another server failed"),
        pytest.param(
            restarted(239, booted_before=SERVER),
            FAILED,
            None,
            wait("the server is starting", TIME_LEFT - 239),
            id="the same server was started again: the failure may be the boot's before",
        ),
        pytest.param(
            restarted(240, booted_before=SERVER), FAILED, None, "a setup step failed", id="that failure is a new one"
        ),
        pytest.param(
            serving(booted_before=SERVER), FAILED, None, "a setup step failed", id="it was never started again"
        ),
        pytest.param(
            restarted(10, booted_before=SERVER, **ANSWER),
            boot_report(BootPhase.FAILED, change="7", detail="the new start failed"),
            None,
            "the new start failed",
            id="the report names the change that was sent last, so it is no old one",
        ),
        pytest.param(
            restarted(10, **ANSWER),
            boot_report(BootPhase.FAILED, PREVIOUS, change="7", detail="it went wrong"),
            None,
            "it went wrong",
            id="the node failed at the change, with whatever server",
        ),
        pytest.param(
            serving(minutes_ago=15),
            None,
            None,
            "15 min have passed; the machine last reported: nothing",
            id="its time is over, and nothing is known",
        ),
        pytest.param(
            serving(minutes_ago=15),
            boot_report(BootPhase.IMAGE),
            SILENT,
            "15 min have passed; the machine last reported: image; the endpoint: connection refused",
            id="its time is over, and all is known",
        ),
        pytest.param(
            serving(minutes_ago=15),
            boot_report(BootPhase.IMAGE, detail="worker 2 has not reported", workers=(None, None)),
            None,
            "15 min have passed; the machine last reported: image (worker 2 has not reported)",
            id="its time is over, and the others wait for one host",
        ),
        pytest.param(
            serving(minutes_ago=15),
            boot_report(BootPhase.IMAGE, PREVIOUS),
            None,
            "15 min have passed; the machine last reported: nothing",
            id="the previous server's report says nothing of this one",
        ),
        pytest.param(
            serving(minutes_ago=14.5), None, None, wait("the server is starting", 30), id="its time is not yet over"
        ),
        pytest.param(restarted(899), None, None, wait("the server is starting", 1), id="not even by a second"),
        pytest.param(
            restarted(10, minutes_ago=99),
            None,
            None,
            wait("the server is starting", TIME_LEFT - 10),
            id="a restart has its own time",
        ),
        pytest.param(
            restarted(20 * MINUTE, **ANSWER),
            boot_report(BootPhase.STARTING, change="7"),
            None,
            wait("the server is starting", 10 * MINUTE),
            id="a node that works on a change has twice the time, because it ends the change itself",
        ),
        pytest.param(
            restarted(30 * MINUTE, **ANSWER),
            boot_report(BootPhase.STARTING, change="7"),
            None,
            "30 min have passed; the machine last reported: starting",
            id="twice the time, and not more",
        ),
        pytest.param(
            attempt(booted=SERVER),
            None,
            None,
            wait("the server is starting", TIME_LEFT),
            id="its grant was not seen yet",
        ),
    ],
)
def test_when_a_server_that_does_not_serve_is_given_up(
    one: Attempt, report: BootReport | None, health: Health | None, step: Step | str
) -> None:
    actual = serve(status(one, report=report, health=health))
    if isinstance(step, str):
        assert isinstance(actual, GiveUp)
        assert (actual.replica, actual.name, actual.serves) == (3, one.name, False)
        assert type(actual.error) is ServingError
        assert (actual.error.message, actual.error.hint) == (f"gemma[3] does not serve: {step}", KEPT)
    else:
        assert actual == step


def test_a_server_that_answers_has_not_failed_whatever_its_node_reports() -> None:
    assert not status(serving(), report=FAILED, health=UP).failure()


def test_the_time_that_a_start_may_take_is_in_the_profile() -> None:
    health = HealthGoal(timeout_seconds=2 * HOUR, via=Via.NODE, prompt="Hello")
    one = serving(minutes_ago=120)
    late = ServerStatus(deployment=deployment(health=health), replica=3, attempt=one, context=context(slice_of(one)))
    assert "120 min have passed" in late.failure()


def test_a_slice_whose_price_is_not_known_is_kept_too() -> None:
    step = serve(status(granted(Zone("xx-west1-a"), SPOT, minutes_ago=15, booted=SERVER)))
    assert isinstance(step, GiveUp)
    assert "is kept, at an unknown price.\n" in step.error.hint


def test_a_known_cause_comes_with_its_remedy() -> None:
    full = boot_report(BootPhase.FAILED, detail="docker: no space left on device")
    step = serve(status(serving(), report=full))
    assert isinstance(step, GiveUp)
    assert step.error.hint == (
        "Raise tpu.boot_disk_size; it can be set only when a slice is created. /dev/shm is memory: weights kept there take "
        f"the machine's RAM.\n{KEPT}"
    )


def test_a_remedy_knows_the_settings_of_the_profile() -> None:
    full = "XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 40.0G of 31.2G hbm."
    size = dataclasses.replace(budget(cold_seconds=1), engine=EngineSettings(tensor_parallel=8, max_model_len=1024))
    settings: tuple[dict[str, Any], ...] = ({"budget": size}, {})
    steps = [
        serve(status(serving(), report=boot_report(BootPhase.FAILED, detail=full), **fields)) for fields in settings
    ]
    remedies = [step.error.hint.splitlines()[0] for step in steps if isinstance(step, GiveUp)]
    lower = "A program's temporaries do not fit: lower serving.max_num_batched_tokens"
    assert remedies == [f"{lower} to 1024 (now 2048).", f"{lower}."]


def test_a_profile_that_cannot_be_sized_gets_the_remedy_too() -> None:
    report = boot_report(BootPhase.FAILED, detail="ValueError: No available memory for the cache blocks.")
    step = serve(status(serving(), report=report, budget=Unsized(because="the model is unknown")))
    assert isinstance(step, GiveUp)
    assert step.error.hint.startswith("Raise serving.hbm_utilization")
