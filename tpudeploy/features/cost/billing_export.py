"""Read Google's billing export as CSV: the rows of a query over its detailed usage table in BigQuery.

The columns are those of `gcp_billing_export_resource_v1_…` (Google's page "Structure of Detailed data export"). CSV
has no nested values, so the query of docs/how-to/what-will-this-cost.md writes `labels` and `credits` as JSON. That the
rows of a TPU have the labels of its node, and its name in `resource.name`, is not verified.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite

from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.names import SliceName
from tpudeploy.domain.orphans import OwnerMark, mark_in

_MOST_ROWS = 1_000_000
_LONGEST = 64 << 10  # characters of one value
_HOUR = 3600.0
_REQUIRED = ("sku_description", "usage_start_time", "usage_end_time", "cost", "currency")
_HINT = "docs/how-to/what-will-this-cost.md has the query whose result is read."
_CHIPS = ("tpu", "dws defined duration v")  # how the descriptions of TPU SKUs begin, as in the billing catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledRow:
    """One row: what was billed between two moments, in USD before credits, and the credits by their type.

    `name` is that of the slice, "" where the row has none, and `mark` its owner by its labels. `chip_hours` is None
    where the row does not say how long, and for what is no chip.
    """

    line: int
    since: float
    until: float
    usd: float
    credits: Mapping[str, float]
    is_chip: bool
    cost_type: str
    name: str
    mark: OwnerMark | None
    chip_hours: float | None


def read_export(lines: Iterable[str], source: str) -> Iterator[BilledRow]:
    """Yield the rows of an export. Raise `errors.UsageError`, with the number of the line, for any other text."""
    csv.field_size_limit(_LONGEST)
    reader = csv.reader(lines, strict=True)
    try:
        header = [name.strip().lower().replace(".", "_") for name in next(reader, [])]
        absent = [name for name in _REQUIRED if name not in header]
        if absent:
            raise UsageError(f"{source} is not a billing export: it has no column {', '.join(absent)}.", hint=_HINT)
        for count, values in enumerate(reader):
            if count == _MOST_ROWS:
                raise UsageError(
                    f"{source} has more than {_MOST_ROWS:,} rows.", hint="Select fewer months or projects."
                )
            yield _row(header, values, reader.line_num)
    except UnicodeDecodeError:
        raise
    except (ValueError, csv.Error, RecursionError) as cause:
        message = f"{source}:{reader.line_num} is not a row of a billing export: {cause}."
        raise UsageError(message, hint=_HINT) from cause


def _row(header: list[str], cells: list[str], line: int) -> BilledRow:
    if len(cells) != len(header):
        raise ValueError(f"it has {len(cells)} values, and the header {len(header)}")
    values = dict(zip(header, cells, strict=True))
    rate = _rate(values)
    since, until = _moment(values["usage_start_time"]), _moment(values["usage_end_time"])
    if until < since:
        raise ValueError("usage_end_time is before usage_start_time")
    sku = values["sku_description"].lower()
    is_chip = sku.startswith(_CHIPS)
    labels = {str(row["key"]): str(row["value"]) for row in _list(values, "labels", ("key", "value"))}
    name = values.get("resource_name", "").rpartition("/")[2]
    usd_by_type: dict[str, float] = {}
    for credit in _list(values, "credits", ("amount",)):
        kind = str(credit.get("type") or "OTHER")
        usd_by_type[kind] = usd_by_type.get(kind, 0.0) + _number(credit["amount"], "credits.amount") / rate
    return BilledRow(
        line=line,
        since=since,
        until=until,
        usd=_number(values["cost"], "cost") / rate,
        credits=usd_by_type,
        is_chip=is_chip,
        cost_type=values.get("cost_type", "") or "regular",
        name=name if SliceName.parse(name) is not None else "",
        mark=mark_in(labels),
        chip_hours=_chip_hours(values) if is_chip else None,
    )


def _rate(values: Mapping[str, str]) -> float:
    """Return how much of the row's currency is a US dollar: Google writes that beside each cost."""
    currency = values["currency"].strip().upper()
    if currency == "USD":
        return 1.0
    text = values.get("currency_conversion_rate", "")
    if not text:
        raise ValueError(f"its currency is {currency or 'missing'}, and it has no currency_conversion_rate")
    rate = _number(text, "currency_conversion_rate")
    if rate <= 0:
        raise ValueError(f"currency_conversion_rate is {text}")
    return rate


def _chip_hours(values: Mapping[str, str]) -> float | None:
    amount = values.get("usage_amount_in_pricing_units", "")
    if amount and values.get("usage_pricing_unit", "").lower() in {"hour", "h", "hours"}:
        return _number(amount, "usage.amount_in_pricing_units")
    amount = values.get("usage_amount", "")
    if amount and values.get("usage_unit", "").lower() in {"seconds", "s"}:
        return _number(amount, "usage.amount") / _HOUR
    return None


def _moment(text: str) -> float:
    plain = text.strip().replace(" UTC", "+00:00").replace("Z", "+00:00")
    try:
        moment = datetime.fromisoformat(plain)
    except ValueError:
        raise ValueError(f"`{text[:40]}` is not a time") from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def _number(value: object, name: str) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) else None
    except ValueError:
        number = None
    if number is None or not isfinite(number):
        raise ValueError(f"{name} is not a number")
    return number


def _list(values: Mapping[str, str], name: str, keys: tuple[str, ...]) -> list[Mapping[str, object]]:
    text = values.get(name, "").strip()
    if not text or text == "null":
        return []
    try:
        rows = json.loads(text)
    except ValueError:
        raise ValueError(f"{name} is not JSON") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and row.keys() >= set(keys) for row in rows):
        raise ValueError(f"{name} is not a list of {' and '.join(keys)}")
    return rows
