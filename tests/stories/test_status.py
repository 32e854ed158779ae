"""How things stand: looked at until nothing is on its way, and as a page."""

from __future__ import annotations

from pathlib import Path

from command_line import Open


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
