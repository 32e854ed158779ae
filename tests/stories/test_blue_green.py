"""`lifecycle.update: blue-green`: a second slice serves the change before the first goes, and clients never notice."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from command_line import PROFILE, CommandLine, Open

from tpudeploy.domain.patience import Patience
from tpudeploy.emulator.simulated import Simulated

BLUE = PROFILE + "lifecycle: {update: blue-green}\n"
GREEN = BLUE.replace("16384", "8192")
# The first slice is drained for twice as long as clients hold an endpoint. So the drain outlasts what jitter adds to the
# start of the second one: it serves after about 165 s of acquisition and a boot of 420 s.
LONG_HELD = Patience(poll_first=5.0, held=300.0)
WHILE_DRAINING = 900.0
DETAILED = "-detailed-exitcode"
BROKEN = {"fault": "boot", "attempt": "2-", "crash": "error: unrecognized arguments: --no-such-flag", "times": 1}


def _deployed(at: CommandLine, text: str = BLUE) -> str:
    profile = at.write(text)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    return profile


def _mend(at: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was wrong with the machines is so no more from their next start on."""
    at.emulator._cloud.troubles.clear()
    for host in [host for node in at.emulator._cloud.nodes.values() for host in node.hosts]:
        assert isinstance(host, Simulated)
        monkeypatch.setattr(host, "reboot", partial(_start_well, host, host.reboot))


def _start_well(host: Simulated, start: Callable[[], None]) -> None:
    host._behaviour = replace(host._behaviour, crash="")
    start()


def _kill_while_draining(at: CommandLine, profile: str) -> None:
    at.killed(WHILE_DRAINING, "apply", "-auto-approve", profile)
    (record,) = at.state()["records"]
    assert [attempt["life"]["state"] for attempt in record["attempts"]] == ["draining", "serving"]


def _published(at: CommandLine) -> dict[str, object]:
    tree: dict[str, object] = json.loads(at.run("output", "gemma", "-json").out)
    return tree


