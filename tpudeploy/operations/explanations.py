"""Collect the explanations of all codes: diagnostics, checks, errors, refusals and causes of failed boots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from inspect import getdoc
from textwrap import fill

from tpudeploy import pins
from tpudeploy.adapters.google.codes import CODE_BY_STATUS, Code
from tpudeploy.adapters.google.refusals import GROUPS, UNKNOWN
from tpudeploy.adapters.google.refusals.row import RefusalRow
from tpudeploy.adapters.google.verdicts import classify, matching_row
from tpudeploy.boot_log import cause
from tpudeploy.boot_log.settings import EngineFacts
from tpudeploy.boot_log.signatures import GROUPS as BOOTS
from tpudeploy.boot_log.signatures import HARMLESS, SIGNATURES
from tpudeploy.boot_log.signatures.row import Signature
from tpudeploy.config.codes import EXPLANATIONS
from tpudeploy.domain import errors
from tpudeploy.domain.diagnostics import CodePage
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.slices import RefusalScope, Remedy
from tpudeploy.operations.examples import EXAMPLES
from tpudeploy.orphans import claims
from tpudeploy.planning import headroom, plan_rules, targets
from tpudeploy.reconcile.failed_landings import HOST_FAULT, hold_seconds
from tpudeploy.sizing.checks import CHECKS
from tpudeploy.text.words import duration, plain

_WIDTH = 100
# Refusals that tpudeploy itself detects, without a text of Google's.
_DETECTED: Mapping[str, str] = {
    "provisioning-stuck": f"""The slice stays PROVISIONING and never comes up

Its machines appear and disappear, and Google reports no error. After {duration(Patience().provisioning)}
tpudeploy deletes the slice and tries the next place.

What clears it: other zones or another model in placement.provisioning.""",
    "host-fault": f"""The host of a slice was reported as faulty

A person reported the machine of a slice with `tpudeploy report-host`. Google may grant the same machine again, so
tpudeploy avoids the place for {duration(hold_seconds(HOST_FAULT, 1))}, twice as long each further time.

What clears it: time, other zones or another model in placement.provisioning.""",
    "unanswered": f"""A request was not answered and no slice appeared

Google answered with a server error (503), or the reply was lost. The request may have succeeded, so tpudeploy looks
for its slice for {duration(Patience().grace)} before it tries the next place. It retries this place after
{duration(Patience().grace)}, with exponential backoff up to 10 min.

What clears it: allow more zones; see https://status.cloud.google.com. The profile is fine.""",
}


# The error that a refusal is raised as if it is the reply to a call.
_RAISED_AS: Mapping[type[errors.TpudeployError], tuple[Remedy, ...]] = {
    errors.Fault: (Remedy.LOOK_AGAIN,),
    errors.Refused: (Remedy.NEXT_ZONE, Remedy.DROP_ZONE),
    errors.Denied: (Remedy.STOP,),
}


def explanations() -> dict[str, str]:
    """Return the text of each code, of all groups."""
    return {code: text for texts in groups().values() for code, text in texts.items()}


def groups() -> dict[str, dict[str, str]]:
    """Return the text of each code by group. The first line of a text is its title."""
    classes = {cls.code: _error_page(cls, GROUPS.values()) for cls in every_error() if cls.code not in EXPLANATIONS}
    boots = {f"Boots: {name}": {row.name: _boot(row) for row in rows} for name, rows in BOOTS.items()}
    refusals = {f"Refusals: {name}": {row.kind: _refusal_page(row) for row in rows} for name, rows in GROUPS.items()}
    checks = {row.code: row.explanation for row in CHECKS}
    plans = [part.EXPLANATIONS for part in (claims, targets, headroom, plan_rules, pins)]
    return {
        "Profiles": _pages(EXPLANATIONS),
        "Checks": {code: text for rows in (checks, *plans) for code, text in _pages(rows).items()},
        "Errors": dict(sorted(classes.items())),
        **refusals,
        "Refusals: the rest": {UNKNOWN.kind: _refusal_page(UNKNOWN), **_DETECTED},
        **boots,
        "Boots: the rest": dict(_CONCLUDED),
    }


