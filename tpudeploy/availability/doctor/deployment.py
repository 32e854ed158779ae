"""The deployment itself: its image, its disk, everything that `validate` reports, its lock and its requests."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.availability.diagnosis import Finding
from tpudeploy.availability.doctor.case import Case, enumerate_some, fail, ok, unknown, warn
from tpudeploy.domain.diagnostics import Severity, errors_in
from tpudeploy.domain.facts import Unknown
from tpudeploy.pins.pins import DIGEST
from tpudeploy.sizing.checks.machine import boot_disk


def image(case: Case) -> Iterator[Finding]:
    fact, attributes = case.facts.image, case.deployment.attributes
    name, pin = attributes["serving.image"], attributes.get(DIGEST)
    if isinstance(fact, Unknown):
        yield unknown(case, "image", fact)
    elif not fact.is_there and pin is not None:
        hint = "`tpudeploy plan --pin` looks up what it is now."
        yield fail("image", f"What {name} is pinned to ({pin}) is not there, or not public.", hint)
    elif not fact.is_there:
        yield fail("image", f"{name} is not there, or not public.", "See serving.image for a misspelt name or tag.")
    else:
        digest = f"pinned to {str(pin)[:19]}" if pin is not None else fact.digest[:19]
        yield ok("image", f"{name} is there{f' ({digest})' if digest else ''}.")


def disk(case: Case) -> Iterator[Finding]:
    size = f"{case.deployment.boot_disk_gib} GiB"
    problems = [d for d in case.diagnostics if d.code == boot_disk.code]
    for problem in problems:
        report = fail if problem.severity is Severity.ERROR else warn
        yield report("disk", problem.message, problem.hint)
    if not problems and case.deployment.budget.model is None:
        message = f"Whether {size} hold the weights is not known: their size is not."
        yield unknown(case, "disk", Unknown(because=message))
    elif not problems:
        yield ok("disk", f"{size} hold image, weights and caches.")


def checks(case: Case) -> Iterator[Finding]:
    problems = tuple(d for d in case.diagnostics if d.code != boot_disk.code)
    errors = errors_in(problems)
    codes = ", ".join(dict.fromkeys(d.code for d in errors or problems))
    hint = "`tpudeploy validate` shows the lines, `tpudeploy explain CODE` tells more."
    if errors:
        yield fail("profile", f"{errors[0].message} ({codes})", hint)
    elif problems:
        yield warn("profile", f"{problems[0].message} ({codes})", hint)
    else:
        yield ok("profile", "It has no errors and no warnings.")


def lock(case: Case) -> Iterator[Finding]:
    holder = case.holder
    if isinstance(holder, Unknown):
        yield unknown(case, "lock", holder)
    elif holder is None:
        yield ok("lock", "No run is at work on it.")
    else:
        message = f"{holder.who} is at work on it (process {holder.pid}, `{holder.operation}`)."
        yield warn("lock", message, "Wait for it, or work with them: the lock ends with its process.")


def requests(case: Case) -> Iterator[Finding]:
    """Check the queued resources that the state tracks: each counts against quota until it is deleted."""
    state = case.state
    if isinstance(state, Unknown):
        yield fail("requests", state.because, state.hint)
        return
    attempts = state.attempts if state is not None else ()
    waiting = [a for a in attempts if a.granted_at is None]
    names = enumerate_some(f"{a.name} ({a.zone}, {a.provisioning})" for a in waiting or attempts)
    if waiting:
        message = f"Asked for and not granted: {names}. Each counts against quota."
        yield warn("requests", message, "`tpudeploy apply` continues it, `tpudeploy destroy` deletes it.")
    elif attempts:
        yield ok("requests", f"Held: {names}.")
    else:
        yield ok("requests", "Nothing is held or asked for.")
