"""The first real cause among the lines of a start, never the wrapper around it.

Why: decision 31 in docs/decisions.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tpudeploy.boot_log import phases
from tpudeploy.boot_log.lines import EXCEPTION, REFUSED_SENTENCE, LineSeverity, classify
from tpudeploy.boot_log.reading import Cause, LogLine
from tpudeploy.boot_log.settings import EngineFacts
from tpudeploy.boot_log.signatures import HARMLESS, SIGNATURES
from tpudeploy.boot_log.signatures.row import Signature

UNKNOWN = "unknown"
DIED = "server-died"
REFUSED = "configuration-refused"
GAVE_UP = "startup-failed"
# Lines of a process that waited for the one that died.
_WRAPPER = re.compile(
    r"Engine core initialization failed|failed during engine core initialization|Engine process failed to start"
    r"|EngineDeadError|EngineCore encountered an issue"
    r"|EngineCore failed to start|EngineCore encountered a fatal error|AsyncLLM output_handler failed"
    r"|WorkerProc (?:failed|hit an exception)|WorkerProc initialization failed|died unexpectedly|died with exit code"
    r"|Exception occurred while running API servers|^Traceback |Application startup failed|^SystemExit: "
)
# An engine that served has ended (vLLM v1/engine/core.py, v1/engine/exceptions.py, v1/utils.py).
_DEAD = re.compile(
    r"EngineDeadError|EngineCore encountered (?:a fatal error|an issue)|died unexpectedly|died with exit code|^failed: "
)
# Lines after the message of an exception that are not part of it.
_NO_CONTINUATION = re.compile(
    rf"^-{{5,}}|^Traceback |^For simplicity, JAX|^During handling|^The above exception|{EXCEPTION.pattern}"
)
_FURTHER_LINES = 12  # of the process that writes it
_REACH = 60  # of all processes together
# Exceptions that do not say what they are about.
_UNSPECIFIC = re.compile(r"\bConnection(?:Refused|Reset|Aborted)?Error\b|^TimeoutError\b|\[Errno 111\]")
_HEADLINE = re.compile(rf"RESOURCE_EXHAUSTED|{EXCEPTION.pattern}|^failed: |[Ee]rror: |^Error |Client [Ee]rror")
# pydantic's headline, `1 validation error for ModelConfig`: one or two lines below it say what is wrong.
_PYDANTIC = re.compile(r"\b\d+ validation errors? for (?P<config>\w+)")
_PYDANTIC_TAIL = re.compile(r" \[type=\w+.*$")
# The script quotes the container's last words; these are then the engine's, not a sentence of ours.
_QUOTES = re.compile(r"^failed: The container ended \(exit code \w+\): ")
_API_SERVER = re.compile(r"^API_?[Ss]erver|^ApiServer")
# An engine that reached one of these after an error got further, so the error was not its end.
_FURTHER = ("weights", "compile", "warm-up")
_LAST_LINES = 6  # the log ends with a warning if that is among so few of its last lines


def first_cause(lines: Sequence[LogLine], facts: EngineFacts, *, is_serving: bool) -> Cause | None:
    """Return the cause that these lines name, or None where nothing failed as far as they go."""
    log = _Log(lines, facts)
    return log.cause_after_serving() if is_serving else log.cause_before_serving()


def is_wrapper(text: str) -> bool:
    """Return whether a line only reports that another process failed."""
    return _WRAPPER.search(text) is not None


def is_partial(cause: Cause | None) -> bool:
    """Return whether the server serves in spite of it."""
    return cause is not None and any(row.name == cause.signature and not row.ends_server for row in SIGNATURES)


def harmless_lines(lines: Sequence[LogLine]) -> Iterator[tuple[LogLine, str]]:
    """Yield each harmless alarm once, with why it is harmless."""
    remaining = dict(HARMLESS)
    for line in lines:
        for pattern in [p for p in remaining if p.search(line.text)]:
            yield line, remaining.pop(pattern)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Progress:
    """The last line in which anything got further: `by` process, `last` of all, `ready` where it serves."""

    by: Mapping[str, int]
    last: int
    ready: int

    def is_beyond(self, line: LogLine, index: int) -> bool:
        """Return whether the process of this line continued afterwards, so that the line was not its end.

        An API server starts engines and only then waits, so their progress counts for it, and for a line without a
        process.
        """
        if line.text.startswith("failed: "):
            return False
        is_any = not line.process or _API_SERVER.search(line.process) is not None
        return index < max(self.ready, self.last if is_any else self.by.get(line.process, -1))


def _progress(lines: Sequence[LogLine]) -> _Progress:
    by: dict[str, int] = {}
    ready = -1
    for n, line in enumerate(lines):
        if phases.phase_of(line) in _FURTHER:
            by[line.process] = n
        elif phases.READY.search(line.text):
            ready = n
    return _Progress(by=by, last=max(by.values(), default=-1), ready=ready)


class _Log:
    """The lines of one start, and their failures: errors that the start did not get beyond, by index."""

    def __init__(self, lines: Sequence[LogLine], facts: EngineFacts) -> None:
        self._lines = lines
        self._facts = facts
        self._levels = classify(lines)
        self._progress = _progress(lines)
        self._failures = [
            n for n, level in enumerate(self._levels) if level is LineSeverity.FAILURE and self._is_end(n)
        ]

    def _is_end(self, index: int) -> bool:
        line = self._lines[index]
        is_harmless = any(pattern.search(line.text) for pattern in HARMLESS)
        return not is_harmless and not self._progress.is_beyond(line, index)

    def cause_before_serving(self) -> Cause | None:
        """Return the cause by errors before warnings, and by known signatures before unknown words."""
        matches = {n: match for n in self._failures if (match := self._match(n)) is not None}
        ends = [(row, cause) for row, cause in matches.values() if row.ends_server]
        primary = [cause for row, cause in ends if not row.is_consequence]
        if ends:
            return primary[0] if primary else ends[0][1]
        unknown = self._unknown([n for n in self._failures if n not in matches])
        if unknown is not None:
            return self._named_before(unknown) or unknown
        partial = [cause for _, cause in matches.values()]
        return partial[0] if partial else self._last_warning()

    def _named_before(self, unknown: Cause) -> Cause | None:
        """Return the cause in an earlier warning, where the exception itself does not say what could not be reached."""
        if not _UNSPECIFIC.search(unknown.line.text):
            return None
        for n, line in enumerate(self._lines):
            is_earlier = line.number < unknown.line.number and self._levels[n] in {
                LineSeverity.WARNING,
                LineSeverity.NOTE,
            }
            match = self._match(n) if is_earlier and not any(p.search(line.text) for p in HARMLESS) else None
            if match is not None and match[0].ends_server:
                return match[1]
        return None

    def cause_after_serving(self) -> Cause | None:
        """Return what ended a server that served: requests fail for reasons of their own, and end no server."""
        engine = [n for n in self._failures if not _API_SERVER.search(self._lines[n].process)]
        matches = [match for n in engine if (match := self._match(n)) is not None]
        ends = [(row, cause) for row, cause in matches if row.ends_server]
        for row, cause in ends:
            if not row.is_consequence:
                return cause
        dead = next((n for n in self._failures if _DEAD.search(self._lines[n].text)), None)
        if dead is not None:
            return ends[0][1] if ends else self._death(engine, dead)
        return self._partial_cause()

    def _partial_cause(self) -> Cause | None:
        """Return why some requests always fail while the server serves the others."""
        for n, level in enumerate(self._levels):
            match = self._match(n) if level in {LineSeverity.FAILURE, LineSeverity.WARNING} else None
            if match is not None and not match[0].ends_server:
                return match[1]
        return None

    def _match(self, index: int) -> tuple[Signature, Cause] | None:
        """Return the first row that the message in this line matches, at the line of it in which the match begins."""
        is_headline = _HEADLINE.search(self._lines[index].text) is not None
        numbers = [n for n in self._message(index) if self._lines[n].text] if is_headline else [index]
        text = " ".join(self._lines[n].text for n in numbers)
        for row in SIGNATURES:
            match = row.match(text, self._facts)
            if match is not None:
                line = self._line_at(numbers, match.start())
                remedy = row.advice(match, self._facts)
                return row, Cause(signature=row.name, what=row.what, line=line, remedy=remedy)
        return None

    def _message(self, index: int) -> list[int]:
        """Return the indexes of the message that begins here: programs break one over several lines.

        Other processes write in between. A message ends with its process' next exception, traceback or line of dashes,
        or where the logger writes the next record, which has another level or none.
        """
        first = self._lines[index]
        numbers = [index]
        for n in range(index + 1, min(len(self._lines), index + 1 + _REACH)):
            line = self._lines[n]
            if line.process != first.process:
                continue
            if line.level != first.level or _NO_CONTINUATION.search(line.text) or len(numbers) > _FURTHER_LINES:
                break
            numbers.append(n)
        return numbers

    def _line_at(self, numbers: Sequence[int], offset: int) -> LogLine:
        """Return the line with this character of the joined message."""
        end = 0
        for n in numbers:
            end += len(self._lines[n].text) + 1
            if offset < end:
                return self._lines[n]
        return self._lines[numbers[-1]]

    def _is_exception(self, index: int) -> bool:
        return EXCEPTION.search(self._lines[index].text) is not None

    def _is_error(self, index: int) -> bool:
        return self._is_exception(index) or self._lines[index].level in {"ERROR", "CRITICAL"}

    def _is_own_error(self, index: int) -> bool:
        """Return whether a line reports an error of its own process, and not that another one failed."""
        return self._is_error(index) and not _WRAPPER.search(self._lines[index].text)

    def _death(self, engine: Sequence[int], dead: int) -> Cause:
        root = next((n for n in engine if self._is_exception(n) and self._is_own_error(n)), dead)
        if root == dead:
            remedy = "The log does not show why. Look further up in the whole log of the container (`docker logs`)."
        else:
            remedy = (
                "tpudeploy does not recognize this message and has no remedy for it. Please report it, so that it can "
                "be added."
            )
        return Cause(
            signature=DIED,
            what="The engine died while it served",
            line=self._lines[root],
            remedy=f"{remedy} `tpudeploy apply` starts the server again.",
        )

    def _unknown(self, failures: Sequence[int]) -> Cause | None:
        """Return the cause in words without a signature.

        The startup script's own sentence comes first, then what pydantic refuses, then the exception that was raised
        first, the first other error, the words that the script quotes, and the wrapper.
        """
        real = [n for n in failures if self._is_own_error(n)]
        script = [n for n in real if self._lines[n].text.startswith("failed: ")]
        for n in script:
            if not _QUOTES.search(self._lines[n].text):
                return _script_sentence(self._lines[n])
        engine = sorted((n for n in real if n not in script), key=lambda n: (not self._is_exception(n), n))
        refusal = self._first_refusal(engine, failures)
        if refusal is not None:
            return refusal
        likeliest = (*engine, *script)
        if likeliest:
            return _unknown_words(self._lines[likeliest[0]])
        wrappers = [n for n in failures if self._is_error(n)]
        return _wrapper(self._lines[wrappers[0]]) if wrappers else None

    def _first_refusal(self, errors: Iterable[int], failures: Iterable[int]) -> Cause | None:
        """Return what pydantic refuses: below its headline, or in a sentence whose headline is missing."""
        refusal = next((cause for n in errors if (cause := self._refusal(n)) is not None), None)
        if refusal is not None:
            return refusal
        # The sentence alone, in a log that begins below the headline.
        sentence = next((n for n in failures if REFUSED_SENTENCE.search(self._lines[n].text)), None)
        return None if sentence is None else _refused_setting(self._lines[sentence])

    def _refusal(self, index: int) -> Cause | None:
        """Return what pydantic's headline announces, at the line of the sentence that follows it."""
        headline = _PYDANTIC.search(self._lines[index].text)
        body = [self._lines[n] for n in self._message(index)[1:] if self._lines[n].text.strip()]
        if headline is None or not body:
            return None
        # A field has a line of its own, its error is indented below; a `Value error` of the whole has no field.
        is_field = not body[0].text.startswith(" ") and len(body) > 1
        field = f"{body[0].text.strip()}: " if is_field else ""
        return _refused_setting(body[1] if is_field else body[0], field=field, config=f" ({headline['config']})")

    def _last_warning(self) -> Cause | None:
        """Return what the last warnings of the log name: nothing worse follows, and nothing gets further.

        A warning may be harmless, and the log may only end too early: what it names is reported as a possibility.
        """
        unquoted = [n for n, line in enumerate(self._lines) if line.text and self._levels[n] is not LineSeverity.QUOTE]
        for n in unquoted[-_LAST_LINES:]:
            is_end = not self._progress.is_beyond(self._lines[n], n)
            match = self._match(n) if is_end and self._levels[n] is not LineSeverity.FAILURE else None
            if match is not None:
                row, cause = match
                what = "The log ends after a warning, and does not say whether the server failed"
                remedy = f"If it did not go on from there: {row.what}. {cause.remedy}"
                return replace(cause, signature=UNKNOWN, what=what, remedy=remedy)
        return None