def test_a_serving_change_is_planned_as_a_second_slice_with_what_both_cost(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    at.write(GREEN)
    planned = at.run("plan", profile, DETAILED)
    assert planned.code == 2
    assert "+/- create replacement and then destroy" in planned.words
    assert "gemma[0] will be handed over to another slice" in planned.out
    assert "(blue-green: a second slice serves before this one is deleted)" in planned.out
    assert "serving.max_model_len = 16384 -> 8192 # needs another server" in planned.words
    assert "both are billed, about $2.81/h, from the grant of the new one" in planned.words
    assert "Plan: 1 to add, 0 to change, 1 to destroy." in planned.out
    (row,) = json.loads(at.run("plan", "-json", profile).out)["resource_changes"]
    assert row["change"]["actions"] == ["create", "delete"]
    assert row["action_reason"] == "replace_because_of_serving_change"


def test_the_new_slice_serves_and_clients_are_sent_there_before_the_old_one_is_drained_and_goes(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    (old,), before = at.slices, _published(at)
    at.write(GREEN)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    (new,) = at.slices
    assert new != old
    answer = [applied.err.index(word) for word in ("Serving at", f"{old} drains for", f"Deleting {old}")]
    assert answer == sorted(answer), applied.err
    changed = [
        r.resource for r in at.emulator.requests if r.method in {"PATCH", "DELETE"} or r.resource.endswith(":reset")
    ]
    assert [path.rpartition("/")[2] for path in changed] == [old], "nothing was patched or restarted"
    after = _published(at)
    assert after["url"] != before["url"]
    assert after["generation"] == int(str(before["generation"])) + 1
    assert at.run("plan", profile, DETAILED).code == 0


def test_labels_are_changed_in_place_all_the_same(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    before = dict(at.slices)
    at.write(BLUE.replace("lifecycle:", "  labels: {team: ads}\nlifecycle:"))
    planned = at.run("plan", profile)
    assert "will be updated in place" in planned.out
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert dict(at.slices) == before


def test_what_has_never_served_is_mended_in_place(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = cli(trouble=[{**BROKEN, "attempt": "1-"}])
    profile = at.write(BLUE)
    assert at.run("apply", "-auto-approve", profile).code == 1
    before = list(at.slices)
    _mend(at, monkeypatch)
    at.write(GREEN)
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert list(at.slices) == before


def test_a_change_that_does_not_come_up_leaves_the_old_one_serving_and_says_what_both_cost(cli: Open) -> None:
    at = cli(trouble=[BROKEN])
    profile = _deployed(at)
    (old,), before = at.slices, _published(at)
    at.write(GREEN)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 13
    assert "does not serve on its new slice: error: unrecognized arguments: --no-such-flag" in applied.words
    assert f"gemma[0] serves as before: {old} was not changed" in applied.words
    assert "is kept. Both are billed, at about $2.81/h together." in applied.words
    assert "tpudeploy destroy" not in applied.err, "that would end the one that serves too"
    assert len(at.slices) == 2
    assert _published(at) == before
    assert not [r for r in at.emulator.requests if r.method == "PATCH" or r.resource.endswith(":reset")]


@pytest.mark.parametrize("again", [GREEN, GREEN.replace("8192", "4096")], ids=["the same change", "a mended one"])
def test_the_slice_that_did_not_come_up_is_booted_once_more_by_the_next_apply(
    cli: Open, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    at = cli(trouble=[BROKEN])
    profile = _deployed(at)
    (old,) = at.slices
    at.write(GREEN)
    assert at.run("apply", "-auto-approve", profile).code == 13
    (new,) = at.slices.keys() - {old}
    _mend(at, monkeypatch)
    at.write(again)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert list(at.slices) == [new]
    assert at.run("plan", profile, DETAILED).code == 0


def test_a_change_that_is_undone_gives_the_slice_back_that_did_not_come_up(cli: Open) -> None:
    at = cli(trouble=[BROKEN])
    profile = _deployed(at)
    (old,), before = at.slices, _published(at)
    at.write(GREEN)
    assert at.run("apply", "-auto-approve", profile).code == 13
    at.write(BLUE)
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert list(at.slices) == [old]
    assert _published(at) == before


def test_without_room_for_both_the_plan_offers_the_other_way(cli: Open) -> None:
    at = cli(quota=[{"class": "preemptible", "region": "*", "limit": 1}])
    one = BLUE.replace("us-east5-a, us-east5-b, europe-west4-a", "us-east5-a")
    profile = _deployed(at, one)
    at.write(one.replace("16384", "8192"))
    planned = at.run("plan", profile)
    assert planned.code == 13
    assert (
        "gemma[0] cannot be replaced before its slice is deleted: us-east5 has a quota of 1 preemptible chips"
        in planned.words
    )
    assert "lifecycle.update: in-place restarts the server on the chips that it has" in planned.words


def test_prevent_destroy_is_for_slices_that_nothing_takes_over_from(cli: Open) -> None:
    guarded = BLUE.replace("{update", "{prevent_destroy: true, update")
    at = cli()
    profile = _deployed(at, guarded)
    at.write(guarded.replace("16384", "8192"))
    planned = at.run("plan", profile)
    assert planned.code == 0
    assert "prevent_destroy does not prevent this" in planned.out
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert len(at.slices) == 1
    at.write(guarded.replace("v6e-1", "v6e-4"))
    assert at.run("plan", profile).code == 13


def test_a_change_during_a_drain_never_makes_three_of_one(cli: Open) -> None:
    at = cli(patience=LONG_HELD)
    profile = _deployed(at)
    (old,) = at.slices
    at.write(GREEN)
    most = 0

    def count() -> None:
        nonlocal most
        most = max(most, len(at.emulator.billed()))

    at.clock.on_advance.append(count)
    _kill_while_draining(at, profile)
    at.write(GREEN.replace("8192", "4096"))
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert most == 2
    assert len(at.slices) == 1
    assert old not in at.slices


def test_a_change_that_is_undone_during_the_drain_sends_clients_back(cli: Open) -> None:
    at = cli(patience=LONG_HELD)
    profile = _deployed(at)
    (old,), before = at.slices, _published(at)
    at.write(GREEN)
    _kill_while_draining(at, profile)
    assert _published(at)["url"] != before["url"]
    at.write(BLUE)
    assert "draining" in at.run("status", profile).words
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert list(at.slices) == [old]
    assert _published(at)["url"] == before["url"]
    assert at.run("plan", profile, DETAILED).code == 0


def test_in_place_again_during_the_drain_keeps_the_slice_that_clients_were_sent_to(cli: Open) -> None:
    at = cli(patience=LONG_HELD)
    profile = _deployed(at)
    (old,) = at.slices
    at.write(GREEN)
    _kill_while_draining(at, profile)
    now = _published(at)
    at.write(GREEN.replace("blue-green", "in-place"))
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert old not in at.slices
    assert _published(at) == now
    assert at.run("plan", profile, DETAILED).code == 0


def test_a_run_whose_time_is_over_during_the_drain_keeps_the_old_slice_and_the_next_one_goes_on(cli: Open) -> None:
    at = cli(patience=LONG_HELD)
    profile = _deployed(at)
    (old,) = at.slices
    at.write(GREEN)
    cut = at.run("apply", "-auto-approve", "-timeout", f"{WHILE_DRAINING:g}s", profile)
    assert cut.code == 1
    assert f"gemma serves. {old} is kept because clients may still be connected to it" in cut.words
    assert at.slices[old] == "ACTIVE"
    assert at.run("apply", profile).code == 0, "no question: it was approved"
    assert old not in at.slices


def test_what_took_over_and_is_lost_sends_clients_back_until_another_serves(cli: Open) -> None:
    at = cli(patience=LONG_HELD)
    profile = _deployed(at)
    (old,), before = at.slices, _published(at)
    at.write(GREEN)
    _kill_while_draining(at, profile)
    for name in at.emulator.billed():
        if old not in name:
            at.emulator.preempt(name)
    at.killed(60.0, "apply", "-auto-approve", profile)
    assert _published(at)["url"] == before["url"]
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert old not in at.slices
    assert len(at.slices) == 1


def test_a_removal_in_the_middle_leaves_neither_slice_nor_endpoint(cli: Open) -> None:
    at = cli(patience=LONG_HELD)
    profile = _deployed(at)
    at.write(GREEN)
    _kill_while_draining(at, profile)
    assert len(at.slices) == 2
    assert at.run("destroy", "-auto-approve", profile).code == 0
    assert not at.slices
    assert at.run("output", "gemma").code == 1


def test_an_endpoint_is_withdrawn_before_its_slice_begins_to_leave(cli: Open) -> None:
    at = cli()
    profile = _deployed(at, BLUE + "replicas: 2\n")
    file = at.folder / "endpoints" / "gemma.json"
    answers: list[bool] = []
    at.clock.on_advance.append(lambda: answers.append(file.exists() and set(at.slices.values()) != {"ACTIVE"}))
    assert at.run("destroy", "-auto-approve", profile).code == 0
    assert not any(answers)


def test_how_long_clients_hold_an_endpoint_is_a_setting(cli: Open) -> None:
    at = cli(patience=LONG_HELD)
    profile = _deployed(at)
    (old,) = at.slices
    at.write(GREEN)
    applied = at.run("apply", "-auto-approve", profile)
    assert f"{old} drains for at least 10m 0s" in applied.err


def test_with_the_state_in_a_bucket_clients_find_the_endpoint_there(cli: Open) -> None:
    at, place = cli(), ("--backend", "gs://states/team")

    def endpoint() -> dict[str, object]:
        (endpoint,) = at.emulator._cloud.objects.under("states", "team/endpoints/gemma.json")
        tree: dict[str, object] = json.loads(endpoint.content)
        return tree

    profile = at.write(BLUE)
    assert at.run("apply", "-auto-approve", *place, profile).code == 0
    before = endpoint()
    at.write(GREEN)
    assert at.run("apply", "-auto-approve", *place, profile).code == 0
    after = endpoint()
    assert after["url"] != before["url"]
    assert after["generation"] == int(str(before["generation"])) + 1
