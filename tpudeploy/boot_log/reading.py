"""The content of a boot log: its lines and phases, and why the server did not start."""

from __future__ import annotations

from dataclasses import dataclass

from tpudeploy.domain import metrics
from tpudeploy.domain.serialization import to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line. `number` counts from 1; `text` is without vLLM's prefix.

    `at` is in seconds since the log's first dated line. A line without a date has the time of the line before it, or
    None at the beginning. `process` is `EngineCore`, `APIServer` or "". `level` is `INFO`, …, or ""; lines of the
    startup script have `INFO`, and `ERROR` where the script fails.
    """

    number: int
    text: str
    at: float | None = None
    process: str = ""
    level: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPhase:
    """One part of a start. `began` counts as `LogLine.at` does; `seconds` is None if the part did not end."""

    name: str
    began: float
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a server did not start. If `signature` is "unknown", `line` is the most likely cause.

    `remedy` is for this deployment, with its numbers where the log or the profile has them.
    """

    signature: str
    what: str
    line: LogLine
    remedy: str

    def to_dict(self) -> dict[str, object]:
        return {
            "signature": self.signature,
            "what": self.what,
            "line": self.line.number,
            "text": self.line.text,
            "process": self.line.process,
            "remedy": self.remedy,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How a server serves, by the latest `lines` of statistics in its log; rates are of all engines together."""

    lines: int
    prompt_tokens_per_second: float
    generation_tokens_per_second: float
    readings: tuple[metrics.Reading, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedLog:
    """A parsed log. `graphs` counts started compilations. `seconds` is from the first dated line to the last.

    `is_serving` with a `cause` means that the server is up, and one kind of request always fails. `notes` are lines
    that look alarming and are harmless, each with the reason. `load` is None where it does not serve, or logs no load.
    """

    phases: tuple[StartPhase, ...]
    graphs: int
    seconds: float
    is_serving: bool
    cause: Cause | None
    notes: tuple[tuple[LogLine, str], ...] = ()
    load: Load | None = None

    def to_dict(self) -> dict[str, object]:
        """Return the document of `tpudeploy logs --explain --json` without its format."""
        return {
            "serving": self.is_serving,
            "seconds": self.seconds,
            "phases": [{"name": p.name, "began": p.began, "seconds": p.seconds} for p in self.phases],
            "graphs": self.graphs,
            "cause": None if self.cause is None else self.cause.to_dict(),
            "load": None if self.load is None else to_json(self.load),
            "notes": [{"line": line.number, "text": line.text, "why": why} for line, why in self.notes],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """One start. `reading` holds the parts; `critical` are those on the critical path, first to last.

    `cache` is the machine's report of its compile cache, or "". `is_whole` False: its log could not be read, so the
    work of the server in its container is one part.
    """

    address: str
    slice_name: str
    reading: ParsedLog
    critical: tuple[StartPhase, ...]
    cache: str = ""
    is_whole: bool = True

    def to_dict(self) -> dict[str, object]:
        """Return one of the `timelines` of `status --timeline --json`."""
        reading = self.reading.to_dict()
        return {
            "address": self.address,
            "slice": self.slice_name,
            "serving": reading["serving"],
            "seconds": reading["seconds"],
            "phases": reading["phases"],
            "critical": [phase.name for phase in self.critical],
            "cache": self.cache,
            "whole": self.is_whole,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A served model's explanation of one log. `by` is the deployment that wrote it, `model` its model.

    It is unchecked, and for display only, beside the findings.
    """

    log: str
    by: str
    model: str
    text: str

    def to_dict(self) -> dict[str, object]:
        return {"log": self.log, "by": self.by, "model": self.model, "is_checked": False, "text": self.text}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoDraft:
    """The reason why there is no draft, and the remedy."""

    because: str
    hint: str = ""

    def to_dict(self) -> dict[str, object]:
        return {"because": self.because, "hint": self.hint}
