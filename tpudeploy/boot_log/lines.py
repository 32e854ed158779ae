"""Lines of a log: their times, whatever precedes them (docker, journald, the startup script), and their severity.

Errors name a cause before warnings do, and a quoted error names no cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import Enum

from tpudeploy.boot_log.reading import LogLine
from tpudeploy.boot_log.records import numbered_lines

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
# What starts a server: its container, or on several hosts the server in containers that run already. Later progress
# lines of a start have the same first word.
SERVER_STARTS = ("starting: Starting the container", "starting: Starting the server")
_MOST_BEFORE_LOG = 900.0  # seconds from there to the first line of its log; a difference of time zones is larger
_GIVES_UP = "failed: "
# What carriers of a log write before each line. One may be in another, so they are removed as long as there is one:
# the startup script in the journal, docker in a kubelet, a pipeline around all of it.
_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
_UNIT = r" [^\s:]{1,253} [\w.@/-]+(?:\[\d+\])?: "
_CARRIERS = (
    r".{0,200}?startup-script(?:\[\d+\])?: ?",
    # journalctl: short, short-iso (with its host and unit), short-full, short-monotonic; syslog's priority before it
    (
        rf"(?:<\d{{1,3}}>)?(?:[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{{1,6}})?"
        rf"|{_STAMP}(?:\.\d{{1,9}})?(?:Z|[+-]\d\d:?\d\d)"
        rf"|[A-Z][a-z]{{2}} {_STAMP}(?:\.\d{{1,6}})? \w{{1,5}}|\[ *\d{{1,9}}\.\d{{6}}\]){_UNIT}"
    ),
    r"\[pod/[^\]\s]+\] ",  # kubectl logs --prefix
    r"[\w.-]+-\d+ +(?=\| )",  # docker compose
    r" *\| ",
    rf"{_STAMP}(?:[.,]\d{{1,9}})(?:Z|[+-]\d\d:?\d\d)? ",  # docker logs -t, kubectl logs --timestamps, pipelines
    rf"{_STAMP}[+-]\d\d:?\d\d ",
    rf"{_STAMP}Z (?![a-z-]+: )",  # not the startup script's own lines, which have a state
    rf"\[{_STAMP}(?:[.,]\d{{1,9}})?(?:Z|[+-]\d\d:?\d\d)?\] ",
    r"std(?:out|err) [FP] ",  # a kubelet's file
    r"\[ *\d{1,9}\.\d{6}\] ",  # the kernel's, on a serial console
)
_CARRIER = re.compile(rf"^(?:{'|'.join(_CARRIERS)})+")
_COLOUR = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9])|\^\[\[[0-9;]*m")
_LONGEST = 4_000  # characters of a line that are read; patterns take long on more
_YEAR = 366 * 86_400.0
_FIRST_OF_BOOT, _FIRST_OF_SERVER = "booted: ", "non-default args:"


def parse_lines(text: str) -> Iterator[LogLine]:
    """Yield every line in order, empty ones too."""
    script_clock, engine_clock = _Clock(), _Clock()
    at: float | None = None
    for number, raw in numbered_lines(text):
        content = _without_carriers(raw)
        head = _HEAD.search(content)
        script = _SCRIPT.search(content) if head is None else None
        # The process is at the beginning or behind the logger's head; anywhere else it is part of a quoted log.
        process = _PROCESS.match(content) or (None if head is None else _PROCESS.match(content, head.end()))
        if head is not None:
            engine_clock.meet(head["moment"])
            at = engine_clock.read(head["moment"], at)
        elif script is not None:
            at = script_clock.read(f"{script['day']} {script['time']}", at)
        start = max((match.end() for match in (head, script, process) if match is not None), default=0)
        level, message = _level(head, script, content[start:].rstrip())
        yield LogLine(
            number=number, text=message, at=at, process="" if process is None else process["process"], level=level
        )
        if script is not None and not engine_clock.runs and message.startswith(SERVER_STARTS):
            # The container's log may be below the script's own, which continued meanwhile: it begins here.
            engine_clock.base = at or 0.0
            engine_clock.base_moment = f"{script['day']} {script['time']}"


def _without_carriers(raw: str) -> str:
    """Return a line as its program wrote it."""
    # A progress bar overwrites itself, so only its last state counts.
    content = raw.rstrip("\r").rpartition("\r")[2]
    if "\x1b" in content or "^[[" in content:
        content = _COLOUR.sub("", content)
    return _CARRIER.sub("", content[:_LONGEST], count=1)


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
        self.base_moment = ""
        self._first: datetime | None = None
        self._last = 0.0

    @property
    def runs(self) -> bool:
        return self._first is not None

    def meet(self, text: str) -> None:
        """Add to `base` what passed from `base_moment` to the first date, if both are of one time zone."""
        if self.runs or not self.base_moment:
            return
        try:
            times = [datetime.fromisoformat(f"2000-{moment}") for moment in (self.base_moment, text)]
        except ValueError:
            return
        since = (times[1] - times[0]).total_seconds()
        if 0 <= since <= _MOST_BEFORE_LOG:
            self.base += since

    def read(self, text: str, previous: float | None) -> float | None:
        """Return the time of a line, or `previous` where its date is not one.

        Processes write side by side, so time may step back a little: then the last time counts. New Year steps back by
        a year.
        """
        try:
            # vLLM writes no year: a leap year has every possible day.
            moment = datetime.fromisoformat(f"2000-{text}")
        except ValueError:
            return previous
        self._first = moment if self._first is None else self._first
        since = (moment - self._first).total_seconds()
        if since < self._last - _YEAR / 2:
            since += _YEAR
        self._last = max(since, self._last)
        return self.base + self._last


def last_boot(lines: Sequence[LogLine]) -> Sequence[LogLine]:
    """Return the lines from where the last boot began: the end of the one before says nothing about it."""
    boots = [n for n, line in enumerate(lines) if line.text.startswith(_FIRST_OF_BOOT)]
    return lines[boots[-1] :] if boots else last_server(lines)


def last_server(boot: Sequence[LogLine]) -> Sequence[LogLine]:
    """Return the lines from where the last server of a boot began; the first has imports before its flags."""
    servers = server_starts(boot)
    return boot[servers[-1] :] if len(servers) > 1 else boot


def server_starts(lines: Sequence[LogLine]) -> list[int]:
    """Return the index of the first line that each `vllm serve` writes of itself: its arguments."""
    return [n for n, line in enumerate(lines) if line.text.startswith(_FIRST_OF_SERVER)]


# The last line of a traceback: `ValueError: …`, `jax.errors.JaxRuntimeError: …`; the startup script's own last word.
EXCEPTION = re.compile(
    r"^failed: |^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|NotFound)\b(?::|$)"
)
# The sentence of what pydantic refuses, with the beginning of its tail.
REFUSED_SENTENCE = re.compile(r"^\s*(?P<sentence>(?:Value error, |Assertion failed, )?\S.*?) \[type=\w+, input_value=")
# A request, an answer, or all settings: prompts and templates quote whatever they like (vLLM entrypoints/logger.py).
_QUOTE = re.compile(
    r"^(?:Received request|Request \S+ details|Generated response|Added request|Aborted request|Finished request"
    r"|non-default args: |Initializing a V\d LLM engine|Using supplied chat template|Resolved chat template"
    r"|\S+ - \"(?:GET|POST|PUT|DELETE|HEAD|OPTIONS) )"
)
# A line of code within a traceback, and the marks below it: code may name any error. No message begins so far right.
_TEMPLATE = re.compile(r"^\s*\{[%{#]")  # of Jinja: a chat template may raise whatever it likes
# vLLM logs it with its traceback and continues without (vllm/plugins/__init__.py).
_SURVIVED = re.compile(r"^Failed to load plugin ")
_LONGEST_TRACEBACK = 200
# A plugin or an optional package: whether it was needed is said above its traceback.
_IMPORT = re.compile(r"^(?:ModuleNotFoundError|ImportError): ")
# A log may begin within its indentation.
_SOURCE = re.compile(r"^ {4,}\S|^\s*[~^]+\s*$|^\s*raise [\w.]+\(")
# It is retried, whatever the level says: huggingface_hub utils/_http.py, vLLM transformers_utils/repo_utils.py.
_RETRIED = re.compile(
    r"[Rr]etrying (?:in|with|\d+ of)|[Tt]rying again in|\[Retry \d+/\d+\]|thrown while requesting"
    r"|: \w*Warning: |^\w*Warning: |^Error retrieving file list"
)


# Whatever level it is written at, it ends the machine.
_PREEMPTION = re.compile(
    r"compute\.instances\.preempted|^(?:The )?(?:instance|VM|TPU|machine)\b.{0,60} was preempted", re.IGNORECASE
)


class LineSeverity(Enum):
    """QUOTE: names nothing. NOTE and WARNING: name a cause only where nothing worse follows."""

    QUOTE = 0
    NOTE = 1
    WARNING = 2
    FAILURE = 3


_LEVELS = {"DEBUG": LineSeverity.NOTE, "INFO": LineSeverity.NOTE, "WARNING": LineSeverity.WARNING}


def classify(lines: Sequence[LogLine]) -> list[LineSeverity]:
    """Return the severity of each line."""
    levels = [_severity(line) for line in lines]
    if len(lines) > 1 and _is_headless(lines[0]) and not _is_headless(lines[1]):
        levels[0] = _at_most_warning(levels[0])  # the rest of a line that was cut
    for n in [n for n, line in enumerate(lines) if _SURVIVED.search(line.text)]:
        for m in _traceback(lines, n):
            levels[m] = _at_most_warning(levels[m])
    for n in _survived_imports(lines):
        levels[n] = _at_most_warning(levels[n])
    last = next((n for n in reversed(range(len(lines))) if lines[n].text), 0)
    if lines and levels[last] is LineSeverity.FAILURE and _may_continue(lines[last]):
        levels[last] = LineSeverity.WARNING
    return levels


def _at_most_warning(level: LineSeverity) -> LineSeverity:
    return LineSeverity.WARNING if level is LineSeverity.FAILURE else level


def _traceback(lines: Sequence[LogLine], index: int) -> Iterator[int]:
    """Yield the numbers of the lines that one record of a logger takes, from `index` to its exception."""
    first = lines[index]
    for n in range(index, min(len(lines), index + _LONGEST_TRACEBACK)):
        if (lines[n].process, lines[n].level) == (first.process, first.level):
            yield n
            if EXCEPTION.search(lines[n].text):
                return


def _survived_imports(lines: Sequence[LogLine]) -> Iterator[int]:
    for n, line in enumerate(lines):
        if _IMPORT.search(line.text) and _is_survived(lines, n):
            yield n


def _is_survived(lines: Sequence[LogLine], index: int) -> bool:
    """Return whether the process continued after this exception, or may have: the log begins within its traceback."""
    own = [line for line in lines[:index] if line.process == lines[index].process]
    has_head = any(line.text.startswith("Traceback ") for line in own)
    is_cut = not own or _SOURCE.search(own[-1].text) is not None or own[-1].text.startswith("  File ")
    later = [line for line in lines[index + 1 :] if line.text]
    if is_cut and not has_head and (own or (index == 0 and later)):
        return True
    return any(line.level == "INFO" and lines[index].process in {"", line.process} for line in later)


def _may_continue(line: LogLine) -> bool:
    """Return whether the end of this line may be missing, with the words that make it harmless."""
    is_whole = EXCEPTION.search(line.text) or REFUSED_SENTENCE.search(line.text)
    return bool(line.process) and not line.level and not is_whole


def _is_headless(line: LogLine) -> bool:
    return not line.process and not line.level


def _severity(line: LogLine) -> LineSeverity:
    if _QUOTE.search(line.text) or _SOURCE.search(line.text) or _TEMPLATE.search(line.text):
        return LineSeverity.QUOTE
    if _PREEMPTION.search(line.text):
        return LineSeverity.FAILURE
    if _RETRIED.search(line.text) and not line.text.startswith("failed: "):
        return LineSeverity.WARNING
    return _LEVELS.get(line.level, LineSeverity.FAILURE)
