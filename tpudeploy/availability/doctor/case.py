"""The case of a deployment before the doctor: everything that is known about it, and how a finding is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tpudeploy.availability.diagnosis import Finding, FindingGrade
from tpudeploy.domain.availability import ZoneTable
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.lock import LockInfo
from tpudeploy.domain.project_facts import ProjectFacts
from tpudeploy.domain.slices import BootReport
from tpudeploy.domain.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorInput:
    """`state` None: nothing was ever requested. `offline` says why Google could not be asked anything at all.

    `reports` are those of the slices of several hosts that were granted, by name.
    """

    deployment: Deployment
    diagnostics: tuple[Diagnostic, ...]
    offline: Unknown | None
    facts: ProjectFacts
    zones: ZoneTable
    state: State | Unknown | None
    holder: LockInfo | Unknown | None
    reports: Mapping[str, BootReport | Unknown | None]


def ok(check: str, message: str) -> Finding:
    return Finding(check=check, grade=FindingGrade.OK, message=message)


def warn(check: str, message: str, hint: str = "") -> Finding:
    return Finding(check=check, grade=FindingGrade.WARN, message=message, hint=hint)


def fail(check: str, message: str, hint: str = "") -> Finding:
    return Finding(check=check, grade=FindingGrade.FAIL, message=message, hint=hint)


def unknown(case: DoctorInput, check: str, why: Unknown) -> Finding:
    """Return the finding for an unknown fact. If Google could not be asked at all, the reason was given before."""
    if why == case.offline:
        return Finding(check=check, grade=FindingGrade.UNKNOWN, message="Google could not be queried; see above.")
    return Finding(check=check, grade=FindingGrade.UNKNOWN, message=why.because, hint=why.hint)


def some_or_all(check: str, lacking: list[str], count: int, message: str, hint: str) -> Finding:
    """Return a failure if all regions lack it, and a warning if some do: the others can be tried."""
    return fail(check, message, hint) if len(lacking) == count else warn(check, message, hint)
