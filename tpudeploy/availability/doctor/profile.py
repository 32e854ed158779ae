"""What the profile itself asks for: the image, the disk, and everything that `validate` would say."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.availability.doctor.case import Case, fail, ok, unknown, warn
from tpudeploy.domain.diagnosis import Finding, Grade
from tpudeploy.domain.diagnostics import Diagnostic, Severity, errors_in
from tpudeploy.domain.facts import Unknown
from tpudeploy.pins.pins import DIGEST
from tpudeploy.sizing.checks.machine import boot_disk


def image(case: Case) -> Iterator[Finding]:
    found, attributes = case.around.image, case.deployment.attributes
    named, pin = attributes["serving.image"], attributes.get(DIGEST)
    if isinstance(found, Unknown):
        yield unknown(case, "image", found)
    elif not found.is_there and pin is not None:
        hint = "`tpudeploy plan --pin` looks up what it is now."
        yield fail("image", f"What {named} is pinned to ({pin}) is not there, or not public.", hint)
    elif not found.is_there:
        yield fail("image", f"{named} is not there, or not public.", "See serving.image for a misspelt name or tag.")
    else:
        told = f"pinned to {str(pin)[:19]}" if pin is not None else found.digest[:19]
        yield ok("image", f"{named} is there{f' ({told})' if told else ''}.")


def disk(case: Case) -> Iterator[Finding]:
    found = [d for d in case.diagnostics if d.code == boot_disk.code]
    for each in found:
        say = fail if each.severity is Severity.ERROR else warn
        yield say("disk", each.message, each.hint)
    if not found and case.deployment.budget.model is None:
        message = f"Whether {case.deployment.boot_disk_gib} GiB hold the weights is not known: their size is not."
        yield Finding(check="disk", grade=Grade.UNKNOWN, message=message)
    elif not found:
        yield ok("disk", f"{case.deployment.boot_disk_gib} GiB hold image, weights and caches.")


def checks(case: Case) -> Iterator[Finding]:
    rest: tuple[Diagnostic, ...] = tuple(d for d in case.diagnostics if d.code != boot_disk.code)
    wrong = errors_in(rest)
    codes = ", ".join(dict.fromkeys(d.code for d in wrong or rest))
    hint = "`tpudeploy validate` shows the lines, `tpudeploy explain CODE` tells more."
    if wrong:
        yield fail("profile", f"{wrong[0].message} ({codes})", hint)
    elif rest:
        yield warn("profile", f"{rest[0].message} ({codes})", hint)
    else:
        yield ok("profile", "Nothing is to be said of it.")
