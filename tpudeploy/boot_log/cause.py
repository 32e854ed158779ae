"""The first real cause among the lines of a start, never the wrapper around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tpudeploy.boot_log import severity, timeline
from tpudeploy.boot_log.said import Said
from tpudeploy.boot_log.severity import EXCEPTION, Severity
from tpudeploy.boot_log.signatures import HARMLESS, SIGNATURES
from tpudeploy.boot_log.signatures.row import Signature
from tpudeploy.domain.bootlog import Cause, Line
from tpudeploy.domain.frozen import frozen

UNKNOWN = "unknown"
DIED = "server-died"
REFUSED = "configuration-refused"
GAVE_UP = "startup-failed"
# Said by whoever waited for the one that died.
_WRAPPER = re.compile(
    r"Engine core initialization failed|Engine process failed to start|EngineDeadError|EngineCore encountered an issue"
    r"|EngineCore failed to start|EngineCore encountered a fatal error|AsyncLLM output_handler failed"
    r"|WorkerProc (?:failed|hit an exception)|WorkerProc initialization failed|died unexpectedly|died with exit code"
    r"|Exception occurred while running API servers|^Traceback |Application startup failed|^SystemExit: "
)
# That an engine that served is gone (vLLM v1/engine/core.py, v1/engine/exceptions.py, v1/utils.py).
_DEAD = re.compile(
    r"EngineDeadError|EngineCore encountered (?:a fatal error|an issue)|died unexpectedly|died with exit code|^failed: "
)
# What follows the message of an exception, and is none of it.
_NO_CONTINUATION = re.compile(
    rf"^-{{5,}}|^Traceback |^For simplicity, JAX|^During handling|^The above exception|{EXCEPTION.pattern}"
)
_FURTHER_LINES = 12  # of the process that says it
_REACH = 60  # of all processes together
_HEADLINE = re.compile(rf"RESOURCE_EXHAUSTED|{EXCEPTION.pattern}|^failed: |[Ee]rror: |^Error |Client [Ee]rror")
# pydantic's headline, `1 validation error for ModelConfig`: what is wrong stands below it, in one line or two.
_PYDANTIC = re.compile(r"\b\d+ validation errors? for (?P<config>\w+)")
_PYDANTIC_TAIL = re.compile(r" \[type=\w+.*$")
# The script quotes the container's last words; these are then the engine's, and no sentence of ours.
_QUOTES = re.compile(r"^failed: The container ended \(exit code \w+\): ")
_API_SERVER = re.compile(r"^API_?[Ss]erver|^ApiServer")
# Beyond these an engine that said something bad got further, so it was not the end of it.
_FURTHER = ("weights", "compile", "warm-up")
_LAST_WORDS = 6  # a warning that many lines before the end is not what the log ends with


def first(lines: Sequence[Line], said: Said, *, is_serving: bool) -> Cause | None:
    """Return the cause that these lines name, or None where nothing failed as far as they go.

    Errors come before warnings, and known words before unknown ones. Of a server that serves, only what ends one
    counts: requests fail for reasons of their own.
    """
    levels = severity.classify(lines)
    progress = _progress(lines)
    failures = [n for n in _failures(lines, levels) if not progress.is_beyond(lines[n], n)]
    if is_serving:
        return _after_serving(lines, levels, failures, said)
    known = {n: match for n in failures if (match := _match(lines, n, said)) is not None}
    primary = [cause for row, cause in known.values() if row.ends_server and not row.is_consequence]
    fatal = [cause for row, cause in known.values() if row.ends_server]
    partial = [cause for row, cause in known.values() if not row.ends_server]
    return (
        next(iter((*primary, *fatal)), None)
        or _unknown(lines, [n for n in failures if n not in known])
        or next(iter(partial), None)
        or _last_warning(lines, levels, progress, said)
    )


def is_partial(cause: Cause | None) -> bool:
    """Whether the server serves in spite of it."""
    return cause is not None and any(row.name == cause.signature and not row.ends_server for row in SIGNATURES)


def notes(lines: Sequence[Line]) -> Iterator[tuple[Line, str]]:
    """Yield each harmless alarm once, with why it is harmless."""
    left = dict(HARMLESS)
    for line in lines:
        for pattern in [p for p in left if p.search(line.text)]:
            yield line, left.pop(pattern)


def _message_lines(lines: Sequence[Line], index: int) -> list[int]:
    """Return the numbers of the lines of the message that begins at `index`: programs break one over several lines.

    Other processes write in between. A message ends with its process' next exception, traceback or line of dashes, or
    where the logger writes the next record, which has another level or none.
    """
    first = lines[index]
    numbers = [index]
    for n in range(index + 1, min(len(lines), index + 1 + _REACH)):
        line = lines[n]
        if line.process != first.process:
            continue
        if line.level != first.level or _NO_CONTINUATION.search(line.text) or len(numbers) > _FURTHER_LINES:
            break
        numbers.append(n)
    return numbers


def _failures(lines: Sequence[Line], levels: Sequence[Severity]) -> list[int]:
    return [
        n
        for n, level in enumerate(levels)
        if level is Severity.FAILURE and not any(pattern.search(lines[n].text) for pattern in HARMLESS)
    ]


@frozen
class _Progress:
    """The last line in which anything got further: `by` process, `last` of all, `ready` where it serves."""

    by: Mapping[str, int]
    last: int
    ready: int

    def is_beyond(self, line: Line, index: int) -> bool:
        """Return whether what failed in this line went on afterwards, so that it was not the end.

        An API server starts engines and only then waits, so their progress speaks for it, and for who has no name.
        """
        if line.text.startswith("failed: "):
            return False
        is_any = not line.process or _API_SERVER.search(line.process) is not None
        return index < max(self.ready, self.last if is_any else self.by.get(line.process, -1))


def _progress(lines: Sequence[Line]) -> _Progress:
    by: dict[str, int] = {}
    ready = -1
    for n, line in enumerate(lines):
        if timeline.phase_of(line) in _FURTHER:
            by[line.process] = n
        elif timeline.READY.search(line.text):
            ready = n
    return _Progress(by=by, last=max(by.values(), default=-1), ready=ready)


def _match(lines: Sequence[Line], index: int, said: Said) -> tuple[Signature, Cause] | None:
    """Return the first row that the message in this line matches, at the line of it in which the match begins."""
    is_headline = _HEADLINE.search(lines[index].text) is not None
    numbers = [n for n in _message_lines(lines, index) if lines[n].text] if is_headline else [index]
    text = " ".join(lines[n].text for n in numbers)
    for signature in SIGNATURES:
        found = signature.match(text, said)
        if found is not None:
            line = _line_at(lines, numbers, found.start())
            remedy = signature.remedy(found, said)
            return signature, Cause(signature=signature.name, what=signature.what, line=line, remedy=remedy)
    return None


def _line_at(lines: Sequence[Line], numbers: Sequence[int], offset: int) -> Line:
    """Return the line in which this character of the joined message stands."""
    end = 0
    for n in numbers:
        end += len(lines[n].text) + 1
        if offset < end:
            return lines[n]
    return lines[numbers[-1]]


def _after_serving(
    lines: Sequence[Line], levels: Sequence[Severity], failures: Sequence[int], said: Said
) -> Cause | None:
    """Return what ended a server that served; errors of single requests do not."""
    engine = [n for n in failures if not _API_SERVER.search(lines[n].process)]
    known = [match for n in engine if (match := _match(lines, n, said)) is not None]
    ends = [cause for row, cause in known if row.ends_server and not row.is_consequence]
    if ends:
        return ends[0]
    dead = next((n for n in failures if _DEAD.search(lines[n].text)), None)
    if dead is not None:
        consequences = [cause for row, cause in known if row.ends_server]
        return next(iter(consequences), None) or _died(lines, engine, dead)
    # Some requests always fail, and the server serves the others.
    for n, level in enumerate(levels):
        if level in {Severity.FAILURE, Severity.WARNING}:
            match = _match(lines, n, said)
            if match is not None and not match[0].ends_server:
                return match[1]
    return None


def _died(lines: Sequence[Line], engine: Sequence[int], dead: int) -> Cause:
    raised = [n for n in engine if EXCEPTION.search(lines[n].text) and not _WRAPPER.search(lines[n].text)]
    root = next(iter(raised), dead)
    if root == dead:
        remedy = "The log does not say why. Look further up in the whole log of the container (`docker logs`)."
    else:
        remedy = "We do not know these words, and no remedy for them. Please report them, so that they get a row."
    return Cause(
        signature=DIED,
        what="The engine died while it served",
        line=lines[root],
        remedy=f"{remedy} `tpudeploy apply` starts the server again.",
    )


def _unknown(lines: Sequence[Line], failures: Sequence[int]) -> Cause | None:
    """Return what pydantic refuses, else the exception that was raised first, the first error, the wrapper."""
    real = [n for n in failures if not _WRAPPER.search(lines[n].text) and _is_error(lines[n])]
    raised = [n for n in real if EXCEPTION.search(lines[n].text)]
    own = [n for n in real if lines[n].text.startswith("failed: ")]
    sentences = [n for n in own if not _QUOTES.search(lines[n].text)]
    if sentences:
        return _gave_up(lines[sentences[0]])
    engines = [n for n in (*raised, *real) if n not in own]
    refusals = (_refused(lines, n) for n in engines)
    refused = next((cause for cause in refusals if cause is not None), None)
    likeliest = next(iter((*engines, *own)), None)
    if likeliest is not None:
        return refused or _in_unknown_words(lines[likeliest])
    wrapper = next((n for n in failures if _is_error(lines[n])), None)
    return None if wrapper is None else _only_wrapper(lines[wrapper])


def _is_error(line: Line) -> bool:
    return EXCEPTION.search(line.text) is not None or line.level in {"ERROR", "CRITICAL"}


def _gave_up(line: Line) -> Cause:
    """Our script's own sentence says what happened, and mostly what to do."""
    return Cause(
        signature=GAVE_UP,
        what="The startup script stopped before the server could start",
        line=line,
        remedy=f"{line.text.removeprefix('failed: ').rstrip('.')}.",
    )


