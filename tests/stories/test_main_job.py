"""From a profile to a serving endpoint and back, as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from command_line import PROFILE, Open

from tpudeploy import Profile, Workspace


@pytest.mark.parametrize("nodes", ["real", "simulated"])
def test_apply_serves_and_destroy_leaves_nothing(cli: Open, nodes: str) -> None:
    at = cli(nodes=nodes)
    profile = at.write()
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert "Done! Resources: 1 added, 0 changed, 0 destroyed." in applied.out
    assert 'gemma[0] endpoint = "http://' in applied.out
    assert list(at.slices.values()) == ["ACTIVE"]

    again = at.run("plan", profile, "-detailed-exitcode")
    assert again.code == 0
    assert "No changes" in again.out

    destroyed = at.run("destroy", "-auto-approve", profile)
    assert destroyed.code == 0, destroyed.all
    assert not at.slices
    assert not (at.folder / "endpoints" / "gemma.json").exists()


def test_a_deletion_says_how_long_it_has_taken_and_not_how_long_the_slice_served(cli: Open) -> None:
    at = cli()
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.clock.sleep(86400)
    destroyed = at.run("destroy", "-auto-approve", profile, "-json")
    assert destroyed.code == 0, destroyed.all
    rows = [json.loads(line) for line in destroyed.out.splitlines()]
    (leaving,) = (row for row in rows if row.get("phase") == "leaving")
    (released,) = (row for row in rows if row["type"] == "released")
    assert leaving["elapsed"] == pytest.approx(leaving["at"] - released["at"])


def test_all_times_of_a_run_count_from_its_beginning(cli: Open) -> None:
    """A run that resumes a request of an earlier one counts from where it began itself, in each of its lines."""
    at = cli(timings={"waiting": 3000})
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile, "-timeout", "20m").code == 12
    at.clock.sleep(600)
    applied = at.run("apply", "-auto-approve", profile, "-json")
    assert applied.code == 0, applied.all
    rows = [json.loads(line) for line in applied.out.splitlines()]
    timed = [row for row in rows if "elapsed" in row]
    assert {row["type"] for row in timed} >= {"phase_changed", "waiting", "serving", "change_done"}
    beginnings = {round(row["at"] - row["elapsed"]) for row in timed}
    assert len(beginnings) == 1, sorted(beginnings)


def test_a_plan_shows_each_written_value_with_its_line_and_changes_nothing(cli: Open) -> None:
    at = cli()
    profile = at.write()
    planned = at.run("plan", profile, "-detailed-exitcode")
    assert planned.code == 2
    assert "serving.max_model_len = 16384" in planned.words
    assert "gemma.yaml:9" in planned.out
    assert "Plan: 1 to add, 0 to change, 0 to destroy." in planned.out
    assert at.requested_zones() == []
    assert not (at.folder / ".tpudeploy").exists()


def test_apply_moves_to_the_next_zone_when_the_first_is_full(cli: Open) -> None:
    at = cli(trouble=[{"fault": "stockout", "zone": "us-east5-a"}])
    profile = at.write()
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert at.requested_zones() == ["us-east5-a", "us-east5-b"]
    assert "There is no more capacity in the zone" in applied.err
    assert list(at.slices.values()) == ["ACTIVE"]


def test_a_changed_flag_restarts_the_server_and_keeps_the_chips(cli: Open) -> None:
    at = cli(nodes="real")
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    before = dict(at.slices)
    at.write(PROFILE.replace("max_model_len: 16384", "max_model_len: 8192"))
    planned = at.run("plan", profile, "-detailed-exitcode")
    assert planned.code == 2
    assert "serving.max_model_len = 16384 -> 8192 # needs a restart" in planned.words
    assert "gemma.yaml:9" in planned.out
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert dict(at.slices) == before
    assert at.run("plan", profile, "-detailed-exitcode").code == 0


def test_a_changed_label_touches_neither_server_nor_chips(cli: Open) -> None:
    at = cli()
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    before = dict(at.slices)
    at.write(PROFILE + "  labels: {team: search}\n")
    planned = at.run("plan", profile)
    assert "will be updated in place" in planned.out
    assert "Plan: 0 to add, 1 to change, 0 to destroy." in planned.out
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert dict(at.slices) == before
    assert at.run("plan", profile, "-detailed-exitcode").code == 0


def test_a_changed_slice_type_is_replaced_create_before_destroy(cli: Open) -> None:
    at = cli()
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    (old,) = at.slices
    at.write(PROFILE.replace("v6e-1", "v6e-4"))
    planned = at.run("plan", profile)
    assert 'tpu.type = "v6e-1" -> "v6e-4" # forces replacement' in planned.words
    assert "Plan: 1 to add, 0 to change, 1 to destroy." in planned.out
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert old not in at.slices
    assert list(at.slices.values()) == ["ACTIVE"]
    answer = [applied.err.index(word) for word in ("Serving at", f"{old} drains for", f"Deleting {old}")]
    assert answer == sorted(answer), applied.err


@pytest.mark.parametrize("closes", ["politely", "with a reset"])
def test_a_lost_reply_makes_one_slice_not_two(cli: Open, closes: str) -> None:
    at = cli(trouble=[{"fault": "lost-reply", "call": 1, "close": closes == "politely"}])
    applied = at.run("apply", "-auto-approve", at.write())
    assert applied.code == 0, applied.all
    assert at.requested_zones() == ["us-east5-a"]
    assert list(at.slices.values()) == ["ACTIVE"]


def test_a_listener_that_fails_is_dropped_and_the_run_goes_on(cli: Open) -> None:
    at = cli()
    heard: list[object] = []

    def listen(event: object) -> None:
        heard.append(event)
        raise ValueError("not my day")

    with Workspace.open(at.folder, clock=at.clock) as workspace:
        plan = workspace.plan([Profile.load(at.folder / at.write())])
        with pytest.warns(RuntimeWarning, match="not my day"):
            report = workspace.apply(plan, on_event=listen)
    assert report.error is None
    assert len(heard) == 1
    assert list(at.slices.values()) == ["ACTIVE"]


def test_a_reader_that_stops_reading_changes_neither_the_run_nor_its_exit_code(cli: Open) -> None:
    at = cli()
    command = [sys.executable, "-m", "tpudeploy", "plan", "-detailed-exitcode", at.write()]
    with subprocess.Popen(command, cwd=at.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as plan:
        assert plan.stdout is not None
        assert plan.stderr is not None
        plan.stdout.close()
        answer = plan.stderr.read().decode()
    assert plan.returncode == 2
    assert "Traceback" not in answer
    assert "BrokenPipe" not in answer
