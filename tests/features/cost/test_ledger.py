"""The ledger of costs against the bill that the emulated cloud keeps for itself, wherever a run is killed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Killed, Open

from tpudeploy.adapters.google.backends import Backends
from tpudeploy.adapters.state.local import LocalState

BUCKET = ("--backend", "gs://states/team")
APIS = {"queued resource": PROFILE, "instance": INSTANCE}
# The effects of a run, each of which may be its last: it has happened, or is about to.
EFFECTS: Mapping[str, tuple[type, str]] = {
    "a state is written": (LocalState, "write"),
    "a line is written": (LocalState, "enter"),
    "a slice is requested": (Backends, "request"),
    "a slice is deleted": (Backends, "release"),
}


def billed(at: CommandLine) -> dict[str, tuple[float, float | None]]:
    """What the cloud bills, which no API shows: from when until when, by name."""
    return {row.name: (row.began, row.ended) for row in at.emulator.bill()}


def ledger(at: CommandLine, *words: str) -> dict[str, Any]:
    document = json.loads(at.run("cost", "-group-by", "slice", "-json", *words).out)
    assert document["format"] == "tpudeploy.cost/1"
    return {row["key"]: row for row in document["rows"]}


def assert_same(at: CommandLine, *words: str) -> None:
    """Each slice of the bill is in the ledger with its time, to the second, and nothing else is."""
    now, rows = at.clock.now(), ledger(at, *words)
    seconds = {name: (now if end is None else end) - began for name, (began, end) in billed(at).items()}
    in_ledger = {name: row["chip_hours"] * 3600 for name, row in rows.items()}
    assert in_ledger == pytest.approx(seconds, abs=1.0)
    running = {name for name, (_, end) in billed(at).items() if end is None}
    assert {name for name, row in rows.items() if row["running"] or row["may_run"]} == running


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("where", [(), BUCKET], ids=["in the folder", "in a bucket"])
def test_the_ledger_is_the_bill_while_a_slice_runs_and_after_it(cli: Open, api: str, where: tuple[str, ...]) -> None:
    at = cli(nodes="simulated")
    profile = at.write(APIS[api])
    assert at.run("apply", "-auto-approve", profile, *where).code == 0
    at.clock.sleep(3600)
    assert_same(at, *where)
    text = at.run("cost", *where)
    assert text.code == 0
    assert "1 still running, at $1.40/h, which is $33.68 a day. No time limit ends all of them." in text.words
    assert at.run("destroy", "-auto-approve", profile, *where).code == 0
    at.clock.sleep(3600)
    assert_same(at, *where)
    assert "still running" not in at.run("cost", *where).out


def _dying(patch: pytest.MonkeyPatch, effect: str, count: int, *, is_done: bool) -> None:
    """Kill the process at this effect, once it happened this number of times: before it, or after it."""
    owner, name = EFFECTS[effect]
    whole: Callable[..., Any] = getattr(owner, name)
    calls = [count]

    def dying(*args: Any, **values: Any) -> Any:
        calls[0] -= 1
        if calls[0] >= 0:
            return whole(*args, **values)
        if is_done and calls[0] == -1:
            whole(*args, **values)
        raise Killed

    patch.setattr(owner, name, dying)


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("effect", EFFECTS)
def test_killed_at_an_effect_the_ledger_is_still_the_bill(
    cli: Open, monkeypatch: pytest.MonkeyPatch, effect: str, count: int, *, is_done: bool
) -> None:
    at = cli(nodes="simulated", trouble=[{"fault": "stockout", "zone": "us-east5-a", "times": 1}])
    profile = at.write()
    for command in ("apply", "destroy"):
        with monkeypatch.context() as patch:
            _dying(patch, effect, count, is_done=is_done)
            try:
                at.run(command, "-auto-approve", profile)
            except Killed:
                at.clock.sleep(20)
        assert at.run(command, "-auto-approve", profile).code == 0
        if command == "apply":
            assert_same(at)
            at.clock.sleep(1800)
    assert at.emulator.billed() == ()
    assert_same(at)


def test_several_grants_at_once_are_all_in_the_ledger(cli: Open) -> None:
    at = cli(nodes="simulated")
    profile = at.write(PROFILE.replace("max_parallel_requests: 1", "max_parallel_requests: 3"))
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.clock.sleep(3600)
    assert_same(at)


def test_a_flex_start_run_that_nobody_saw_end_is_closed_by_its_own_end(cli: Open) -> None:
    at = cli(nodes="simulated")
    text = PROFILE.replace("[spot]", "[flex-start]") + "  max_run_duration: 2h\n"
    profile = at.write(text)
    assert at.run("apply", "-auto-approve", profile).code == 0
    running = at.run("cost")
    assert "more until Google ends them" in running.words
    at.clock.sleep(86400)
    assert at.run("destroy", "-auto-approve", profile).code == 0
    (row,) = ledger(at).values()
    assert row["chip_hours"] == pytest.approx(2.0, abs=0.2)


@pytest.mark.parametrize("key", ["hours: '08:00-19:00 UTC'", "end: 4h"])
def test_a_machine_that_deleted_itself_is_closed_by_its_end_whenever_the_next_run_looks(cli: Open, key: str) -> None:
    at = cli(nodes="simulated")  # 14:00
    profile = at.write(f"{PROFILE}lifecycle: {{{key}}}\n")
    assert at.run("apply", "-auto-approve", profile).code == 0
    for _ in range(300):
        at.clock.sleep(60)  # the machine looks every minute
    at.clock.sleep(17 * 3600)
    assert not at.emulator.billed()
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert "still running" not in at.run("cost").out or "hours" in key
    first = min(billed(at))
    began, ended = billed(at)[first]
    assert ended is not None
    in_ledger = ledger(at)[first]["chip_hours"] * 3600
    assert ended - began - 1 <= in_ledger <= ended - began + 180, "never less than the bill"


def test_costs_are_added_up_by_deployment_zone_model_label_and_day(cli: Open) -> None:
    at = cli(nodes="simulated")
    at.write(PROFILE + "  labels: {team: search}\n")
    at.write(PROFILE.replace("name: gemma", "name: other"), "other.yaml")
    assert at.run("apply", "-auto-approve", "gemma.yaml", "other.yaml").code == 0
    at.clock.sleep(2 * 86400)

    def keys(by: str, *names: str) -> set[str]:
        return {row["key"] for row in json.loads(at.run("cost", *names, "-group-by", by, "-json").out)["rows"]}

    assert keys("deployment") == {"gemma", "other"}
    assert keys("deployment", "gemma.yaml") == {"gemma"}
    assert keys("zone") == {"us-east5-a"}
    assert keys("model") == {"google/gemma-4-E2B-it"}
    assert keys("label:team") == {"search", ""}
    assert len(keys("day")) == 3
    assert len(keys("month")) == 1
    document = json.loads(at.run("cost", "-group-by", "day", "-json").out)
    assert sum(row["usd"] for row in document["rows"]) == pytest.approx(document["total"]["usd"])
    refused = at.run("cost", "-group-by", "colour")
    assert (refused.code, "-group-by takes deployment" in refused.words) == (1, True)


def test_a_slice_that_a_person_removed_from_the_state_is_counted_and_named(cli: Open) -> None:
    at = cli(nodes="simulated")
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    (name,) = at.slices
    assert at.run("state", "rm", "-auto-approve", "gemma").code == 0
    at.clock.sleep(3600)
    assert f"Counted as running, though no state tracks it any more: {name}." in at.run("cost").words
    assert_same(at)


def test_without_a_ledger_cost_says_so(cli: Open) -> None:
    at = cli()
    result = at.run("cost")
    assert (result.code, "The ledger has no slice that ran" in result.out) == (0, True)


def test_if_google_bills_from_readiness_on_the_ledger_is_an_upper_bound(cli: Open) -> None:
    at = cli(nodes="simulated", billed_from="ready")
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    at.clock.sleep(3600)
    ((name, row),) = ledger(at).items()
    began, _ = billed(at)[name]
    assert 0.0 <= row["chip_hours"] * 3600 - (at.clock.now() - began) < 900.0


def test_what_gc_deletes_is_closed_in_the_ledger(cli: Open) -> None:
    at = cli(nodes="simulated")
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    assert at.run("state", "rm", "-auto-approve", "gemma").code == 0
    at.clock.sleep(3600)
    assert at.run("gc", "-auto-approve", "-foreign").code == 0
    assert at.emulator.billed() == ()
    at.clock.sleep(3600)
    assert_same(at)
    assert "still running" not in at.run("cost").out


def test_a_machine_that_outlives_its_request_is_in_the_ledger_until_it_is_deleted(cli: Open) -> None:
    at = cli(nodes="simulated", trouble=[{"fault": "orphan", "times": 1}])
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert at.run("destroy", "-auto-approve", profile).code == 0
    assert at.emulator.billed() == ()
    assert_same(at)


def test_a_line_has_the_date_and_the_source_of_its_price(cli: Open) -> None:
    at = cli(nodes="simulated")
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    lines = (at.folder / ".tpudeploy" / "ledger-emulated.jsonl").read_text("utf-8").splitlines()
    assert all(json.loads(line)["price_source"] == "list price in the catalog of tpudeploy" for line in lines)


def test_what_a_person_deleted_after_its_state_forgot_it_is_closed_by_gc(cli: Open) -> None:
    at = cli(nodes="simulated")
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    (name,) = at.slices
    assert at.run("state", "rm", "-auto-approve", "gemma").code == 0
    at.clock.sleep(3600)
    at.delete_by_hand(name)
    at.clock.sleep(3600)
    assert "`tpudeploy gc` closes what is gone" in at.run("cost").words
    assert at.run("gc").code == 0
    assert_same(at)
    assert "still running" not in at.run("cost").out


def test_a_trial_on_the_emulator_costs_nothing_and_says_nothing_of_real_zones(
    cli: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = cli(nodes="simulated")
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert at.run("destroy", "-auto-approve", profile).code == 0
    tried = at.run("cost")
    assert "gemma" in tried.out
    assert "On the emulator: nothing is billed." in tried.out
    assert "granted" in at.run("zones", profile).out
    monkeypatch.delenv("TPU_EMULATOR_HOST")
    real = at.run("cost")
    assert real.code == 0, real.all
    assert "gemma" not in real.out
    assert "mulator" not in real.out
    zones = at.run("zones", "-type", "v6e-1")
    assert zones.code == 0, zones.all
    assert not [line for line in zones.out.splitlines()[3:] if "granted" in line]
