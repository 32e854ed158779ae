"""What a boot log tells: its lines, how long each phase took, and why the server did not come up."""

from __future__ import annotations

from tpudeploy.domain import metrics
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.tree import tree


@frozen
class Line:
    """A line, as a person finds it by its `number` (from 1). `text` is without vLLM's prefix.

    `at`: seconds since the log's first dated line; a line without a date has that of the line before, None before all.
    `process`: `EngineCore`, `APIServer`, or "". `level`: `INFO`, …, or ""; of a line of the startup script `INFO`, and
    `ERROR` where it gives up.
    """

    number: int
    text: str
    at: float | None = None
    process: str = ""
    level: str = ""


@frozen
class Phase:
    """One part of a start. `began` and `seconds` are counted as `Line.at` is; `seconds` None: it did not end."""

    name: str
    began: float
    seconds: float | None


@frozen
class Cause:
    """Why a server did not come up. `signature` "unknown": no words that we know; `line` is then the likeliest.

    `remedy` is for this deployment, with its numbers where the log or the profile has them.
    """

    signature: str
    what: str
    line: Line
    remedy: str


@frozen
class Load:
    """How a server serves, by the latest `lines` of statistics in its log; rates are of all engines together."""

    lines: int
    prompt_tokens_per_second: float
    generation_tokens_per_second: float
    readings: tuple[metrics.Reading, ...]


@frozen
class Reading:
    """A log, read. `graphs` were compiled, or begun. `seconds` from its first dated line to its last.

    `is_serving` with a `cause`: the server is up, and one kind of request always fails.
    `notes`: lines that look alarming and are not, each with why. `load`: None where it does not serve, or logs none.
    """

    phases: tuple[Phase, ...]
    graphs: int
    seconds: float
    is_serving: bool
    cause: Cause | None
    notes: tuple[tuple[Line, str], ...] = ()
    load: Load | None = None

    def to_dict(self) -> dict[str, object]:
        """What `tpudeploy logs --explain --json` prints, but for its format."""
        cause = self.cause
        return {
            "serving": self.is_serving,
            "seconds": self.seconds,
            "phases": [{"name": p.name, "began": p.began, "seconds": p.seconds} for p in self.phases],
            "graphs": self.graphs,
            "cause": None
            if cause is None
            else {
                "signature": cause.signature,
                "what": cause.what,
                "line": cause.line.number,
                "text": cause.line.text,
                "process": cause.line.process,
                "remedy": cause.remedy,
            },
            "load": None if self.load is None else tree(self.load),
            "notes": [{"line": line.number, "text": line.text, "why": why} for line, why in self.notes],
        }
