"""What an answer that is late, wrong or missing may lead to: another look. Never to a slice less, or one more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open

A = "us-east5-a"
FULL = 'There is no more capacity in the zone "us-east5-a"; you can try in another zone'
LOOKS = ("queuedResources.get", "nodes.get", "nodes.getGuestAttributes", "operations.get")


@pytest.mark.parametrize(
    "message", [{"message": FULL, "code": 8}, {"message": "an internal error has occurred", "code": 13}, {}], ids=str
)
@pytest.mark.parametrize("also", [{}, {"fault": "lost-reply"}, {"fault": "slow-operation"}], ids=str)
def test_a_create_operation_that_failed_is_no_word_on_a_slice_that_lives(
    cli: Open, message: Mapping[str, Any], also: Mapping[str, Any]
) -> None:
    trouble = [{"fault": "operation-fails", **message}, *([also] if also else [])]
    at = cli(trouble=[{**row, "call": 1} for row in trouble])
    applied = at.run("apply", "-auto-approve", "-timeout", "1h", at.write())
    assert applied.code == 0, applied.all
    assert "Refused" not in applied.err
    assert at.requested_zones() == [A]
    assert _is_stored(at)


@pytest.mark.parametrize("fault", ["unavailable", "backend-error", "slow", "connection-refused", "lost-reply"])
@pytest.mark.parametrize("method", LOOKS)
def test_looks_that_fail_now_and_then_cost_time_and_nothing_else(cli: Open, fault: str, method: str) -> None:
    trouble = {"fault": fault, "method": method, "chance": 0.4}
    at = cli(trouble=[trouble], boot={"boot_seconds": 120})
    applied = at.run("apply", "-auto-approve", "-timeout", "1h", at.write())
    assert applied.code == 0, applied.all
    assert at.requested_zones() == [A]
    assert _is_stored(at)


@pytest.mark.parametrize("fault", ["unavailable", "slow", "connection-refused", "iam-denied", "location-denied"])
@pytest.mark.parametrize("method", ["queuedResources.get", "nodes.get"])
def test_a_cloud_that_answers_no_look_any_more_leaves_a_serving_slice_alone(cli: Open, fault: str, method: str) -> None:
    at = cli()
    profile = at.write()
    assert at.run("apply", "-auto-approve", "-timeout", "1h", profile).code == 0
    at.emulator.script({"fault": fault, "method": method, "times": 12})
    at.write(PROFILE.replace("16384", "8192"))
    ends: list[int] = []
    while 0 not in ends and len(ends) < 20:
        ends.append(at.run("apply", "-auto-approve", "-timeout", "1h", profile).code)
        assert _is_stored(at)
        at.clock.sleep(60)
    assert ends[-1] == 0
    assert "gemma[0]  serving" in at.run("status", profile).out


def _is_stored(at: CommandLine) -> bool:
    return list(at.slices.values()) == ["ACTIVE"] and not any(r.method == "DELETE" for r in at.emulator.requests)
