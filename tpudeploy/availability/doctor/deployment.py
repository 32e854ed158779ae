"""The deployment itself: its image, its disk, everything that `validate` reports, its lock and its requests."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.availability.diagnosis import Finding
from tpudeploy.availability.doctor.case import DoctorInput, fail, ok, unknown, warn
from tpudeploy.domain.diagnostics import Severity, errors_in
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.slices import BootPhase, BootReport
from tpudeploy.pins import DIGEST
from tpudeploy.sizing.checks.machine import boot_disk
from tpudeploy.text import words


def image(case: DoctorInput) -> Iterator[Finding]:
    fact, attributes = case.facts.image, case.deployment.attributes
    name, pin = attributes["serving.image"], attributes.get(DIGEST)
    if isinstance(fact, Unknown):
        yield unknown(case, "image", fact)
    elif not fact.exists and pin is not None:
        hint = "`tpudeploy plan --pin` looks up what it is now."
        yield fail("image", f"{name} is pinned to {pin}, which does not exist or is not public.", hint)
    elif not fact.exists:
        yield fail(
            "image", f"{name} does not exist, or is not public.", "See serving.image for a misspelt name or tag."
        )
    else:
        digest = f"pinned to {str(pin)[:19]}" if pin is not None else fact.digest[:19]
        yield ok("image", f"{name} exists{f' ({digest})' if digest else ''}.")


def disk(case: DoctorInput) -> Iterator[Finding]:
    size = f"{case.deployment.boot_disk_gib} GiB"
    problems = [d for d in case.diagnostics if d.code == boot_disk.code]
    for problem in problems:
        report = fail if problem.severity is Severity.ERROR else warn
        yield report("disk", problem.message, problem.hint)
    if not problems and case.deployment.budget.model is None:
        message = f"The size of the weights is not known, so it is not known whether {size} hold them."
        yield unknown(case, "disk", Unknown(because=message))
    elif not problems:
        yield ok("disk", f"{size} hold image, weights and caches.")


def checks(case: DoctorInput) -> Iterator[Finding]:
    problems = tuple(d for d in case.diagnostics if d.code != boot_disk.code)
    errors = errors_in(problems)
    codes = ", ".join(dict.fromkeys(d.code for d in errors or problems))
    hint = "`tpudeploy validate` shows the lines, and `tpudeploy explain CODE` explains them."
    if errors:
        yield fail("profile", f"{errors[0].message} ({codes})", hint)
    elif problems:
        yield warn("profile", f"{problems[0].message} ({codes})", hint)
    else:
        yield ok("profile", "It has no errors and no warnings.")


def lock(case: DoctorInput) -> Iterator[Finding]:
    holder = case.holder
    if isinstance(holder, Unknown):
        yield unknown(case, "lock", holder)
    elif holder is None:
        yield ok("lock", "No other run holds the lock.")
    else:
        message = f"{holder.who} holds the lock (process {holder.pid}, `{holder.operation}`)."
        yield warn("lock", message, "Wait until that process ends: it releases the lock.")


def requests(case: DoctorInput) -> Iterator[Finding]:
    """Check the queued resources that the state tracks: each counts against quota until it is deleted."""
    state = case.state
    if isinstance(state, Unknown):
        yield fail("requests", state.because, state.hint)
        return
    attempts = state.attempts if state is not None else ()
    waiting = [a for a in attempts if a.granted_at is None]
    names = words.some(f"{a.name} ({a.zone}, {a.provisioning})" for a in waiting or attempts)
    if waiting:
        message = f"Requested and not granted: {names}. Each counts against quota."
        yield warn("requests", message, "`tpudeploy apply` continues it, `tpudeploy destroy` deletes it.")
    elif attempts:
        yield ok("requests", f"Granted: {names}.")
    else:
        yield ok("requests", "The state tracks no slice and no request.")


def workers(case: DoctorInput) -> Iterator[Finding]:
    """Check the report of each worker of a slice of several hosts: one that is missing keeps the others waiting."""
    for name, report in case.reports.items():
        if isinstance(report, Unknown):
            yield unknown(case, "workers", report)
        elif report is None:
            yield unknown(case, "workers", Unknown(because=f"No worker of {name} has reported yet."))
        else:
            yield _finding_of_workers(name, report)


def _finding_of_workers(name: str, report: BootReport) -> Finding:
    behind = [(n, each) for n, each in enumerate(report.workers) if each is None or each.phase is not BootPhase.SERVING]
    if not behind:
        return ok("workers", f"All {len(report.workers)} workers of {name} serve.")
    texts = []
    for number, each in behind:
        progress = "it has not reported yet" if each is None else each.detail or each.phase
        texts.append(f"worker {number}: {progress}")
    message = f"{len(behind)} of {len(report.workers)} workers of {name} do not serve: {'; '.join(texts)}."
    has_failure = any(each is not None and each.phase is BootPhase.FAILED for _, each in behind)
    if has_failure:
        return fail("workers", message, "`tpudeploy logs` shows why.")
    hint = "`tpudeploy logs` shows how far each came. One that stays silent has a faulty host: delete the slice."
    return warn("workers", message, hint)
