"""What was never seen: slices that appear late, operations that never end, and slices without our labels."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from command_line import HAND_MADE, INSTANCE, PROFILE, CommandLine, Open
from real_time import DEADLINE

from tpudeploy.cli.interrupts import stopping_gracefully

GROUP = (
    INSTANCE.replace("v6e-1", "v5p-16")
    .replace("us-east5-a, us-east5-b, europe-west4-a", "us-east5-a")
    .replace("[spot]", "[on-demand]")
)
FLEX = INSTANCE.replace("[spot]", "[flex-start]") + "  max_run_duration: 4h\n  valid_until: 10m\n"
APIS = {"queued resource": PROFILE, "instance": INSTANCE, "flex-start instance": FLEX, "group": GROUP}


def creates(at: CommandLine) -> int:
    """Return the number of slices that were requested."""
    posts = Counter(r.resource.rpartition("/")[2] for r in at.emulator.requests if r.method == "POST")
    return posts["queuedResources"] + posts["instances"] + posts["instanceGroupManagers"]


def late(seconds: float, **row: Any) -> Mapping[str, Any]:
    return {"fault": "hidden-after-operation", "seconds": seconds, **row}


@pytest.mark.parametrize("api", APIS)
def test_a_slice_that_is_invisible_for_a_minute_after_its_operation_is_waited_for(cli: Open, api: str) -> None:
    at = cli(nodes="simulated", trouble=[late(90)])
    profile = at.write(APIS[api])
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert creates(at) == 1
    assert len(at.slices) == 1
    destroyed = at.run("destroy", "-auto-approve", profile)
    assert destroyed.code == 0, destroyed.all
    assert not at.slices


@pytest.mark.parametrize("api", ["queued resource", "instance"])
def test_a_slice_that_appears_after_it_was_forgotten_is_found_and_only_one_is_kept(cli: Open, api: str) -> None:
    at = cli(nodes="simulated", trouble=[late(400, times=1)])
    profile = at.write(APIS[api].replace("us-east5-a, us-east5-b, europe-west4-a", "us-east5-a"))
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert creates(at) <= 3
    at.clock.sleep(1800)
    destroyed = at.run("destroy", "-auto-approve", profile)
    assert destroyed.code == 0, destroyed.all
    assert not at.slices


@pytest.mark.parametrize("api", ["queued resource", "instance"])
def test_a_slice_that_appears_after_the_run_has_ended_is_named_with_the_command_that_deletes_it(
    cli: Open, api: str
) -> None:
    at = cli(nodes="simulated", trouble=[late(7200, times=1)])
    profile = at.write(APIS[api].replace("us-east5-a, us-east5-b, europe-west4-a", "us-east5-a"))
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert "appeared after" not in at.run("status", profile).words
    at.clock.sleep(9000)
    untracked = next(name for name in at.slices if name.endswith("-0-0"))
    status = at.run("status", profile)
    assert f"{untracked} (us-east5-a, " in status.words
    assert "at list price) appeared after its request was forgotten, and no state tracks it" in status.words
    assert "To delete it: tpudeploy gc" in status.words
    plan = at.run("plan", profile)
    assert "it appeared after its request was forgotten" in plan.words
    assert "No changes." in plan.words
    drift = at.run("drift", profile)
    assert drift.code == 2, drift.all
    assert f"gemma[0] = {untracked} (us-east5-a)" in drift.words
    assert "no `apply` uses it: `tpudeploy gc` deletes it" in drift.words
    assert at.run("apply", "-refresh-only", "-auto-approve", profile).code == 0
    assert at.run("gc", "-auto-approve", profile).code == 0
    assert untracked not in at.slices
    assert len(at.slices) == 1
    assert "no drift" not in at.run("drift", profile).words
    assert at.run("drift", profile).code == 0


@pytest.mark.parametrize("api", ["queued resource", "instance"])
def test_a_removal_looks_for_its_own_label_before_it_ends(cli: Open, api: str) -> None:
    at = cli(nodes="simulated", trouble=[late(400, times=1)])
    profile = at.write(APIS[api])
    at.left_or_killed(250, "apply", "-auto-approve", profile)
    at.left_or_killed(250, "apply", "-auto-approve", profile)
    at.clock.sleep(1800)
    destroyed = at.run("destroy", "-auto-approve", profile)
    assert destroyed.code == 0, destroyed.all
    assert not at.slices


def test_a_removal_of_a_state_that_tracks_nothing_names_a_slice_that_appeared_late(cli: Open) -> None:
    at = cli(nodes="simulated", trouble=[late(400, zone="us-east5-a"), {"fault": "stockout", "zone": "us-east5-b"}])
    profile = at.write(INSTANCE.replace(", europe-west4-a", ""))
    stopped = at.run("apply", "-auto-approve", "-timeout", "5m", profile)
    assert stopped.code == 12, stopped.all
    assert at.run("state", "rm", "gemma", "-auto-approve").code in {0, 1}
    at.clock.sleep(1800)
    while at.run("destroy", "-auto-approve", profile).code != 0:
        assert at.run("gc", "-foreign", "-auto-approve", profile).code == 0
    assert not at.slices


def test_a_flex_start_request_whose_operation_never_ends_lapses_at_its_own_end(cli: Open) -> None:
    at = cli(
        nodes="simulated",
        compute_engine={"shows_pending": False},
        trouble=[
            {"fault": "wait-for-ever", "zone": "us-east5-a"},
            {"fault": "operation-never-ends", "zone": "us-east5-a"},
        ],
    )
    profile = at.write(FLEX)
    began = at.clock.now()
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert at.clock.now() - began < 3600
    began = at.clock.now()
    destroyed = at.run("destroy", "-auto-approve", profile)
    assert destroyed.code == 0, destroyed.all
    assert at.clock.now() - began < 1800
    assert not at.slices


@pytest.mark.parametrize("api", ["queued resource", "instance", "group"])
def test_a_deletion_that_never_ends_is_named_in_the_error_that_ends_the_removal(cli: Open, api: str) -> None:
    at = cli(nodes="simulated", trouble=[{"fault": "deletion-hangs"}])
    profile = at.write(APIS[api])
    assert at.run("apply", "-auto-approve", profile).code == 0
    (name,) = at.slices
    destroyed = at.run("destroy", "-auto-approve", profile)
    assert destroyed.code == 1, destroyed.all
    assert f"gemma is not fully deleted yet. Remaining: {name}" in destroyed.words


def test_an_imported_slice_that_was_changed_is_adopted_by_its_labels_and_none_is_bought_beside_it(cli: Open) -> None:
    at = cli(nodes="simulated")
    at.make_by_hand()
    profile = at.write()
    assert at.run("import", "gemma[0]", f"us-east5-a/{HAND_MADE}").code == 0
    assert at.run("apply", "-auto-approve", profile).code == 0
    removed = at.run("state", "rm", "gemma[0]", "-auto-approve")
    assert removed.code == 0, removed.all
    resource = f"projects/emulated/locations/us-east5-a/queuedResources/{HAND_MADE}"
    assert f"tpudeploy import 'gemma[0]' {resource} gemma.yaml" in removed.words
    refused = at.run("apply", "-auto-approve", profile)
    assert refused.code == 13, refused.all
    adopted = at.run("apply", "-adopt", "-auto-approve", profile)
    assert adopted.code == 0, adopted.all
    assert list(at.slices) == [HAND_MADE]
    assert at.run("destroy", "-auto-approve", profile).code == 0
    assert not at.slices


def test_adoption_without_anything_to_adopt_requests_nothing(cli: Open) -> None:
    at = cli(nodes="simulated")
    at.make_by_hand()
    profile = at.write()
    assert at.run("import", "gemma[0]", f"us-east5-a/{HAND_MADE}").code == 0
    assert at.run("state", "rm", "gemma[0]", "-auto-approve").code == 0
    refused = at.run("apply", "-adopt", "-auto-approve", profile)
    assert refused.code == 13, refused.all
    assert "-adopt has nothing to adopt" in refused.words
    assert list(at.slices) == [HAND_MADE]


def test_the_command_that_state_rm_prints_tracks_an_imported_slice_again(cli: Open) -> None:
    at = cli(nodes="simulated")
    at.make_by_hand()
    at.write()
    assert at.run("import", "gemma[0]", f"us-east5-a/{HAND_MADE}").code == 0
    removed = at.run("state", "rm", "gemma[0]", "-auto-approve")
    command = next(line for line in removed.out.splitlines() if "tpudeploy import" in line)
    again = at.run(*command.replace("'", "").split()[1:])
    assert again.code == 0, again.all
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert list(at.slices) == [HAND_MADE]


def test_a_resource_with_the_name_of_a_slice_and_none_of_its_labels_is_never_deleted(cli: Open) -> None:
    at = cli(nodes="simulated")
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    lineage = at.state()["lineage"][:8]
    names = [f"gemma-{lineage}-0-77", f"train-{lineage}-0-1"]
    for name in names:
        at.make_by_hand(name=name)
    listed = at.run("gc", "-auto-approve", "-foreign")
    assert listed.code == 0, listed.all
    assert "only their names look like ours" in listed.words
    destroyed = at.run("destroy", "-auto-approve", profile)
    assert destroyed.code == 0, destroyed.all
    assert sorted(at.slices) == names


def test_a_group_of_which_some_machines_run_is_not_said_to_run_nothing(cli: Open) -> None:
    at = cli(nodes="simulated", trouble=[{"fault": "internal-error", "times": 1}])
    profile = at.write(GROUP)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert "1 of 2 workers run: the slice needs all of them" in applied.words
    assert "nothing runs there" not in applied.words


def test_an_interrupt_is_announced_once_it_stops_the_run() -> None:
    order: list[str] = []
    ended = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def stop() -> None:
        order.append("stopped")
        ended.set()

    try:
        with stopping_gracefully(stop, order.append, message="announced", is_last=False):
            signal.raise_signal(signal.SIGINT)
            assert ended.wait(DEADLINE)
        # The context ends after the announcement, even if the run ended at once.
        assert order == ["stopped", "announced"]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
