"""Text → lines with their times: vLLM's own, whatever stands before them (docker, journald, the startup script)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from tpudeploy.domain.bootlog import Line

# (EngineCore pid=187) ERROR 08-07 20:40:29 [core.py:1349] text. The same from 0.12 to 0.32; a worker's name may be
# longer (EngineCore_DP0), and what is printed past the logger has the process alone, or nothing.
_PROCESS = re.compile(r"\((?P<process>[A-Za-z]\w*) pid=\d+(?:, ip=[^)\s]*)?\) ?")
_HEAD = re.compile(
    r"\b(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<moment>\d\d-\d\d \d\d:\d\d:\d\d)"
    r"(?:\.\d+)? \[[^\]\n]{1,200}\] ?"
)
# Loggers that write no date of vLLM's: uvicorn's (uvicorn/logging.py), Python's default, and absl's in libtpu and XLA.
_OTHER_HEAD = re.compile(
    r"^(?:(?P<word>DEBUG|INFO|WARNING|ERROR|CRITICAL):(?: {2,}|[\w.]+:)"
    r"|(?P<letter>[IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^\]\n]{1,200}\]) ?"
)
_LETTERS = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL"}
# The startup script's own lines (templates/boot/report.sh).
_SCRIPT = re.compile(r"^\d{4}-(?P<day>\d\d-\d\d)T(?P<time>\d\d:\d\d:\d\d)Z ")
_CONTAINER = "starting: Starting the container"
_GIVES_UP = "failed: "
# What stands before a container's line in the startup script's log, and before that in the journal's, of any unit;
# docker's own (`docker logs -t`, docker compose); kubectl's (`logs --prefix`).
_JOURNAL = (
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}) \S+ [\w.@/-]+(?:\[\d+\])?: "
)
_CARRIER = re.compile(
    rf"^(?:.{{0,200}}?startup-script(?:\[\d+\])?: ?|{_JOURNAL}|\[pod/[^\]\s]+\] )?(?:[\w.-]+-\d+ +(?=\| ))?(?: *\| ?)?"
    r"(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:Z|[+-]\d\d:\d\d) )?"
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# A line says what it says in its first thousands of characters; beyond, patterns only take time.
_MOST = 4_000
_YEAR = 366 * 86_400.0


def lines(text: str) -> Iterator[Line]:
    """Every line, in order, empty ones too."""
    script, engine = _Clock(), _Clock()
    at: float | None = None
    for number, written in enumerate(text.split("\n"), start=1):
        # A progress bar overwrites itself: its last word counts.
        said = _CARRIER.sub("", _COLOUR.sub("", written.rstrip("\r").rpartition("\r")[2])[:_MOST], count=1)
        head = _HEAD.search(said)
        # At the beginning or behind the logger's head; elsewhere somebody quotes a log.
        process = _PROCESS.match(said) or (None if head is None else _PROCESS.match(said, head.end()))
        ours = _SCRIPT.search(said) if head is None else None
        if head is not None and (moment := _moment(head["moment"])) is not None:
            at = engine.read(moment)
        elif ours is not None and (moment := _moment(f"{ours['day']} {ours['time']}")) is not None:
            at = script.read(moment)
        start = max((found.end() for found in (head, ours, process) if found is not None), default=0)
        text = said[start:].rstrip()
        level = "" if head is None else head["level"]
        other = _OTHER_HEAD.search(text) if head is None else None
        if ours is not None:
            level = "ERROR" if text.startswith(_GIVES_UP) else "INFO"
        elif other is not None:
            level, text = other["word"] or _LETTERS[other["letter"]], text[other.end() :]
        yield Line(number=number, text=text, at=at, process="" if process is None else process["process"], level=level)
        if ours is not None and not engine.runs and said[start:].startswith(_CONTAINER):
            # The container's log may stand below the script's own, which went on meanwhile: it begins here.
            engine.base = at or 0.0


class _Clock:
    """Dates without a year → seconds since the first, plus `base`."""

    def __init__(self) -> None:
        self.base = 0.0
        self._first: datetime | None = None
        self._last = 0.0

    @property
    def runs(self) -> bool:
        return self._first is not None

    def read(self, moment: datetime) -> float:
        """Processes write side by side, so time may step back a little: then it stands. New Year steps by a year."""
        self._first = moment if self._first is None else self._first
        since = (moment - self._first).total_seconds()
        if since < self._last - _YEAR / 2:
            since += _YEAR
        self._last = max(since, self._last)
        return self.base + self._last


def _moment(written: str) -> datetime | None:
    """VLLM writes no year: a leap year knows every day there is."""
    try:
        return datetime.strptime(f"2000-{written}", "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - vLLM writes no zone
    except ValueError:
        return None
