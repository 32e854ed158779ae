"""Every code that a person can meet, gathered from where it is defined: diagnostics, errors, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import getdoc
from typing import TYPE_CHECKING

from tpudeploy.domain import errors
from tpudeploy.domain.slices import Remedy, Scope
from tpudeploy.views.words import duration

if TYPE_CHECKING:
    from tpudeploy.adapters.google.verdicts import Verdict

_THEN = {
    Remedy.LOOK_AGAIN: "waits and looks again",
    Remedy.NEXT_ZONE: "asks the next place",
    Remedy.DROP_ZONE: "asks the next place",
    Remedy.STOP: "stops: no place will do until a person acts",
}
_SPEAKS_OF = {
    Scope.PAIR: "this zone with this provisioning model",
    Scope.ZONE: "the zone",
    Scope.REGION: "the region",
    Scope.PROJECT: "the project",
}


def explanations() -> dict[str, str]:
    """Code → text. Diagnostics of profiles and plans, checks, classes of errors, kinds of Google's refusals."""
    from tpudeploy.adapters.google.verdicts import VERDICTS
    from tpudeploy.config.codes import EXPLANATIONS
    from tpudeploy.core import lost
    from tpudeploy.core.checks import CHECKS

    texts = {cls.code: _of_class(cls) for cls in _tree(errors.TpudeployError)}
    texts |= {
        code: f"{about.title}\n\n{about.meaning}\n\nFor example:\n{about.fix}" for code, about in EXPLANATIONS.items()
    }
    texts |= {row.CODE: row.MEANING for row in CHECKS}
    texts |= lost.MEANINGS
    for row in VERDICTS:
        texts[row.kind] = _of_refusal(row)
    return texts


def _of_refusal(row: Verdict) -> str:
    speaks_of = _SPEAKS_OF[row.scope] if row.scope is not None else "the place that its text names"
    then = f", and holds it against {speaks_of} for {duration(row.holds)}" if row.holds else ""
    return f'A refusal by Google\n\n"{row.example}"\n\n{row.hint}\n\ntpudeploy {_THEN[row.remedy]}{then}.'


def _of_class(cls: type[errors.TpudeployError]) -> str:
    return f"{cls.__name__} (exit {cls.exit_code})\n\n{getdoc(cls) or ''}".rstrip()


def _tree(cls: type[errors.TpudeployError]) -> Iterator[type[errors.TpudeployError]]:
    yield cls
    for child in cls.__subclasses__():
        yield from _tree(child)
