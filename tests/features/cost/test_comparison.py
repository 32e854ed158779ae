"""`cost -compare`: the ledger beside Google's billing export, and the cause of each difference."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open

# The columns of the query in docs/how-to/what-will-this-cost.md, by the documented schema of the detailed export.
COLUMNS = [
    "service_description",
    "sku_description",
    "usage_start_time",
    "usage_end_time",
    "project_id",
    "location_region",
    "resource_name",
    "cost",
    "currency",
    "currency_conversion_rate",
    "usage_amount",
    "usage_unit",
    "labels",
    "credits",
    "cost_type",
]
PRICE = 1.4033


@pytest.fixture
def at(cli: Open) -> CommandLine:
    """A deployment that ran for two hours and is gone."""
    at = cli(nodes="simulated")
    profile = at.write(PROFILE)
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.clock.sleep(7200)
    assert at.run("destroy", "-auto-approve", profile).code == 0
    return at


def billed(at: CommandLine, **changes: Any) -> dict[str, str]:
    """Return the row of the slice as Google's bill has it, with changes."""
    (machine,) = at.emulator.bill()
    assert machine.ended is not None
    seconds = float(changes.pop("seconds", machine.ended - machine.began))
    times = (
        datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M:%S.%f UTC") for t in (machine.began, machine.ended)
    )
    start, end = times
    name = machine.name.rsplit("-", 3)
    labels = {"tpudeploy-deployment": name[0], "tpudeploy-lineage": name[1], "tpudeploy-replica": name[2]}
    row: dict[str, Any] = {
        "service_description": "Cloud TPU",
        "sku_description": "TpuV6e attached to Spot Preemptible VMs running in Columbus",
        "usage_start_time": start,
        "usage_end_time": end,
        "project_id": "emulated",
        "location_region": "us-east5",
        "resource_name": f"projects/1/locations/us-east5-a/nodes/{machine.name}",
        "cost": PRICE * seconds / 3600,
        "currency": "USD",
        "currency_conversion_rate": "1.0",
        "usage_amount": seconds,
        "usage_unit": "seconds",
        "labels": json.dumps([{"key": key, "value": value} for key, value in labels.items()]),
        "credits": "[]",
        "cost_type": "regular",
    }
    return {key: str(value) for key, value in {**row, **changes}.items()}


def export_of(at: CommandLine, *rows: Mapping[str, str]) -> str:
    with (at.folder / "export.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return "export.csv"


def causes(at: CommandLine, *rows: Mapping[str, str]) -> dict[str, float]:
    result = at.run("cost", "-compare", export_of(at, *rows), "-json")
    assert result.code == 0, result.all
    total = json.loads(result.out)["compared"]["total"]
    assert sum(total["causes"].values()) == pytest.approx(total["billed_usd"] - total["ledger_usd"], abs=0.02)
    parts: dict[str, float] = total["causes"]
    return parts


def test_a_bill_by_the_list_price_has_no_differences(at: CommandLine) -> None:
    assert causes(at, billed(at)) == {}
    text = at.run("cost", "-compare", "export.csv")
    assert text.code == 0
    assert "ledger billed difference" in text.words
    assert "+$0.00" in text.words


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        ("COMMITTED_USAGE_DISCOUNT", "committed-use discounts"),
        ("SUSTAINED_USAGE_DISCOUNT", "sustained-use discounts"),
        ("PROMOTION", "other credits"),
    ],
)
def test_credits_are_told_apart_by_their_type(at: CommandLine, kind: str, cause: str) -> None:
    text = json.dumps([{"name": "x", "amount": -0.5, "type": kind}, {"name": "y", "amount": -0.25, "type": kind}])
    assert causes(at, billed(at, credits=text)) == pytest.approx({cause: -0.75})


def test_another_time_is_rounding_up_to_three_minutes_and_another_time_above(at: CommandLine) -> None:
    seconds = float(billed(at)["usage_amount"])
    assert list(causes(at, billed(at, seconds=seconds + 60))) == ["rounding of time"]
    assert causes(at, billed(at, seconds=seconds + 3600)) == pytest.approx({"another time": PRICE}, abs=0.01)


def test_another_price_is_its_own_cause(at: CommandLine) -> None:
    row = billed(at)
    dearer = {**row, "cost": str(float(row["cost"]) * 1.1)}
    assert causes(at, dearer) == pytest.approx({"another price": float(row["cost"]) * 0.1}, abs=0.01)
    assert list(causes(at, {**dearer, "usage_amount": ""})) == ["another price or time"]


def test_another_currency_is_converted_by_googles_own_rate(at: CommandLine) -> None:
    row = billed(at)
    euros = {**row, "cost": str(float(row["cost"]) * 0.9), "currency": "EUR", "currency_conversion_rate": "0.9"}
    assert causes(at, euros) == {}


def test_rows_without_names_are_found_by_their_labels(at: CommandLine) -> None:
    assert causes(at, billed(at, resource_name="")) == {}


def test_what_only_one_of_the_two_has_is_named(at: CommandLine) -> None:
    other = billed(at, resource_name="projects/1/locations/us-east5-a/nodes/other-0a1b2c3d-0-0", labels="[]", cost="2")
    unlabeled = billed(at, resource_name="", labels="[]", cost="3")
    disk = billed(at, sku_description="Balanced PD Capacity in Columbus", cost="0.4")
    tax = billed(at, cost="0.1", cost_type="tax")
    assert causes(at, billed(at), other, unlabeled, disk, tax) == pytest.approx(
        {
            "not in the ledger": 2.0,
            "TPUs without labels of tpudeploy": 3.0,
            "disks, addresses and other resources": 0.4,
            "taxes and adjustments": 0.1,
        }
    )
    assert list(causes(at, other)) == ["not in the ledger", "not in the export"]


WRONG = [
    ({"cost": "much"}, "export.csv:2 is not a row of a billing export: cost is not a number"),
    ({"cost": "nan"}, "cost is not a number"),
    ({"usage_start_time": "yesterday"}, "`yesterday` is not a time"),
    ({"labels": "{"}, "labels is not JSON"),
    ({"credits": '[{"name": "x"}]'}, "credits is not a list of amount"),
    ({"currency": "EUR", "currency_conversion_rate": ""}, "has no currency_conversion_rate"),
    ({"usage_end_time": "2020-01-01 00:00:00 UTC"}, "usage_end_time is before usage_start_time"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_a_row_that_cannot_be_read_is_an_error_with_its_line(
    at: CommandLine, change: dict[str, str], message: str
) -> None:
    wrong = at.run("cost", "-compare", export_of(at, billed(at, **change)))
    assert (wrong.code, message in wrong.words) == (1, True), wrong.all


def test_another_file_is_no_export(at: CommandLine) -> None:
    path = at.folder / "export.csv"
    for content, message in (
        (b"a,b\n1,2\n", "is not a billing export: it has no column sku_description"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"", "it has no column"),
        (",".join(COLUMNS).encode() + b"\n1,2\n", "export.csv:2 is not a row of a billing export: it has 2 values"),
        (",".join(COLUMNS).encode() + b'\n"' + b"x" * 70_000, "is not a row"),
    ):
        path.write_bytes(content)
        wrong = at.run("cost", "-compare", "export.csv")
        assert (wrong.code, message in wrong.words) == (1, True), wrong.all
    assert at.run("cost", "-compare", "absent.csv").code == 1
