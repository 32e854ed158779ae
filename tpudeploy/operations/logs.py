"""Show a boot log; --explain shows the root cause and what to do, or the phases of the start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any

from tpudeploy import loading
from tpudeploy.boot_log.export import redact
from tpudeploy.boot_log.read import read as reading
from tpudeploy.boot_log.reading import Draft, NoDraft, ParsedLog
from tpudeploy.boot_log.view import draft as view
from tpudeploy.boot_log.view import explanation
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.errors import CloudError, UsageError
from tpudeploy.domain.pins import Pins
from tpudeploy.loading import OneProfile
from tpudeploy.operations.arguments import AProfile, Arg, Count
from tpudeploy.operations.declaration import Operation
from tpudeploy.results import Result, document, part, result
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace


@result
class LogReadings(Result):
    """What boot logs say, by the name of their slice or file. `addresses` are the replicas of slices."""

    FORMAT = "logs"
    texts: Mapping[str, str]
    readings: Mapping[str, ParsedLog]
    addresses: Mapping[str, str]
    draft: Draft | NoDraft | None
    contains: str | None = None
    last: int | None = None

    @property
    def lines(self) -> Mapping[str, tuple[str, ...]]:
        """The lines of each log that contain the text, without secrets, addresses and projects; of them, the last."""
        word = (self.contains or "").casefold()
        every = {name: redact(text, {}).splitlines() for name, text in self.texts.items()}
        matched = {name: [line for line in lines if word in line.casefold()] for name, lines in every.items()}
        return {name: tuple(lines[-(self.last or len(lines)) :]) for name, lines in matched.items()}

    def values(self) -> dict[str, Any]:
        logs = [
            {"log": name, "replica": self.addresses.get(name), **reading.to_dict()}
            for name, reading in self.readings.items()
        ]
        if self.contains is not None or self.last is not None:
            for log, lines in zip(logs, self.lines.values(), strict=True):
                log["lines"] = list(lines)
        keys: dict[str, Any] = {"logs": logs}
        if self.draft is not None:
            is_draft = isinstance(self.draft, Draft)
            keys["draft"] = self.draft.to_dict() if is_draft else None
            keys["no_draft"] = None if is_draft else self.draft.to_dict()
        return keys

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        phase = part({"name": str, "began": float, "seconds": float | None})
        cause = part({**dict.fromkeys(("signature", "what", "text", "process", "remedy"), str), "line": int})
        log = part(
            {
                "log": str,
                "replica": str | None,
                "serving": bool,
                "seconds": float,
                "phases": {"type": "array", "items": phase},
                "graphs": int,
                "cause": {"anyOf": [cause, {"type": "null"}]},
                "notes": [{"line": int, "text": str, "why": str}],
                "load": {},  # figures as in `tpudeploy metrics`, or null
                "lines": tuple[str, ...],
            }
        )
        log["required"].remove("lines")  # only where lines were asked for
        draft = part({**dict.fromkeys(("log", "by", "model", "text"), str), "is_checked": {"const": False}})
        no_draft = part({"because": str, "hint": str})
        about_logs = "by machine: the root cause with what to do, or how long each phase took"
        about_no_draft = "why there is no draft; null if there is one"
        about_draft = "what the served model wrote; `is_checked` is always false"
        keys = {
            "logs": {"type": "array", "items": log, "description": about_logs},
            "draft": {"anyOf": [draft, {"type": "null"}], "description": about_draft},
            "no_draft": {"anyOf": [no_draft, {"type": "null"}], "description": about_no_draft},
        }
        return document("logs", keys, optional=("draft", "no_draft"))

    def label(self, name: str) -> str:
        return f"{self.addresses[name]} = {name}" if name in self.addresses else name

    def with_headings(self, texts: Mapping[str, str]) -> str:
        """Return each text under a heading with its replica; a single one has no heading."""
        if len(texts) == 1:
            return "".join(texts.values()).rstrip("\n")
        return "\n\n".join(f"{self.label(name)}:\n{text}".rstrip("\n") for name, text in texts.items())

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        texts = {name: explanation(reading, paint, width=width) for name, reading in self.readings.items()}
        text = self.with_headings(texts)
        return f"{text}\n\n{view(self.draft, paint, width=width)}" if isinstance(self.draft, Draft) else text

    def messages(self, paint: Paint) -> str:
        if not isinstance(self.draft, NoDraft):
            return ""
        return "\n".join([f"No draft: {self.draft.because}", *([f"  {self.draft.hint}"] if self.draft.hint else [])])


def logs(
    workspace: Workspace,
    profile: AProfile | None = None,
    *,
    texts: Mapping[str, str] | None = None,
    contains: Annotated[str | None, Arg("Show the lines with this text, in any case.", command=False)] = None,
    last: Annotated[Count | None, Arg("Show only this many lines, the last.", command=False)] = None,
    on_unreadable: Callable[[str, CloudError], None] | None = None,
) -> LogReadings:
    """Explain a deployment's boot logs: the root cause of a failure and what to do, or the duration of each phase.

    `texts` are logs by their names, which are read instead; remedies are for `profile`. The result has the logs
    themselves, too. With `contains` or `last`, it has the redacted `lines` that contain that text, in any case, of them
    the last. `on_unreadable` gets a slice whose log cannot be read, and why; the others are read.

    Raise `errors.UsageError` without a profile and a log, `errors.StateError` if nothing is deployed, `errors.Fault` or
    `errors.Denied` if no log can be read.
    """
    if last is not None and last < 1:
        raise UsageError("The number of lines starts at 1.")
    if texts is not None:
        return replace(read(texts, profile), contains=contains, last=last)
    if profile is None:
        raise no_log()
    loaded = loading.profile(profile)
    name = loaded.name
    lines = workspace.boot_logs(name, on_unreadable=on_unreadable)
    machine_logs = {slice_name: "\n".join(each) for slice_name, each in lines.items()}
    readings = read(machine_logs, loaded, workspace.addresses(name), pins=workspace.adapters.pins.read())
    return replace(readings, contains=contains, last=last)


def no_log() -> UsageError:
    """Return the error for a command or a call that names no log."""
    return UsageError("No log to read.", hint="Name a profile, or a log: `tpudeploy logs --file boot.log --explain`.")


def read(
    texts: Mapping[str, str],
    profile: OneProfile | None = None,
    addresses: Mapping[str, str] | None = None,
    *,
    pins: Pins | None = None,
) -> LogReadings:
    """Return what these logs say, with remedies for `profile`, whose names mean what `pins` say."""
    predicted = None if profile is None else loading.checked(loading.profile(profile), pins)[0].budget
    budget = predicted if isinstance(predicted, HbmBudget) else None
    readings = {name: reading(text, budget=budget) for name, text in texts.items()}
    return LogReadings(texts=texts, readings=readings, addresses=addresses or {}, draft=None)


OPERATION = Operation(
    run=logs,
    results=(LogReadings,),
    title="Read boot logs",
    tool="logs",
)
