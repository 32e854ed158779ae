"""Every refusal there is, on every layer it may come on: the run ends as the row's remedy says, and leaves nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open
from refusal_cases import SELF_NAMED

from tpudeploy.adapters.google.codes import TRANSIENT, Code
from tpudeploy.adapters.google.refusals import UNKNOWN, VERDICTS
from tpudeploy.adapters.google.refusals.row import Layer, RefusalRow
from tpudeploy.domain.slices import RefusalScope, Remedy
from tpudeploy.emulator.faults import FAULTS

A, B, ELSEWHERE = "us-east5-a", "us-east5-b", "europe-west4-a"
CREATE = "queuedResources.create"

# The emulator's faults that speak for a row. Rows that are absent are played by their own words, or by none that
# anybody knows.
PLAYED: Mapping[str, tuple[str, ...]] = {
    "stockout": ("stockout", "insufficient-capacity"),
    "stockout-reserved": ("reserved-stockout",),
    "lapsed": ("expired",),
    "rate-limit": ("rate-limit",),
    "address-quota": ("ip-quota",),
    "quota-none": ("quota-zero",),
    "quota": ("quota-exhausted",),
    "zone-unsupported": ("zone-unsupported",),
    "type-unsupported": ("type-unsupported",),
    "model-mismatch": ("spot-mismatch",),
    "model-unsupported": ("model-unsupported",),
    "no-queueing": ("no-queueing",),
    "too-big": ("too-big",),
    "queue-closed": ("queue-closed",),
    "reservation-queue": ("reservation-queue",),
    "reservation-missing": ("reservation-missing",),
    "location-denied": ("location-denied",),
    "policy": ("no-subnetwork", "org-policy", "subnetwork-missing"),
    "api-off": ("api-off",),
    "credentials": ("unauthenticated",),
    "permission": ("iam-denied",),
    "runtime": ("runtime-unknown",),
    "internal": ("internal-error", "backend-error"),
    "unavailable": ("unavailable",),
    **{kind: (kind,) for kind in SELF_NAMED},
}
BY_WORDS = {
    "exhausted",
    "invalid",
    "timeout",
    "exists",
    "not-found",
    "wrong-state",
    "unknown",
    "service-agent",
    "not-allowlisted",
}
# Rows that no create of a queued resource meets have stories of their own: below, in test_acquisition.py and in
# test_deletion.py. Those of Compute Engine alone are in test_instances.py and tests/adapters/test_cloud_contract.py.
OF_INSTANCES = {"disk-quota", "machine-refused", "machine-mismatch", "machine-image"}
ELSEWHERE_TOLD = {"reservation-full", "preempted", "delete-refused", "bucket-permission", "object-rate", "not-ready"}
REQUEST = (Layer.REPLY, Layer.CREATE, Layer.FAILED)


def _trouble(row: RefusalRow) -> Iterator[Mapping[str, Any]]:
    """What the scenario is told, for each way in which the row is played."""
    for fault in PLAYED.get(row.kind, ()):
        yield {"fault": fault, "limit": 16} if fault in {"quota-exhausted", "too-big"} else {"fault": fault}
    if row.kind in BY_WORDS:
        code = row.code if row.code is not None else Code.FAILED_PRECONDITION
        text = row.examples[0] if row.examples else "quantum flux in chip 3"
        yield {"fault": "stockout", "message": text, "code": int(code)}


PLAYS = [(row, trouble) for row in (*VERDICTS, UNKNOWN) for trouble in _trouble(row)]
# Each in one of its layers, and with the long stories in the others.
CASES = [
    pytest.param(row, trouble, layer, marks=() if (number + at) % len(REQUEST) == 0 else pytest.mark.long)
    for number, (row, trouble) in enumerate(PLAYS)
    for at, layer in enumerate(REQUEST)
]


def _id(value: object) -> str:
    match value:
        case RefusalRow():
            return value.kind
        case Layer():
            return value.value
        case _:
            assert isinstance(value, Mapping)
            return str(value["fault"])


def test_every_row_is_played_by_the_emulator_or_by_its_words() -> None:
    assert {row.kind for row in (*VERDICTS, UNKNOWN)} == PLAYED.keys() | BY_WORDS | ELSEWHERE_TOLD | OF_INSTANCES
    refusals = {name for name, fault in FAULTS.items() if fault.kind == "refusal"}
    assert {fault for faults in PLAYED.values() for fault in faults} == refusals


@pytest.mark.parametrize(("row", "trouble", "layer"), CASES, ids=_id)
def test_one_bad_zone_is_left_or_looked_at_again_or_stops_the_run_as_its_row_says(
    cli: Open, row: RefusalRow, trouble: Mapping[str, Any], layer: Layer
) -> None:
    passes = row.remedy is Remedy.LOOK_AGAIN or (layer is Layer.REPLY and row.code in TRANSIENT)
    times = {"times": 1} if passes else {}
    at = cli(trouble=[{**trouble, **times, "zone": A, "method": CREATE, "layer": layer.value}])
    applied = at.run("apply", "-auto-approve", at.write())
    if row.remedy is Remedy.STOP:
        assert applied.code == 1, applied.all
        assert at.requested_zones() == [A]
        assert not at.slices
        error = applied.err.partition("Error: ")[2]
        assert row.hint in error or any(hint in error for hint in row.hints.values())
        assert layer is Layer.REPLY or f"explain {row.kind}" in error
        return
    assert applied.code == 0, applied.all
    assert at.requested_zones() in ([[A, A], [A, B]] if passes else [[A, _beyond(row)]])
    assert f" in {A}, spot ({row.kind})" in applied.err or passes
    assert _stands_alone(at)


def _beyond(row: RefusalRow) -> str:
    """The next place that the row does not speak of. Where a text decides, the emulator's names the region."""
    return ELSEWHERE if row.scope in {RefusalScope.REGION, RefusalScope.REGION_RESOURCES, None} else B


