"""The first real cause among the lines of a start, never the wrapper around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tpudeploy.core.bootlog.said import Said
from tpudeploy.core.bootlog.signatures import HARMLESS, SIGNATURES
from tpudeploy.domain.bootlog import Cause, Line

UNKNOWN = "unknown"
# Said by whoever waited for the one that died.
_WRAPPER = re.compile(
    r"Engine core initialization failed|Engine process failed to start|EngineDeadError|EngineCore encountered an issue"
    r"|EngineCore failed to start"
)
# The last line of a traceback: `ValueError: …`, `jax.errors.JaxRuntimeError: …`; the startup script's own last word.
_EXCEPTION = re.compile(r"^failed: |^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt)\b(?::|$)")
# What follows the message of an exception, and is none of it.
_NO_CONTINUATION = re.compile(
    rf"^-{{5,}}|^Traceback |^For simplicity, JAX|^During handling|^The above exception|{_EXCEPTION.pattern}"
)
_FURTHER_LINES = 12  # of all processes together
_HEADLINE = re.compile(rf"RESOURCE_EXHAUSTED|{_EXCEPTION.pattern}")


def first(lines: Sequence[Line], said: Said, *, is_serving: bool) -> Cause | None:
    """None where nothing failed, as far as these lines go.

    Of a server that serves, only what is known to end one counts: requests fail for reasons of their own.
    """
    for index, line in enumerate(lines):
        text = message(lines, index) if _HEADLINE.search(line.text) else line.text
        for signature in SIGNATURES:
            found = signature.found(text)
            # What begins in a later line of the message is found there, with that line's number.
            if found is not None and found.start() <= len(line.text):
                remedy = signature.remedy(found, said)
                return Cause(signature=signature.name, what=signature.what, line=line, remedy=remedy)
    return None if is_serving else _unknown(lines)


def message(lines: Sequence[Line], index: int) -> str:
    """Return in one line the message that begins in line number `index`: engines break one over several lines.

    Other processes write in between. A message ends with its process' next exception, traceback or line of dashes, or
    where the logger writes the next record, which has another level or none.
    """
    first = lines[index]
    parts = [first.text]
    for line in lines[index + 1 : index + 1 + _FURTHER_LINES]:
        if line.process != first.process:
            continue
        if line.level != first.level or not line.text or _NO_CONTINUATION.search(line.text):
            break
        parts.append(line.text)
    return " ".join(parts)


def notes(lines: Sequence[Line]) -> Iterator[tuple[Line, str]]:
    """Each harmless alarm once."""
    left = dict(HARMLESS)
    for line in lines:
        for pattern in [p for p in left if p.search(line.text)]:
            yield line, left.pop(pattern)


def _unknown(lines: Sequence[Line]) -> Cause | None:
    """The exception that was raised first, else the first error; the wrapper only where there is nothing else."""
    errors = [line for line in lines if _EXCEPTION.search(line.text) or line.level in {"ERROR", "CRITICAL"}]
    real = [line for line in errors if not _WRAPPER.search(line.text)]
    raised = [line for line in real if _EXCEPTION.search(line.text)]
    likeliest = next(iter((*raised, *real, *errors)), None)
    if likeliest is None:
        return None
    remedy = "The words are the engine's own; we know no remedy. Please report them, so that they get a row."
    return Cause(
        signature=UNKNOWN, what="The engine failed in words that we do not know", line=likeliest, remedy=remedy
    )
