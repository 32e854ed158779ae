"""Text → lines with their times: vLLM's own, whatever stands before them (docker, journald, the startup script)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from tpudeploy.domain.bootlog import Line

# (EngineCore pid=187) ERROR 08-07 20:40:29 [core.py:1349] text. The same from 0.12 to 0.32; a worker's name may be
# longer (EngineCore_DP0), and what is printed past the logger has the process alone, or nothing.
_PROCESS = re.compile(r"\((?P<process>[A-Za-z]\w*) pid=\d+\) ?")
_HEAD = re.compile(
    r"\b(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<moment>\d\d-\d\d \d\d:\d\d:\d\d)"
    r"(?:\.\d+)? \[[^\]\n]{1,200}\] ?"
)
# The startup script's own lines (templates/boot/report.sh).
_SCRIPT = re.compile(r"^\d{4}-(?P<day>\d\d-\d\d)T(?P<time>\d\d:\d\d:\d\d)Z ")
# What stands before a container's line in the startup script's log, and before that in the journal's.
_CARRIER = re.compile(r"^(?:.{0,200}?startup-script(?:\[\d+\])?: ?)?(?: *\| ?)?")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# A line says what it says in its first thousands of characters; beyond, patterns only take time.
_MOST = 4_000
_YEAR = 366 * 86_400.0


def lines(text: str) -> Iterator[Line]:
    """Every line, in order, empty ones too."""
    first: datetime | None = None
    at: float | None = None
    for number, written in enumerate(text.split("\n"), start=1):
        # A progress bar overwrites itself: its last word counts.
        said = _CARRIER.sub("", _COLOUR.sub("", written.rstrip("\r").rpartition("\r")[2])[:_MOST], count=1)
        process = _PROCESS.search(said)
        head = _HEAD.search(said)
        ours = _SCRIPT.search(said) if head is None else None
        written_at = head["moment"] if head is not None else f"{ours['day']} {ours['time']}" if ours is not None else ""
        moment = _moment(written_at)
        if moment is not None:
            first = moment if first is None else first
            at = _later(first, moment, at)
        start = next((found.end() for found in (head, ours, process) if found is not None), 0)
        yield Line(
            number=number,
            text=said[start:].rstrip(),
            at=at,
            process="" if process is None else process["process"],
            level="" if head is None else head["level"],
        )


def _moment(written: str) -> datetime | None:
    """VLLM writes no year: a leap year knows every day there is."""
    try:
        return datetime.strptime(f"2000-{written}", "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - vLLM writes no zone
    except ValueError:
        return None


def _later(first: datetime, moment: datetime, before: float | None) -> float:
    """Seconds since the first. Processes write side by side, so time may step back a little; New Year by a year."""
    at = (moment - first).total_seconds()
    if before is not None and at < before - _YEAR / 2:
        at += _YEAR
    return max(at, before if before is not None else 0.0)