def _stands_alone(at: CommandLine) -> bool:
    return list(at.slices.values()) == ["ACTIVE"] and "gemma[0]  serving" in at.run("status", "gemma.yaml").out


def test_a_full_reservation_stops_at_once_where_nothing_else_may_be_asked(cli: Open) -> None:
    at = cli(trouble=[{"fault": "reserved-stockout", "model": "STANDARD"}])
    stopped = at.run("apply", "-auto-approve", at.write(_reserved("[reserved]")))
    assert stopped.code == 1, stopped.all
    assert "(reservation-full)" in stopped.err
    assert f"{A}, reserved: Insufficient reserved capacity" in stopped.err.partition("Error: ")[2]
    assert at.requested_zones() == [A]
    assert not at.slices


@pytest.mark.parametrize("layer", ["L1", "L2", "L3"])
def test_a_full_reservation_gives_way_to_the_next_model_and_is_not_asked_again(cli: Open, layer: str) -> None:
    at = cli(trouble=[{"fault": "reserved-stockout", "model": "STANDARD", "layer": layer}])
    applied = at.run("apply", "-auto-approve", at.write(_reserved("[reserved, spot]")))
    assert applied.code == 0, applied.all
    assert f"Refused in {A}, reserved (reservation-full)" in applied.err
    assert at.requested_zones() == [A, A]
    assert _stands_alone(at)


def _reserved(models: str) -> str:
    reservation = f"  reservation: projects/my-project/locations/{A}/reservations/r\n"
    return PROFILE.replace("[spot]", models).replace(f"[{A}, {B}, {ELSEWHERE}]", f"[{A}]") + reservation


@pytest.mark.parametrize(("after", "then"), [(1, B), (100, B), (2000, A)], ids=["at once", "at its boot", "late"])
def test_a_node_that_is_taken_back_is_asked_for_again_in_its_own_zone_first_only_if_it_had_lasted(
    cli: Open, after: float, then: str
) -> None:
    at = cli(trouble=[{"fault": "preempt", "call": 1, "after": after}], boot={"boot_seconds": max(300, after + 300)})
    applied = at.run("apply", "-auto-approve", at.write(PROFILE + "health: {timeout: 3h}\n"))
    assert applied.code == 0, applied.all
    assert "PREEMPTED" in applied.err
    assert at.requested_zones() == [A, then]
    assert _stands_alone(at)
