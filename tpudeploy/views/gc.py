"""Format the orphans that `gc` lists: one line each, grouped by owner and by what happens to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tpudeploy.domain.garbage import Claim, Garbage, Stray
from tpudeploy.domain.plan import Action
from tpudeploy.domain.report import Report
from tpudeploy.views import words
from tpudeploy.views.paint import Paint
from tpudeploy.views.words import aligned

_OWNERS: Mapping[Claim, str] = {
    Claim.LEFTOVER: "Orphaned: their deployment's state does not list them.",
    Claim.NO_STATE: "Foreign: their deployment has no state here.",
    Claim.OTHER_LINEAGE: "Foreign: their lineage differs from that of their deployment's state.",
}
_REMOVED_NOTE = "To be removed:"
_KEPT_NOTE = "Kept, because they may belong to another project; -foreign removes them:"
_UNSIGNED_NOTE = (
    "Foreign: only their names look like ours. They are never removed; if they are yours, run:\n"
    "  gcloud compute tpus queued-resources delete NAME --zone=ZONE --force"
)


def gc(garbage: Garbage, paint: Paint) -> str:
    """Return all groups, ending with the cost and quota that removal would free."""
    groups = ("\n".join(_group(heading, strays, garbage, paint)) for heading, strays in _groups(garbage) if strays)
    return "\n\n".join([_scope(garbage), *groups, paint.bold(_summary(garbage.going))])


def summary_line(report: Report, paint: Paint) -> str:
    return paint.green(f"\nDone! {report.count(Action.DESTROY)} removed.")


def _scope(garbage: Garbage) -> str:
    where = f"project{'s' if len(garbage.projects) > 1 else ''} {', '.join(garbage.projects)}"
    if garbage.looked_in:
        zones = f"{len(garbage.looked_in)} zones in the catalog"
        where = f"{where}, in the {zones}, because listing all zones at once was refused"
    count = len(garbage.strays) + garbage.needed
    return f"Looked through {where}. Found {count} with tpudeploy's mark, {garbage.needed} of them needed."


def _groups(garbage: Garbage) -> Iterator[tuple[str, list[Stray]]]:
    groups: dict[str, list[Stray]] = {f"{owner} {_REMOVED_NOTE}": [] for owner in _OWNERS.values()}
    groups |= {f"{owner}\n{_KEPT_NOTE}": [] for owner in _OWNERS.values()}
    groups[_UNSIGNED_NOTE] = []
    for stray in garbage.strays:
        groups[_heading(stray)].append(stray)
    yield from groups.items()


def _heading(stray: Stray) -> str:
    if stray.goes:
        return f"{_OWNERS[stray.claim]} {_REMOVED_NOTE}"
    return f"{_OWNERS[stray.claim]}\n{_KEPT_NOTE}" if stray.found.is_signed else _UNSIGNED_NOTE


def _group(heading: str, strays: Sequence[Stray], garbage: Garbage, paint: Paint) -> Iterator[str]:
    yield heading
    yield ""
    rows = [tuple(_columns(s, with_project=len(garbage.projects) > 1)) for s in strays]
    for stray, line in zip(strays, aligned(rows), strict=True):
        yield f"  {paint.red('-') if stray.goes else ' '} {words.plain(line)}"


def _columns(stray: Stray, *, with_project: bool) -> Iterator[str]:
    yield stray.found.ref.name
    if with_project:
        yield stray.found.ref.project
    yield stray.found.ref.zone
    yield stray.found.asked.accelerator_type or "unknown type"
    yield stray.found.asked.provisioning
    yield stray.found.slice.raw_state
    yield "age unknown" if stray.age is None else f"{words.duration(stray.age)} old"
    yield "no cost" if stray.usd_per_hour == 0 else words.hourly(stray.usd_per_hour)
    yield "" if stray.chips is None else words.plural(stray.chips, "chip")


def _summary(going: Iterable[Stray]) -> str:
    strays = tuple(going)
    if not strays:
        return "Nothing to remove."
    priced = [s.usd_per_hour for s in strays if s.usd_per_hour is not None]
    more = "" if len(priced) == len(strays) else " and more"
    saved = f"saves {words.hourly(sum(priced))}{more} at list price, " if sum(priced) or more else ""
    chips = words.plural(sum(stray.chips or 0 for stray in strays), "chip")
    return f"Plan: {len(strays)} to remove; {saved}gives {chips} of quota back."
