"""How bad each line of a log is: errors name a cause before warnings do, and what only quotes an error names none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from tpudeploy.domain.bootlog import Line

# The last line of a traceback: `ValueError: …`, `jax.errors.JaxRuntimeError: …`; the startup script's own last word.
EXCEPTION = re.compile(
    r"^failed: |^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|NotFound)\b(?::|$)"
)
# A request, an answer, or all settings: prompts and templates quote whatever they like (vLLM entrypoints/logger.py).
_QUOTE = re.compile(
    r"^(?:Received request|Request \S+ details|Generated response|Added request|Aborted request|Finished request"
    r"|non-default args: |Initializing a V\d LLM engine|Using supplied chat template|Resolved chat template"
    r"|\S+ - \"(?:GET|POST|PUT|DELETE|HEAD|OPTIONS) )"
)
# A line of code within a traceback, and the marks below it.
_SOURCE = re.compile(r"^ {4,}\S|^\s*[~^]+\s*$")
_FRAME = re.compile(r'^ {2}File "')
# It is tried again, whatever the level says: huggingface_hub utils/_http.py, vLLM transformers_utils/repo_utils.py.
_RETRIED = re.compile(
    r"[Rr]etrying (?:in|with|\d+ of)|[Tt]rying again in|\[Retry \d+/\d+\]|thrown while requesting"
    r"|: \w*Warning: |^\w*Warning: "
)


class Severity(Enum):
    """QUOTE: names nothing. NOTE and WARNING: name a cause only where nothing worse follows."""

    QUOTE = 0
    NOTE = 1
    WARNING = 2
    FAILURE = 3


_LEVELS = {"DEBUG": Severity.NOTE, "INFO": Severity.NOTE, "WARNING": Severity.WARNING}


def classify(lines: Sequence[Line]) -> list[Severity]:
    """Return the severity of each line."""
    levels = [_severity(line) for line in lines]
    frames: dict[str, int] = {}  # the last frame of each process' traceback: the code below it names no cause
    for n, line in enumerate(lines):
        if _SOURCE.search(line.text) and frames.get(line.process, -1) >= 0:
            levels[n] = Severity.QUOTE
        else:
            frames[line.process] = n if _FRAME.search(line.text) else -1
    return levels


def _severity(line: Line) -> Severity:
    if _QUOTE.search(line.text):
        return Severity.QUOTE
    if _RETRIED.search(line.text) and not line.text.startswith("failed: "):
        return Severity.WARNING
    return _LEVELS.get(line.level, Severity.FAILURE)
