"""What may be billed at one time: a plan and a status name the ceiling, not the price of one slice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Open
from stories.hunts import CENTRAL, CHILE, WEST, A, hunt

import tpudeploy as td


@pytest.mark.parametrize(("requests", "ceiling"), [(2, 3.18), (3, 3.73), (8, 3.73)])
def test_a_plan_shows_what_all_requests_cost_that_may_be_granted_at_once(
    cli: Open, requests: int, ceiling: float
) -> None:
    at = cli()
    at.write(hunt(A, WEST, CENTRAL, requests=requests))
    planned = at.run("plan", "gemma.yaml")
    assert f"slices may be billed at once (at most ${ceiling:.2f}/h)" in planned.out
    assert "deleted within 13m 30s" in planned.out
    (goal,) = json.loads(at.run("plan", "-json", "gemma.yaml").out)["goals"]
    (change,) = goal["changes"]
    assert change["usd_per_hour_at_once"] == pytest.approx(ceiling, abs=0.01)


def test_a_plan_with_one_request_at_a_time_shows_no_ceiling_beside_the_price(cli: Open) -> None:
    at = cli()
    at.write(hunt(A, WEST, requests=1))
    assert "at one time" not in at.run("plan", "gemma.yaml").out


def test_a_status_shows_what_is_billed_if_every_request_that_waits_is_granted(cli: Open) -> None:
    at = cli(trouble=[{"fault": "wait-for-ever"}])
    at.write(hunt(A, WEST, CENTRAL))
    assert at.run("apply", "-auto-approve", "-timeout", "10m", "gemma.yaml").code == 12
    assert "At most $3.73/h may be billed at one time" in at.run("status", "gemma.yaml").words


def test_a_place_without_a_known_price_makes_the_ceiling_a_lower_bound(cli: Open) -> None:
    at = cli()
    at.write(hunt(A, WEST, CHILE, requests=2))
    planned = at.run("plan", "gemma.yaml")
    assert "about $1.40/h (up to $1.78/h or more; 1 of 3 prices unknown) at list price" in planned.words
    assert "slices may be billed at once (at least $3.18/h; 1 of 3 prices unknown)" in planned.words


def test_a_first_place_without_a_known_price_is_named(cli: Open) -> None:
    at = cli()
    at.write(hunt(CHILE, requests=1))
    assert "# price unknown (1 of 1 price unknown) once granted" in at.run("plan", "gemma.yaml").words


def test_the_ceiling_of_a_plan_is_that_of_all_its_replicas_and_of_what_runs(cli: Open) -> None:
    at = cli()
    at.write(hunt(A, WEST, requests=2, top="replicas: 2"))
    planned = at.run("plan", "gemma.yaml")
    assert "At most $6.37/h may be billed at one time while this plan is applied, at list price." in planned.out
    assert json.loads(at.run("plan", "-json", "gemma.yaml").out)["ceiling"] == {
        "usd_per_hour": pytest.approx(6.37, abs=0.01),
        "prices": 4,
        "unknown_prices": 0,
    }
    with td.Workspace.open(at.folder, clock=at.clock) as workspace:
        plan = workspace.plan([at.folder / "gemma.yaml"])
    assert plan.ceiling.is_known
    assert plan.ceiling.usd_per_hour == pytest.approx(6.37, abs=0.01)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert "may be billed" not in at.run("plan", "gemma.yaml").out
    assert json.loads(at.run("plan", "-json", "gemma.yaml").out)["ceiling"]["prices"] == 2, "what runs is billed"


def test_a_status_counts_the_requests_whose_price_is_unknown(cli: Open) -> None:
    at = cli(trouble=[{"fault": "wait-for-ever"}])
    at.write(hunt(A, CHILE, requests=2))
    assert at.run("apply", "-auto-approve", "-timeout", "10m", "gemma.yaml").code == 12
    assert "At least $1.40/h (1 of 2 prices unknown) may be billed at one time" in at.run("status", "gemma.yaml").words


def test_a_plan_that_scales_has_the_ceiling_of_its_most_replicas(cli: Open) -> None:
    at = cli()
    at.write(hunt(A, CHILE, requests=1, top="scale: {min: 1, max: 3, waiting: 8, kv_cache: 0.85}"))
    planned = at.run("plan", "gemma.yaml")
    assert "at least $4.21/h; 1 of 2 prices unknown. `apply -watch`" in planned.words


def test_the_first_profile_of_the_readme_costs_what_the_readme_says_and_ends(cli: Open) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    at = cli()
    at.write(readme.split("```yaml\n", 1)[1].split("```", 1)[0])
    planned = at.run("plan", "gemma.yaml")
    assert "about $1.35/h at list price once granted" in planned.out
    assert "Google deletes the machine 4h 0m after the grant" in planned.out
    assert "Gemma 4 E2B on one v6e chip costs about $1.35 an hour with flex-start" in readme