def _pages(rows: Mapping[str, CodePage]) -> dict[str, str]:
    return {code: _page(code, row.title, row.meaning, row.fix) for code, row in rows.items()}


def _page(code: str, title: str, cause: str, instead: str = "") -> str:
    """Return the page of one of our codes: its cause, an example, what to write instead, and the command to run."""
    parts = [title, fill(f"Cause: {cause}", _WIDTH, break_long_words=False, break_on_hyphens=False)]
    example = EXAMPLES.get(code)
    if example is not None:
        parts.append(f"Example:\n{_indented(example.text)}")
    if instead:
        parts.append(f"Instead:\n{_indented(instead)}")
    if example is not None:
        parts.append(f"Command:\n{_indented(example.command)}")
    return "\n\n".join(parts)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


# What `logs` and `status` conclude of a log that has no row of its own.
_CONCLUDED: Mapping[str, str] = {
    cause.DIED: """The server ended, and this line doesn't say why

One process reports here that another one failed. The cause is in an earlier line: the first error of the engine.

What to do: Run `tpudeploy diagnose PROFILE`, or `tpudeploy logs -explain -file LOG` with the whole log. Both name the
first cause.""",
    cause.REFUSED: """vLLM refused the configuration, in words that aren't known

What to do: Read vLLM's own sentence: it names the setting. Change it in the profile, or take another serving.image.""",
    cause.GAVE_UP: """The machine's script gave up before the server started

What to do: Run `tpudeploy logs PROFILE`: the line above the last one names the step.""",
}


def explain_text(text: str) -> tuple[str, str]:
    """Return the code and page of a text: a cause of a failed boot, or a refusal by Google."""
    signature = next((row for row in SIGNATURES if row.search(text)), None)
    if signature is not None:
        return signature.name, _boot(signature, text)

    code = _named_code(text)
    row = matching_row(text, code)
    if row is UNKNOWN and (page := _engine_page(text)) is not None:
        return page
    return row.kind, _refusal_page(row, text, classify(text, code).scope)


def _engine_page(text: str) -> tuple[str, str] | None:
    """Return the code and page of a line of an engine that no row knows, None for a text of another kind."""
    why = next((why for pattern, why in HARMLESS.items() if pattern.search(text)), None)
    if why is not None:
        return "harmless", f"This line is harmless\n\nThe engine writes, in a boot log:\n  {text}\n\nWhy: {why}."
    if cause.is_wrapper(text):
        return cause.DIED, _CONCLUDED[cause.DIED]
    if re.search(r"\b\w+(?:Error|Exception): ", text):
        title = "An unknown error of a program, not of Google Cloud"
        return cause.UNKNOWN, f"{title}\n\nThe engine writes, in a boot log:\n  {text}\n\n{_REPORT}"
    return None


_REPORT = (
    "What to do: Run `tpudeploy diagnose PROFILE`: an earlier line often names the cause. Please report the text, so "
    "it can be added."
)


def _boot(row: Signature, text: str | None = None) -> str:
    """Return the page of a cause of failed boots, with its log line."""
    log_line = text if text is not None else row.example
    match = row.search(log_line)
    remedy = "" if match is None else row.advice(match, EngineFacts(flags={}))
    example = "" if text else "e.g. "
    return f"{row.what}\n\nThe engine writes, {example}in a boot log:\n  {log_line}\n\nWhat to do: {remedy}"


def _named_code(text: str) -> int:
    """Return the code in a pasted error: `RESOURCE_EXHAUSTED`, `"code": 8`, `HttpError 429`."""
    status = next((code for code in Code if re.search(rf"\b{code.name}\b", text)), None)
    if status is not None:
        return status
    match = re.search(r"(?:code|error|status)\W{0,3}(\d{1,3})\b", text, re.IGNORECASE)
    number = int(match[1]) if match is not None else Code.UNKNOWN
    return CODE_BY_STATUS.get(number, number)


