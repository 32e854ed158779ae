"""Every code that a person can meet, gathered from where it is defined: diagnostics, errors, refusals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from inspect import getdoc
from textwrap import fill
from typing import TYPE_CHECKING

from tpudeploy.cli.examples import EXAMPLES
from tpudeploy.cli.refusal_page import page
from tpudeploy.domain import errors
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.slices import Remedy
from tpudeploy.views.words import duration

if TYPE_CHECKING:
    from tpudeploy.adapters.google.refusals.row import Verdict
    from tpudeploy.core.bootlog.signatures.row import Signature
    from tpudeploy.domain.diagnostics import Explanation

_WIDTH = 100
# Refusals that are our own word for what we saw, not Google's.
_OURS: Mapping[str, str] = {
    "provisioning-stuck": f"""The slice stays PROVISIONING and never comes up

Its machines come and go, and Google says nothing. After {duration(Patience().provisioning)} tpudeploy deletes the slice
and asks the next place.

What clears it: other zones, or another model in placement.provisioning.""",
}


# What a refusal is raised as, where it is the reply to a call.
_BECOME: Mapping[type[errors.TpudeployError], tuple[Remedy, ...]] = {
    errors.Fault: (Remedy.LOOK_AGAIN,),
    errors.Refused: (Remedy.NEXT_ZONE, Remedy.DROP_ZONE),
    errors.Denied: (Remedy.STOP,),
}


def explanations() -> dict[str, str]:
    """Code → text, of all groups."""
    return {code: text for texts in groups().values() for code, text in texts.items()}


def groups() -> dict[str, dict[str, str]]:
    """What a person can meet, by where it comes from: code → text, whose first line is its title."""
    from tpudeploy.adapters.google.refusals import GROUPS, UNKNOWN
    from tpudeploy.config.codes import EXPLANATIONS
    from tpudeploy.core import lost, pins, renamed, room, targets
    from tpudeploy.core.bootlog.signatures import GROUPS as BOOTS
    from tpudeploy.core.checks import CHECKS

    classes = {cls.code: _of_class(cls, GROUPS.values()) for cls in every_error() if cls.code not in EXPLANATIONS}
    boots = {f"Boots: {name}": {row.name: _boot(row) for row in rows} for name, rows in BOOTS.items()}
    refusals = {f"Refusals: {name}": {row.kind: page(row) for row in rows} for name, rows in GROUPS.items()}
    checks = {row.CODE: row.EXPLANATION for row in CHECKS}
    plans = [part.EXPLANATIONS for part in (lost, targets, room, renamed, pins)]
    return {
        "Profiles": _pages(EXPLANATIONS),
        "Checks": {code: text for rows in (checks, *plans) for code, text in _pages(rows).items()},
        "Errors": dict(sorted(classes.items())),
        **refusals,
        "Refusals: the rest": {UNKNOWN.kind: page(UNKNOWN), **_OURS},
        **boots,
    }


def _pages(rows: Mapping[str, Explanation]) -> dict[str, str]:
    return {code: _page(code, row.title, row.meaning, row.fix) for code, row in rows.items()}


def _page(code: str, title: str, cause: str, instead: str = "") -> str:
    """Return the page of a code of ours: its cause, an example, what to write instead, and the command to run then."""
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


def of_text(text: str) -> tuple[str, str]:
    """What a text is a sign of: a boot that failed, or a refusal of Google's, whose page has the text in it."""
    from tpudeploy.core.bootlog.signatures import SIGNATURES

    died = next((row for row in SIGNATURES if row.found(text)), None)
    if died is not None:
        return died.name, _boot(died, text)
    from tpudeploy.adapters.google.verdicts import classify, matching_row

    code = _named_code(text)
    row = matching_row(text, code)
    return row.kind, page(row, text, classify(text, code).scope)


def _boot(row: Signature, text: str | None = None) -> str:
    """What a server dies of, with the words it says."""
    from tpudeploy.core.bootlog.said import Said

    written = text if text is not None else row.example
    found = row.found(written)
    remedy = "" if found is None else row.remedy(found, Said(flags={}))
    return (
        f"{row.what}\n\nThe engine says, {'' if text else 'e.g. '}in a boot's log:\n  {written}\n\nWhat to do: {remedy}"
    )


def _named_code(text: str) -> int:
    """The code that a pasted error carries beside its words: `RESOURCE_EXHAUSTED`, `"code": 8`, `HttpError 429`."""
    from tpudeploy.adapters.google.codes import CODE_BY_STATUS, Code

    named = next((code for code in Code if re.search(rf"\b{code.name}\b", text)), None)
    if named is not None:
        return named
    number = re.search(r"(?:code|error|status)\W{0,3}(\d{1,3})\b", text, re.IGNORECASE)
    found = int(number[1]) if number is not None else Code.UNKNOWN
    return CODE_BY_STATUS.get(found, found)


def _of_class(cls: type[errors.TpudeployError], refusals: Iterable[Iterable[Verdict]]) -> str:
    """Return the page of an error: its docstring's first line and rest, its name, and the refusals raised as it."""
    title, _, cause = (getdoc(cls) or "").partition("\n")
    kinds = ", ".join(row.kind for rows in refusals for row in rows if row.remedy in _BECOME.get(cls, ()))
    paragraphs = (
        _page(cls.code, title.rstrip("."), " ".join(cause.split())),
        f"The library raises {cls.__name__}; the command line exits {cls.exit_code}.",
        f"Refusals that are raised as it: {kinds}. `tpudeploy explain REFUSAL` describes one." if kinds else "",
    )
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def every_error() -> tuple[type[errors.TpudeployError], ...]:
    """Return every error that we raise on purpose, those of the emulator included."""
    from tpudeploy.emulator.process import EmulatorRunning
    from tpudeploy.emulator.scenario import ScenarioInvalid

    return tuple(dict.fromkeys([*_tree(errors.TpudeployError), EmulatorRunning, ScenarioInvalid]))


def _tree(cls: type[errors.TpudeployError]) -> Iterator[type[errors.TpudeployError]]:
    yield cls
    for child in cls.__subclasses__():
        yield from _tree(child)
