"""The phases of a start, from the lines that begin and end them, and the graphs that were compiled.

Parts that the script gathers (image, secrets, compile cache, mirrored weights) run side by side: those phases overlap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tpudeploy.boot_log.lines import SERVER_STARTS
from tpudeploy.boot_log.reading import LogLine, StartPhase

# The lines that begin each phase, in the order of a start: of our script, then of the engine (0.26; 0.32 writes the
# same but for the cache's size). A phase ends where the next begins, or where the script says that it is done.
_BEGINS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("docker", re.compile(r"^docker: ")),
    ("image", re.compile(r"^image: ")),
    ("secrets", re.compile(r"^secrets: ")),
    ("mirror", re.compile(r"^mirror: ")),
    ("cache", re.compile(r"^cache: ")),
    ("container", re.compile(r"^starting: ")),
    ("imports", re.compile(r"^TPU info: node_name|^non-default args:")),
    ("engine", re.compile(r"^Initializing a V1 LLM engine")),
    (
        "weights",
        re.compile(r"^Loading model with MODEL_IMPL_TYPE|^Starting to load model|^Time spent downloading weights"),
    ),
    ("compile", re.compile(r"^Memory statistics \||^[A-Z]+ KV cache size:|^Precompile .+ -->")),
    ("warm-up", re.compile(r"^init engine \(profile, create kv cache, warmup model\) took")),
)
_SIDE_BY_SIDE = ("image", "secrets", "mirror", "cache")  # these begin in any order
_END = re.compile(r"^(?P<name>[a-z]+): done in (?P<seconds>\d+) s$")
_FIRST = "boot"
READY = re.compile(r"Application startup complete|Uvicorn running on|^serving: ")
_SERVER = re.compile(r"Starting vLLM server on|Starting vLLM API server")
_GRAPH = re.compile(r"^Precompile .+ -->")


def phases(lines: Sequence[LogLine]) -> tuple[StartPhase, ...]:
    """Return the phases of a start in order; a log without a date has none."""
    marks, timed = list(_marks(lines)), {phase.name: phase for phase in _timed_parts(lines)}
    begun = [StartPhase(name=name, began=at, seconds=end - at) for (name, at), (_, end) in pairwise(marks)]
    begun += [StartPhase(name=name, began=at, seconds=None) for name, at in marks[-1:] if name]
    return tuple(sorted((timed.get(phase.name, phase) for phase in begun), key=lambda phase: phase.began))


def last_start(boot: Sequence[LogLine]) -> Sequence[LogLine]:
    """Return the lines of the last start of a boot: a server that is restarted in place has a start of its own."""
    starts = [n for n, line in enumerate(boot) if line.text.startswith(SERVER_STARTS)]
    ready = [n for n, line in enumerate(boot[: starts[-1]]) if READY.search(line.text)] if starts else []
    if not ready:
        return boot
    first = next(n for n in range(ready[-1] + 1, len(boot)) if phase_of(boot[n]))
    return boot[first:]


def phase_of(line: LogLine) -> str:
    """Return the phase that this line begins, or ""."""
    return next((name for name, begins in _BEGINS if begins.search(line.text)), "")


def count_graphs(lines: Sequence[LogLine]) -> int:
    return sum(_GRAPH.search(line.text) is not None for line in lines)


def _timed_parts(lines: Sequence[LogLine]) -> Iterator[StartPhase]:
    """Yield the parts that the script itself timed."""
    for line in lines:
        match = _END.search(line.text)
        if match is not None and line.at is not None and match["name"] in _SIDE_BY_SIDE:
            seconds = min(float(match["seconds"]), line.at)
            yield StartPhase(name=match["name"], began=line.at - seconds, seconds=seconds)


def _marks(lines: Sequence[LogLine]) -> Iterator[tuple[str, float]]:
    """Yield the name and the beginning of each phase; "" at the end: it serves."""
    dated = [(line, line.at) for line in lines if line.at is not None]
    if not dated:
        return
    remaining = list(_BEGINS)
    if not any(begins.search(dated[0][0].text) for _, begins in remaining):
        yield _FIRST, dated[0][1]
    for line, at in dated:
        if _SERVER.search(line.text) or READY.search(line.text):
            yield "", at
            return
        index = next((n for n, (_, begins) in enumerate(remaining) if begins.search(line.text)), None)
        if index is not None:
            name = remaining[index][0]
            yield name, at
            # A phase in order ends those before it; one that is side by side with others ends none.
            del remaining[index if name in _SIDE_BY_SIDE else 0 : index + 1]