def _error_page(cls: type[errors.TpudeployError], refusals: Iterable[Iterable[RefusalRow]]) -> str:
    """Return the page of an error: its docstring's first line and rest, its name, and the refusals raised as it."""
    title, _, cause = (getdoc(cls) or "").partition("\n")
    kinds = ", ".join(row.kind for rows in refusals for row in rows if row.remedy in _RAISED_AS.get(cls, ()))
    paragraphs = (
        _page(cls.code, title.rstrip("."), " ".join(cause.split())),
        f"The library raises {cls.__name__}; the command line exits {cls.exit_code}.",
        f"Refusals raised as it: {kinds}. `tpudeploy explain REFUSAL` describes one." if kinds else "",
    )
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def every_error() -> tuple[type[errors.TpudeployError], ...]:
    """Return every error class that we raise on purpose."""
    return tuple(dict.fromkeys(_tree(errors.TpudeployError)))


def _tree(cls: type[errors.TpudeployError]) -> Iterator[type[errors.TpudeployError]]:
    yield cls
    for child in cls.__subclasses__():
        yield from _tree(child)


# By the value of refusals.row.Layer.
_SURFACES: Mapping[str, str] = {
    "L1": "the reply to a call",
    "L2": "the error of the create operation",
    "L3": "the error of the queued resource, which is then FAILED",
    "L4": "the state of the node",
    "L5": "the error of the delete operation",
}
_SCOPES: Mapping[RefusalScope, str] = {
    RefusalScope.PAIR: "in the zone under this provisioning model",
    RefusalScope.ZONE: "in the zone",
    RefusalScope.ZONE_QUOTA: "in the zone under a model with this quota",
    RefusalScope.REGION: "in the region",
    RefusalScope.REGION_QUOTA: "in the region under a model with this quota",
    RefusalScope.REGION_RESOURCES: "in the region, unless a slice of yours there is deleted",
    RefusalScope.PROJECT: "anywhere in the project",
}
_NAMED_BY_TEXT = "in the zone or region named in the text, under a model with this quota"


def _refusal_page(row: RefusalRow, text: str = "", scope: RefusalScope | None = None) -> str:
    """Return the page of a refusal. `text` is an actual message, `scope` what it is about; else it shows examples."""
    surfaces = "\n".join(f"  {layer}  {_SURFACES[layer]}" for layer in row.layers)
    paragraphs = (
        row.what,
        f"{_heading(row, text)}\n{_quote(row, text)}",
        f"It surfaces as\n{surfaces}",
        f"tpudeploy {_reaction(row, scope or row.scope)}.",
        f"What clears it: {row.hint_for(text)}",
    )
    return "\n\n".join(paragraphs)


def _heading(row: RefusalRow, text: str) -> str:
    if text:
        return "Google said"
    code = f" ({row.code.name})" if row.code is not None else ""
    return f"Google says{code}{'' if row.is_recorded else '. The exact text is not published; for example'}"


def _quote(row: RefusalRow, text: str) -> str:
    texts = (text,) if text else row.examples
    lines = [line for text in texts for line in plain(text).splitlines()]
    return "\n".join(f"  {line}" for line in lines) or "  any text that no other entry matches"


def _reaction(row: RefusalRow, scope: RefusalScope | None) -> str:
    speaks_of = _SCOPES[scope] if scope is not None else _NAMED_BY_TEXT
    match row.remedy:
        case Remedy.STOP:
            return "stops, because no other place would help; the next `tpudeploy apply` asks again"
        case Remedy.LOOK_AGAIN:
            return "observes again, at growing intervals, before it makes another request"
        case Remedy.NEXT_ZONE if not row.holds:
            return "deletes the remains and asks again, in the same place first"
        case Remedy.NEXT_ZONE | Remedy.DROP_ZONE:
            return f"tries the next place. It does not try again {speaks_of} for {duration(row.holds)}"
