"""The severity of each line of a log: errors name a cause before warnings do, and a quoted error names no cause."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum

from tpudeploy.boot_log.reading import Line

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
# A line of code within a traceback, and the marks below it: code may name any error. No message begins so far right.
_TEMPLATE = re.compile(r"^\s*\{[%{#]")  # of Jinja: a chat template may raise whatever it likes
# vLLM logs it with its traceback and continues without (vllm/plugins/__init__.py).
_SURVIVED = re.compile(r"^Failed to load plugin ")
_LONGEST_TRACEBACK = 200
# A log may begin within its indentation.
_SOURCE = re.compile(r"^ {4,}\S|^\s*[~^]+\s*$|^\s*raise [\w.]+\(")
# It is retried, whatever the level says: huggingface_hub utils/_http.py, vLLM transformers_utils/repo_utils.py.
_RETRIED = re.compile(
    r"[Rr]etrying (?:in|with|\d+ of)|[Tt]rying again in|\[Retry \d+/\d+\]|thrown while requesting"
    r"|: \w*Warning: |^\w*Warning: |^Error retrieving file list"
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
    if len(lines) > 1 and _is_headless(lines[0]) and not _is_headless(lines[1]):
        levels[0] = _at_most_warning(levels[0])  # the rest of a line that was cut
    for n in [n for n, line in enumerate(lines) if _SURVIVED.search(line.text)]:
        for m in _traceback(lines, n):
            levels[m] = _at_most_warning(levels[m])
    last = next((n for n in reversed(range(len(lines))) if lines[n].text), 0)
    if lines and levels[last] is Severity.FAILURE and _may_continue(lines[last]):
        levels[last] = Severity.WARNING
    return levels


def _at_most_warning(level: Severity) -> Severity:
    return Severity.WARNING if level is Severity.FAILURE else level


def _traceback(lines: Sequence[Line], index: int) -> Iterator[int]:
    """Yield the numbers of the lines that one record of a logger takes, from `index` to its exception."""
    first = lines[index]
    for n in range(index, min(len(lines), index + _LONGEST_TRACEBACK)):
        if (lines[n].process, lines[n].level) == (first.process, first.level):
            yield n
            if EXCEPTION.search(lines[n].text):
                return


def _may_continue(line: Line) -> bool:
    """Return whether the end of this line may be missing, with the words that make it harmless."""
    return bool(line.process) and not line.level and not EXCEPTION.search(line.text)


def _is_headless(line: Line) -> bool:
    return not line.process and not line.level


def _severity(line: Line) -> Severity:
    if _QUOTE.search(line.text) or _SOURCE.search(line.text) or _TEMPLATE.search(line.text):
        return Severity.QUOTE
    if _RETRIED.search(line.text) and not line.text.startswith("failed: "):
        return Severity.WARNING
    return _LEVELS.get(line.level, Severity.FAILURE)