def _refused_setting(line: LogLine, *, field: str = "", config: str = "") -> Cause:
    """Return the cause in pydantic's sentence."""
    text = f"{field}{_PYDANTIC_TAIL.sub('', line.text.strip())}"
    return Cause(
        signature=REFUSED,
        what=f"vLLM refuses a setting{config}",
        line=replace(line, text=text),
        remedy=f"Correct the setting in the profile: {text.removeprefix('Value error, ').rstrip('.')}.",
    )


def _script_sentence(line: LogLine) -> Cause:
    """Return the cause in our script's own words, which say what happened, and mostly what to do."""
    return Cause(
        signature=GAVE_UP,
        what="The startup script stopped before the server could start",
        line=line,
        remedy=f"{line.text.removeprefix('failed: ').rstrip('.')}.",
    )


def _unknown_words(line: LogLine) -> Cause:
    return Cause(
        signature=UNKNOWN,
        what="The engine failed with an unknown message",
        line=line,
        remedy="The message is the engine's own, and tpudeploy has no remedy for it. Please report it, so that it can "
        "be added.",
    )


def _wrapper(line: LogLine) -> Cause:
    return Cause(
        signature=UNKNOWN,
        what="The engine failed, and this log does not say why",
        line=line,
        remedy="This line only reports that another process failed; the cause is missing from this log. "
        "Read the whole log of the container: `tpudeploy logs PROFILE`, or `docker logs` on the machine.",
    )
