"""How things stand: looked at until nothing is on its way, and as a page."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import PROFILE, Open


def test_status_is_watched_until_it_serves(cli: Open) -> None:
    at = cli(timings={"waiting": 600}, boot={"boot_seconds": 300})
    profile = at.write()
    assert at.run("apply", "-auto-approve", "-wait", "accepted", profile).code == 0
    apart = at.clock.now()
    result = at.run("status", "--watch", profile)
    assert result.code == 0, result.all
    assert "WAITING_FOR_RESOURCES" in result.err
    assert result.out.startswith("gemma[0]  serving")
    assert result.err.count("gemma[0]  waiting for chips") > 1, "each look has another age"
    assert 900 <= at.clock.now() - apart < 1800


def test_a_status_that_will_not_change_is_shown_at_once(cli: Open) -> None:
    at = cli()
    before = at.clock.now()
    assert "not deployed" in at.run("status", "--watch", at.write()).out
    assert at.clock.now() == before


def test_the_status_of_many_takes_as_many_requests_as_their_plan_and_one_more_for_each_that_is_silent(
    cli: Open,
) -> None:
    at = cli(boot={"boot_seconds": 60}, creates_per_minute=1000)
    (at.folder / "fleet").mkdir()
    names = [f"d{number:02}" for number in range(21)]
    for name in names:
        at.write(PROFILE.replace("name: gemma", f"name: {name}"), f"fleet/{name}.yaml")
    applied = at.run("apply", "-auto-approve", "fleet")
    assert applied.code == 0, applied.all

    def count_requests(*words: str) -> int:
        at.clock.sleep(60)
        before = len(at.emulator.requests)
        result = at.run(*words)
        assert result.code == 0, result.all
        return len(at.emulator.requests) - before

    of_plan = count_requests("plan", "fleet")
    assert count_requests("status", "fleet") == of_plan < len(names)
    replicas = [d["replicas"][0] for d in json.loads(at.run("status", "fleet", "--json").out)["deployments"]]
    assert [(r["state"], r["boot"]) for r in replicas] == [("serving", "serving")] * len(names)
    at.emulator._host(replicas[0]["slice_name"], 0).power_off()
    assert count_requests("status", "fleet") == of_plan + 1
    assert at.run("status", "fleet").out.startswith("d00[0]  up, not serving")


def test_the_fleet_as_a_page(cli: Open, tmp_path: Path) -> None:
    at = cli()
    profile = at.write()
    at.run("apply", "-auto-approve", profile)
    result = at.run("status", profile, "--html", str(tmp_path / "fleet.html"))
    assert result.code == 0, result.all
    page = (tmp_path / "fleet.html").read_text()
    assert "<h3>gemma[0]: serving</h3>" in page
    assert "1 of 1 replicas serve; $1.40/h at list price" in page
    assert "us-east5-a" in page
    assert "<script" not in page
