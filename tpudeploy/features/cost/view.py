"""What people read of costs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from tpudeploy.features.cost.comparison import ComparedCosts, CostDifference
from tpudeploy.features.cost.spend import SpendRow

_NONE = "The ledger has no slice that ran. Runs write it beside the states from this version on."


def text(
    by: str,
    rows: Sequence[SpendRow],
    total: SpendRow,
    *,
    prices: str,
    ended_by: str,
    untracked: Sequence[str],
    bounds: Sequence[str],
    unwatched: Sequence[str],
) -> str:
    """Return a table of the groups, and sentences about what still runs."""
    if not rows:
        return _NONE
    head = (by, "spent", "chip-hours", "slices", "running", "per hour")
    table = [head, *(_cells(row) for row in rows)]
    if len(rows) > 1:
        table.append(_cells(total))
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    lines = [_line(row, widths) for row in table]
    sentences = _sentences(total, prices, ended_by=ended_by, untracked=untracked, bounds=bounds, unwatched=unwatched)
    return "\n".join([*lines, "", *sentences])


def comparison_text(compared: ComparedCosts) -> str:
    """Return a table of what the ledger has and what was billed, and under each row what the difference comes from."""
    if not compared.rows:
        return "The export has no rows."
    rows = [*compared.rows, *([compared.total] if len(compared.rows) > 1 else [])]
    table = [("", "ledger", "billed", "difference"), *(_compared_cells(row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = [_line(table[0], widths)]
    for row, cells in zip(rows, table[1:], strict=True):
        lines.append(_line(cells, widths))
        lines += [f"    {_signed(usd)}  {cause}" for cause, usd in row.causes.items()]
    since, until = (
        datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M") for at in (compared.since, compared.until)
    )
    end = f"From {since} to {until} (UTC), the time of the export, in USD. Its latest hours may be incomplete."
    return "\n".join([*lines, "", end])


def _compared_cells(row: CostDifference) -> tuple[str, ...]:
    return (row.key, f"${row.ledger_usd:.2f}", f"${row.billed_usd:.2f}", _signed(row.billed_usd - row.ledger_usd))


def _signed(usd: float) -> str:
    return f"{'-' if usd < 0 else '+'}${abs(usd):.2f}"


def _cells(row: SpendRow) -> tuple[str, ...]:
    spent = f"{'at least ' if row.unknown_prices else ''}${row.usd:.2f}"
    rate = f"${row.usd_per_hour:.2f}" if row.running else ""
    return (row.key or "(none)", spent, f"{row.chip_hours:.2f}", str(row.slices), str(row.running), rate)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    texts = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
    return "  ".join(texts).rstrip()


def _sentences(
    total: SpendRow,
    prices: str,
    *,
    ended_by: str,
    untracked: Sequence[str],
    bounds: Sequence[str],
    unwatched: Sequence[str],
) -> list[str]:
    sentences = [f"At list prices of {prices}; your bill may differ." if prices else "No list price is known."]
    if total.running and total.usd_to_end is None:
        sentences.append(
            f"{total.running} still running, at ${total.usd_per_hour:.2f}/h, which is ${total.usd_per_hour * 24:.2f} a"
            " day. No time limit ends all of them."
        )
    elif total.running:
        sentences.append(f"{total.running} still running: at most ${total.usd_to_end:.2f} more until {ended_by}.")
    if unwatched:
        sentences.append("A machine that has deleted itself counts as running until the next `tpudeploy apply`.")
    if untracked:
        sentences.append(
            f"Counted as running, though no state tracks it any more: {', '.join(untracked)}. `tpudeploy gc`"
            " closes what is gone."
        )
    if bounds:
        sentences.append(
            "Google has no record of when some slices ended, which count until their own end, or until a run found them"
            f" gone: {', '.join(bounds)}."
        )
    return sentences
