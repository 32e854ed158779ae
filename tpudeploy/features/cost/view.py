"""What people read of costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from tpudeploy.features.cost.comparison import ComparedCosts, CostDifference
from tpudeploy.features.cost.spend import SpendNotes, SpendRow
from tpudeploy.reconcile.cost_wall import UNREADABLE_HINT, unreadable

_NONE = "The ledger has no slice that ran. Runs write it beside the states from this version on."


def text(by: str, rows: Sequence[SpendRow], total: SpendRow, notes: SpendNotes) -> str:
    """Return a table of the groups, and sentences about what still runs."""
    if not rows:
        return "\n".join([_NONE, *_of_unreadable_lines(notes)])
    head = (by, "spent", "chip-hours", "slices", "running", "per hour")
    table = [head, *(_cells(row) for row in rows)]
    if len(rows) > 1:
        table.append(_cells(total))
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    return "\n".join([*(_line(row, widths) for row in table), "", *_sentences(total, notes)])


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
    bound = "up to " if row.may_run else ""
    spent = f"{'at least ' if row.unknown_prices else bound}${row.usd:.2f}"
    rate = f"${row.usd_per_hour:.2f}" if row.running or row.may_run else ""
    return (row.key or "(none)", spent, f"{row.chip_hours:.2f}", str(row.slices), str(row.running), rate)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    texts = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
    return "  ".join(texts).rstrip()


def _sentences(total: SpendRow, notes: SpendNotes) -> Iterator[str]:
    yield f"At list prices of {notes.prices}; your bill may differ." if notes.prices else "No list price is known."
    yield from _of_alive(total, notes.ended_by)
    if notes.unwatched:
        yield (
            f"May have ended since a command looked, and counted until now: {', '.join(notes.unwatched)}."
            " `tpudeploy status` looks and records what it finds."
        )
    if notes.unseen:
        yield (
            f"Requested and not seen since, and counted as if granted: {', '.join(notes.unseen)}. `tpudeploy status`"
            " looks and records what it finds."
        )
    if notes.untracked:
        yield (
            f"Counted as running, though no state tracks it any more: {', '.join(notes.untracked)}. `tpudeploy gc`"
            " closes what is gone."
        )
    if notes.bounds:
        yield (
            "Google has no record of when some slices ended, which count until their own end, or until a run found them"
            f" gone: {', '.join(notes.bounds)}."
        )
    yield from _of_unreadable_lines(notes)


def _of_alive(total: SpendRow, ended_by: str) -> Iterator[str]:
    """Yield what still runs, and what may, with its price."""
    counts = {"still running": total.running, "may still run": total.may_run}
    alive = " and ".join(f"{count} {what}" for what, count in counts.items() if count)
    if alive and total.usd_to_end is None:
        rate = total.usd_per_hour
        yield f"{alive}, at ${rate:.2f}/h, which is ${rate * 24:.2f} a day. No time limit ends all of them."
    elif alive:
        yield f"{alive}: at most ${total.usd_to_end:.2f} more until {ended_by}."
    if total.may_run:
        yield f"Of ${total.usd:.2f}, ${total.usd_least:.2f} is certain."


def _of_unreadable_lines(notes: SpendNotes) -> Iterator[str]:
    if notes.unreadable_lines:
        yield f"{unreadable(notes.unreadable_lines)}: what they say is missing here. {UNREADABLE_HINT}"
