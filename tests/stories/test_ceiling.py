"""What may be billed at one time: a plan and a status name the ceiling, not the price of one slice."""

from __future__ import annotations

import json

import pytest
from command_line import Open
from stories.hunts import CENTRAL, WEST, A, hunt


@pytest.mark.parametrize(("requests", "ceiling"), [(2, 3.18), (3, 3.73), (8, 3.73)])
def test_a_plan_shows_what_all_requests_cost_that_may_be_granted_at_once(
    cli: Open, requests: int, ceiling: float
) -> None:
    at = cli()
    at.write(hunt(A, WEST, CENTRAL, requests=requests))
    planned = at.run("plan", "gemma.yaml")
    assert f"slices may be billed at one time (at most ${ceiling:.2f}/h)" in planned.out
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
