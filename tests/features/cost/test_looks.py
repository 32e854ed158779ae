"""Every command that sees a slice gone records it, once. Until one has looked, costs and budgets count the most."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Open

HOUR = 3600.0
APIS = {"queued resource": PROFILE, "instance": INSTANCE}
FLEX = PROFILE.replace("[spot]", "[flex-start]\n  max_run_duration: 1h")
LOOKS = {
    "plan": ("plan", "gemma.yaml"),
    "status": ("status", "gemma.yaml"),
    "drift": ("drift", "gemma.yaml"),
    "a plan that only refreshes": ("plan", "-refresh-only", "gemma.yaml"),
    "apply": ("apply", "-auto-approve", "gemma.yaml"),
    "gc": ("gc",),
}


def passes(at: CommandLine, hours: float) -> None:
    for _ in range(int(hours * 60)):
        at.clock.sleep(60.0)


def ledger_file(at: CommandLine) -> Path:
    return at.folder / ".tpudeploy" / "ledger-emulated.jsonl"


def total(at: CommandLine) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(at.run("cost", "-json").out)["total"]
    return row


def billed_hours(at: CommandLine) -> float:
    now = at.clock.now()
    return sum((now if row.ended is None else row.ended) - row.began for row in at.emulator.bill()) / HOUR


def assert_exact(at: CommandLine) -> None:
    row = total(at)
    assert row["chip_hours"] == pytest.approx(billed_hours(at), abs=1 / HOUR)
    assert row["usd_least"] == pytest.approx(row["usd"], abs=0.001)
    assert (row["running"], row["may_run"]) == (0, 0)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("api", APIS)
def test_whichever_command_looks_first_closes_what_has_ended_by_itself(cli: Open, api: str, look: str) -> None:
    at = cli()
    at.write(f"{APIS[api]}lifecycle: {{end: 24h, idle: 30m}}\n")
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    passes(at, 3)
    before = total(at)
    assert (before["running"], before["may_run"]) == (0, 1)
    assert before["usd_least"] <= billed_hours(at) * 1.4033 <= before["usd"]
    assert "1 may still run" in at.run("cost").words
    for _ in range(2):
        assert at.run(*LOOKS[look]).code in {0, 2}, "2 is drift"
        assert_exact(at)
        lines = ledger_file(at).read_text("utf-8")
    at.run(*LOOKS[look])
    assert ledger_file(at).read_text("utf-8") == lines, "the same look adds nothing"


def test_googles_own_end_ends_the_charge_by_the_clock_and_blocks_no_other_deployment(cli: Open) -> None:
    at = cli()
    at.write(FLEX)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    at.clock.sleep(5 * HOUR)
    assert "still run" not in at.run("cost").words
    assert total(at)["chip_hours"] == pytest.approx(billed_hours(at), abs=180 / HOUR), "it stops within minutes"
    (at.folder / ".tpudeploy" / "budgets.yaml").write_text("day: 5\n", encoding="utf-8")
    at.write(FLEX.replace("name: gemma", "name: other"), "other.yaml")
    assert at.run("apply", "-auto-approve", "other.yaml").code == 0


def test_what_a_look_has_closed_blocks_no_other_deployment(cli: Open) -> None:
    at = cli()
    at.write(f"{PROFILE}lifecycle: {{end: 24h, idle: 30m}}\n")
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    passes(at, 2)
    (at.folder / ".tpudeploy" / "budgets.yaml").write_text("month: 8\n", encoding="utf-8")
    at.write(f"{PROFILE.replace('name: gemma', 'name: other')}lifecycle: {{end: 2h}}\n", "other.yaml")
    assert at.run("apply", "-auto-approve", "other.yaml").code == 13, "until then the most counts"
    assert at.run("status", "gemma.yaml").code == 0
    assert at.run("apply", "-auto-approve", "other.yaml").code == 0


def test_a_slice_of_a_killed_run_may_run_until_a_command_sees_it(cli: Open) -> None:
    at = cli(nodes="simulated")
    at.write()
    at.left_or_killed(60.0, "apply", "-auto-approve", "gemma.yaml")
    at.clock.sleep(HOUR)
    (name,) = at.emulator.billed()
    assert f"Requested and not seen since, and counted as if granted: {name}." in at.run("cost").words
    row = total(at)
    assert row["usd_least"] <= billed_hours(at) * 1.4033 <= row["usd"]
    assert at.run("status", "gemma.yaml").code == 0
    lines = ledger_file(at).read_text("utf-8")
    assert at.run("status", "gemma.yaml").code == 0
    assert ledger_file(at).read_text("utf-8") == lines
    assert "1 still running" in at.run("cost").words
    assert total(at)["chip_hours"] == pytest.approx(billed_hours(at), abs=1 / HOUR)


def test_a_machine_that_outlived_its_own_end_counts_until_gc_deletes_it(cli: Open) -> None:
    at = cli(trouble=[{"fault": "orphan", "times": 1}])
    at.write(f"{PROFILE}lifecycle: {{end: 1h}}\n")
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    passes(at, 6)
    assert at.emulator.billed()
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    passes(at, 2)
    assert at.run("gc", "-auto-approve").code == 0
    assert not at.emulator.billed()
    assert_exact(at)


def test_a_preempted_slice_that_no_state_tracks_counts_until_gc_at_the_most(cli: Open) -> None:
    at = cli(nodes="simulated")
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    (name,) = at.emulator.billed()
    assert at.run("state", "rm", "-auto-approve", "gemma").code == 0
    at.emulator.preempt(name)
    at.clock.sleep(5 * HOUR)
    assert at.run("gc", "-auto-approve", "-foreign").code == 0
    row = total(at)
    assert row["usd_least"] <= billed_hours(at) * 1.4033 <= row["usd"]
    assert f"until a run found them gone: {name}." in at.run("cost").words


def damage(at: CommandLine) -> None:
    """Damage one byte of the first line."""
    content = ledger_file(at).read_bytes()
    ledger_file(at).write_bytes(content.replace(b'"at"', b'"a\xfft"', 1))


def test_a_damaged_line_is_said_and_no_request_passes_a_budget(cli: Open) -> None:
    at = cli(nodes="simulated")
    at.write(f"{PROFILE}lifecycle: {{end: 1h}}\nbudget: {{day: 20}}\n")
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    damage(at)
    said = "1 line of the ledger of costs cannot be read"
    assert said in at.run("cost").words
    assert json.loads(at.run("cost", "-json").out)["unreadable_lines"] == 1
    plan = at.run("plan", "gemma.yaml")
    assert f"{said}, so what counts towards budget.day is unknown" in plan.all
    refused = at.run("apply", "-auto-approve", "gemma.yaml")
    assert (refused.code, f"{said}, so" in refused.all) == (13, True)
    assert at.run("apply", "-auto-approve", "-max-cost", "9", "-set", "budget=null", "gemma.yaml").code == 13
    assert not at.emulator.billed()
    at.write()
    assert said in at.run("plan", "gemma.yaml").all
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0, "without a budget, nothing counts it"


def test_the_incomplete_line_of_a_killed_writer_is_removed_by_the_next_one(cli: Open) -> None:
    at = cli(nodes="simulated")
    at.write(f"{PROFILE}lifecycle: {{end: 1h}}\nbudget: {{day: 20}}\n")
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    with ledger_file(at).open("a", encoding="utf-8") as file:
        file.write('{"at":1790000000.0,"event":"requ')
    assert "cannot be read" not in at.run("cost").all
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    assert "cannot be read" not in at.run("cost").all
    assert_exact(at)


def test_who_may_not_write_the_ledger_still_sees_the_status(cli: Open) -> None:
    at = cli()
    at.write(f"{PROFILE}lifecycle: {{end: 1h}}\n")
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    passes(at, 3)
    content = ledger_file(at).read_bytes()
    ledger_file(at).unlink()
    ledger_file(at).mkdir()
    status = at.run("status", "gemma.yaml")
    assert status.code == 0
    assert "gemma ended at" in status.words
    ledger_file(at).rmdir()
    ledger_file(at).write_bytes(content)
    assert "1 may still run" in at.run("cost").words, "the most still counts"
    assert at.run("status", "gemma.yaml").code == 0
    assert_exact(at)
