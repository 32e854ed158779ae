"""Lines of a log with their times: vLLM's own, whatever precedes them (docker, journald, the startup script)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from tpudeploy.boot_log.reading import Line

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
# The prefix of a container's line in the startup script's log, and before that in the journal's, of any unit;
# docker's own (`docker logs -t`, docker compose); kubectl's (`logs --prefix`).
_JOURNAL = (
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}) \S+ [\w.@/-]+(?:\[\d+\])?: "
)
_CARRIER = re.compile(
    rf"^(?:.{{0,200}}?startup-script(?:\[\d+\])?: ?|{_JOURNAL}|\[pod/[^\]\s]+\] )?(?:[\w.-]+-\d+ +(?=\| ))?(?: *\| ?)?"
    r"(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:Z|[+-]\d\d:\d\d) )?"
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LONGEST = 4_000  # characters of a line that are read; patterns take long on more
_YEAR = 366 * 86_400.0
_FIRST_OF_BOOT, _FIRST_OF_SERVER = "booted: ", "non-default args:"


def parse_lines(text: str) -> Iterator[Line]:
    """Yield every line in order, empty ones too."""
    script_clock, engine_clock = _Clock(), _Clock()
    at: float | None = None
    for number, raw in enumerate(text.split("\n"), start=1):
        # A progress bar overwrites itself, so only its last state counts.
        content = _CARRIER.sub("", _COLOUR.sub("", raw.rstrip("\r").rpartition("\r")[2])[:_LONGEST], count=1)
        head = _HEAD.search(content)
        script = _SCRIPT.search(content) if head is None else None
        # The process is at the beginning or behind the logger's head; anywhere else it is part of a quoted log.
        process = _PROCESS.match(content) or (None if head is None else _PROCESS.match(content, head.end()))
        if head is not None:
            at = engine_clock.read(head["moment"], at)
        elif script is not None:
            at = script_clock.read(f"{script['day']} {script['time']}", at)
        start = max((match.end() for match in (head, script, process) if match is not None), default=0)
        level, message = _level(head, script, content[start:].rstrip())
        yield Line(
            number=number, text=message, at=at, process="" if process is None else process["process"], level=level
        )
        if script is not None and not engine_clock.runs and message.startswith(_CONTAINER):
            # The container's log may be below the script's own, which continued meanwhile: it begins here.
            engine_clock.base = at or 0.0


def _level(head: re.Match[str] | None, script: re.Match[str] | None, message: str) -> tuple[str, str]:
    """Return the level of a line, and its message without the head of another logger."""
    if head is not None:
        return head["level"], message
    if script is not None:
        return "ERROR" if message.startswith(_GIVES_UP) else "INFO", message
    other = _OTHER_HEAD.search(message)
    if other is None:
        return "", message
    return other["word"] or _LETTERS[other["letter"]], message[other.end() :]


class _Clock:
    """Converts dates without a year to seconds since the first of them, plus `base`."""

    def __init__(self) -> None:
        self.base = 0.0
        self._first: datetime | None = None
        self._last = 0.0

    @property
    def runs(self) -> bool:
        return self._first is not None

    def read(self, text: str, previous: float | None) -> float | None:
        """Return the time of a line, or `previous` where its date is not one.

        Processes write side by side, so time may step back a little: then the last time counts. New Year steps back by
        a year.
        """
        try:
            # vLLM writes no year: a leap year has every possible day.
            moment = datetime.strptime(f"2000-{text}", "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - vLLM writes no zone
        except ValueError:
            return previous
        self._first = moment if self._first is None else self._first
        since = (moment - self._first).total_seconds()
        if since < self._last - _YEAR / 2:
            since += _YEAR
        self._last = max(since, self._last)
        return self.base + self._last


def last_boot(lines: Sequence[Line]) -> Sequence[Line]:
    """Return the lines from where the last boot began: the end of the one before says nothing about it."""
    boots = [n for n, line in enumerate(lines) if line.text.startswith(_FIRST_OF_BOOT)]
    return lines[boots[-1] :] if boots else last_server(lines)


def last_server(boot: Sequence[Line]) -> Sequence[Line]:
    """Return the lines from where the last server of a boot began; the first has imports before its flags."""
    servers = server_starts(boot)
    return boot[servers[-1] :] if len(servers) > 1 else boot


def server_starts(lines: Sequence[Line]) -> list[int]:
    """Return the index of the first line that each `vllm serve` writes of itself: its arguments."""
    return [n for n, line in enumerate(lines) if line.text.startswith(_FIRST_OF_SERVER)]
