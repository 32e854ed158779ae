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


def first(lines: Sequence[Line], said: Said, *, is_serving: bool) -> Cause | None:
    """None where nothing failed, as far as these lines go.

    Of a server that serves, only what is known to end one counts: requests fail for reasons of their own.
    """
    for line in lines:
        for signature in SIGNATURES:
            found = signature.found(line.text)
            if found is not None:
                remedy = signature.remedy(found, said)
                return Cause(signature=signature.name, what=signature.what, line=line, remedy=remedy)
    return None if is_serving else _unknown(lines)


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
