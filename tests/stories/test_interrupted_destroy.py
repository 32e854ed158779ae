"""A `destroy` that was cut short: whoever looks is told to destroy, and not to buy what was to go."""

from __future__ import annotations

import json

import pytest
from command_line import PROFILE, CommandLine, Open

CALLS = [1, 4, 8, 20]  # seconds into the run


def _interrupt(at: CommandLine, after: float, *more: str) -> str:
    profile = at.write(PROFILE + "replicas: 2\n")
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.killed(after, "destroy", "-auto-approve", *more, profile)
    return profile


@pytest.mark.parametrize("after", CALLS)
@pytest.mark.parametrize("later", [0.0, 3600.0], ids=["at once", "later"])
def test_status_says_destroy_and_following_it_leaves_nothing(cli: Open, after: float, later: float) -> None:
    at = cli(timings={"deleting": 60})
    profile = _interrupt(at, after)
    at.clock.sleep(later)
    result = at.run("status", profile)
    assert "`tpudeploy destroy` continues it." in result.out
    assert "tpudeploy apply" not in result.out
    (row,) = json.loads(at.run("status", "-json", profile).out)["deployments"]
    assert row["continue_with"] == "tpudeploy destroy"
    requests = len(at.requested_zones())
    assert at.run("destroy", profile).code == 0, "it was approved, so that nothing is asked"
    assert at.slices == {}
    assert len(at.requested_zones()) == requests
    assert "continues it" not in at.run("status", profile).out


@pytest.mark.parametrize("later", [0.0, 3600.0], ids=["at once", "later"])
def test_the_next_plan_knows_who_deleted_it(cli: Open, later: float) -> None:
    at = cli(timings={"deleting": 60})
    profile = _interrupt(at, 8)
    at.clock.sleep(later)
    planned = at.run("plan", profile)
    assert planned.words.count("(an earlier `tpudeploy destroy` deleted its slice)") == 2
    assert "deleted outside tpudeploy" not in planned.out
    assert "preempted" not in planned.out


def test_drift_says_how_to_continue_it_and_that_an_apply_would_buy_another_slice(cli: Open) -> None:
    at = cli(timings={"deleting": 60})
    profile = _interrupt(at, 8)
    at.clock.sleep(3600)
    found = at.run("drift", profile)
    assert found.code == 2, found.all
    assert found.words.count("deleted by a `tpudeploy destroy` that was interrupted") == 2
    assert "`tpudeploy status` shows the command that continues it" in found.words
    assert "`tpudeploy apply` creates another one" not in found.words


@pytest.mark.parametrize("after", [8, 80], ids=["while it drains", "while it is deleted"])
def test_of_a_part_the_same_part_is_named(cli: Open, after: float) -> None:
    at = cli(timings={"deleting": 60})
    profile = _interrupt(at, after, "-target", "gemma[1]")
    assert "`tpudeploy destroy -target=gemma[1]` continues it." in at.run("status", profile).out
    assert at.run("destroy", "-target=gemma[1]", profile).code == 0
    assert list(at.slices.values()) == ["ACTIVE"]


def test_a_state_of_before_says_it_by_its_fingerprint(cli: Open) -> None:
    at = cli(timings={"deleting": 60})
    profile = _interrupt(at, 8)
    path = at.folder / ".tpudeploy" / "state" / "gemma.json"
    state = json.loads(path.read_text(encoding="utf-8"))
    del state["goal"]["removes"]
    path.write_text(json.dumps(state), encoding="utf-8")
    assert "`tpudeploy destroy` continues it." in at.run("status", profile).out


def test_an_apply_that_was_cut_short_is_continued_by_apply(cli: Open) -> None:
    at = cli(timings={"provisioning": 600})
    profile = at.write()
    at.killed(60, "apply", "-auto-approve", profile)
    assert "`tpudeploy apply` continues it." in at.run("status", profile).out
