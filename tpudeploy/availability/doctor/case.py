"""The case before the doctor: a deployment, and everything that is known of it."""

from __future__ import annotations

from collections.abc import Iterable

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnosis import Finding, Grade
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.gates import Zones
from tpudeploy.domain.lock import LockInfo
from tpudeploy.domain.state import State
from tpudeploy.domain.surroundings import Surroundings


@frozen
class Case:
    """`state` None: nothing was ever asked for. `lacking` says why Google could be asked nothing at all."""

    deployment: Deployment
    diagnostics: tuple[Diagnostic, ...]
    lacking: Unknown | None
    around: Surroundings
    zones: Zones
    state: State | Unknown | None
    holder: LockInfo | Unknown | None


def ok(check: str, message: str) -> Finding:
    return Finding(check=check, grade=Grade.OK, message=message)


def warn(check: str, message: str, hint: str = "") -> Finding:
    return Finding(check=check, grade=Grade.WARN, message=message, hint=hint)


def fail(check: str, message: str, hint: str = "") -> Finding:
    return Finding(check=check, grade=Grade.FAIL, message=message, hint=hint)


def unknown(case: Case, check: str, why: Unknown) -> Finding:
    """What nobody told. Where nothing could be asked at all, the reason was given once already."""
    if why == case.lacking:
        return Finding(check=check, grade=Grade.UNKNOWN, message="Google could not be asked, see above.")
    return Finding(check=check, grade=Grade.UNKNOWN, message=why.because, hint=why.hint)


def listed(things: Iterable[str], most: int = 4) -> str:
    """`a, b, c, d and 3 more`."""
    every = list(things)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def some_or_all(check: str, lacking: list[str], count: int, message: str, hint: str) -> Finding:
    """What is lacking in every region fails; what is lacking in some of them warns: the others can be asked."""
    return fail(check, message, hint) if len(lacking) == count else warn(check, message, hint)