def _refused(lines: Sequence[Line], index: int) -> Cause | None:
    """Return what pydantic's headline announces, at the line of the sentence that follows it."""
    headline = _PYDANTIC.search(lines[index].text)
    if headline is None:
        return None
    body = [n for n in _message_lines(lines, index)[1:] if lines[n].text.strip()]
    if not body:
        return None
    # A field stands in a line of its own, its error is indented below; a `Value error` of the whole has no field.
    is_field = not lines[body[0]].text.startswith(" ") and len(body) > 1
    field = lines[body[0]].text.strip() if is_field else ""
    line = lines[body[1] if is_field else body[0]]
    sentence = _PYDANTIC_TAIL.sub("", line.text.strip())
    shown = f"{field}: {sentence}" if field else sentence
    return Cause(
        signature=REFUSED,
        what=f"vLLM refuses a setting ({headline['config']})",
        line=replace(line, text=shown),
        remedy=f"Correct the setting in the profile: {shown.removeprefix('Value error, ').rstrip('.')}.",
    )


def _in_unknown_words(line: Line) -> Cause:
    return Cause(
        signature=UNKNOWN,
        what="The engine failed in words that we do not know",
        line=line,
        remedy="The words are the engine's own; we know no remedy. Please report them, so that they get a row.",
    )


def _only_wrapper(line: Line) -> Cause:
    return Cause(
        signature=UNKNOWN,
        what="The engine failed, and this log does not say why",
        line=line,
        remedy="This line only reports that another process failed; the cause is missing from this log. "
        "Read the whole log of the container: `tpudeploy logs PROFILE`, or `docker logs` on the machine.",
    )


def _last_warning(lines: Sequence[Line], levels: Sequence[Severity], progress: _Progress, said: Said) -> Cause | None:
    """Return what the warnings name with which the log ends: nothing worse follows, and nothing goes on.

    A warning may be harmless, and the log may only end too early: what it names is told as a possibility.
    """
    spoken = [n for n, line in enumerate(lines) if line.text and levels[n] is not Severity.QUOTE]
    last = (
        _match(lines, n, said)
        for n in spoken[-_LAST_WORDS:]
        if levels[n] is not Severity.FAILURE and not progress.is_beyond(lines[n], n)
    )
    row, cause = next((match for match in last if match is not None), (None, None))
    if row is None or cause is None:
        return None
    return replace(
        cause,
        signature=UNKNOWN,
        what="The log ends after a warning, and does not say whether the server failed",
        remedy=f"If it did not go on from there: {row.what}. {cause.remedy}",
    )
