"""Format the orphans that `gc` lists: one line each, grouped by owner and by what happens to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.domain.accelerator import DEFAULT_BACKEND
from tpudeploy.domain.orphans import Claim, Orphan, Orphans
from tpudeploy.domain.plan import Action
from tpudeploy.domain.report import RunReport
from tpudeploy.text import words
from tpudeploy.text.paint import Paint
from tpudeploy.text.words import aligned

_OWNERS: Mapping[Claim, str] = {
    Claim.LEFTOVER: "Orphaned: their deployment's state does not list them.",
    Claim.NO_STATE: "Foreign: their deployment has no state here.",
    Claim.OTHER_LINEAGE: "Foreign: their lineage differs from that of their deployment's state.",
}
_REMOVED_NOTE = "To be removed:"
_KEPT_NOTE = "Kept, because they may belong to another project; -foreign removes them:"
_NEEDED_NOTE = (
    "`tpudeploy status` shows what is needed and its price; `tpudeploy destroy NAME` deletes a deployment, and the\n"
    "billing ends."
)
_UNSIGNED_NOTE = (
    "Foreign: only their names look like ours. They are never removed; if they are yours, run:\n"
    + "\n".join(
        f"  {row.delete_command}" if backend is DEFAULT_BACKEND else f"or, for {row.resources}:\n  {row.delete_command}"
        for backend, row in BACKENDS.items()
    )
)


def gc(orphans: Orphans, paint: Paint) -> str:
    """Return all groups, ending with the cost and quota that removal would free."""
    groups = ("\n".join(_group(heading, strays, orphans, paint)) for heading, strays in _groups(orphans) if strays)
    needed = [_NEEDED_NOTE] if orphans.needed else []
    return "\n\n".join([_scope(orphans), *groups, *needed, paint.bold(_summary(orphans.going))])


def summary_line(report: RunReport, paint: Paint) -> str:
    return paint.green(f"\nDone! {report.count(Action.DESTROY)} removed.")


def _scope(orphans: Orphans) -> str:
    where = f"project{'s' if len(orphans.projects) > 1 else ''} {', '.join(orphans.projects)}"
    if orphans.looked_in:
        zones = f"{len(orphans.looked_in)} zones in the catalog"
        where = f"{where}, in the {zones}, because listing all zones at once was refused"
    count = len(orphans.strays) + orphans.needed
    missing = [(each.project, each.backend) for each in orphans.not_searched]
    kinds = [
        row.resources
        for backend, row in BACKENDS.items()
        if any((each, backend) not in missing for each in orphans.projects)
    ]
    result = f"Found {count} with tpudeploy's mark, {orphans.needed} of them needed."
    gaps = [
        f"Did not look for {BACKENDS[each.backend].resources} in project {each.project}. {words.plain(each.reason)}"
        for each in orphans.not_searched
    ]
    return "\n".join([f"Looked for {' and '.join(kinds)} in {where}. {result}", *gaps])


def _groups(orphans: Orphans) -> Iterator[tuple[str, list[Orphan]]]:
    groups: dict[str, list[Orphan]] = {f"{owner} {_REMOVED_NOTE}": [] for owner in _OWNERS.values()}
    groups |= {f"{owner}\n{_KEPT_NOTE}": [] for owner in _OWNERS.values()}
    groups[_UNSIGNED_NOTE] = []
    for orphan in orphans.strays:
        groups[_heading(orphan)].append(orphan)
    yield from groups.items()


def _heading(orphan: Orphan) -> str:
    if orphan.goes:
        return f"{_OWNERS[orphan.claim]} {_REMOVED_NOTE}"
    return f"{_OWNERS[orphan.claim]}\n{_KEPT_NOTE}" if orphan.resource.is_signed else _UNSIGNED_NOTE


def _group(heading: str, strays: Sequence[Orphan], orphans: Orphans, paint: Paint) -> Iterator[str]:
    yield heading
    yield ""
    rows = [tuple(_columns(s, with_project=len(orphans.projects) > 1)) for s in strays]
    for orphan, line in zip(strays, aligned(rows), strict=True):
        yield f"  {paint.red('-') if orphan.goes else ' '} {words.plain(line)}"


def _columns(orphan: Orphan, *, with_project: bool) -> Iterator[str]:
    yield orphan.resource.ref.name
    if with_project:
        yield orphan.resource.ref.project
    yield orphan.resource.ref.zone
    yield orphan.resource.request.accelerator_type or "unknown type"
    yield orphan.resource.request.provisioning
    yield orphan.resource.slice.raw_state
    yield "age unknown" if orphan.age is None else f"{words.duration(orphan.age)} old"
    yield "no cost" if orphan.usd_per_hour == 0 else words.hourly(orphan.usd_per_hour)
    yield "" if orphan.chips is None else words.plural(orphan.chips, "chip")


def _summary(going: Iterable[Orphan]) -> str:
    strays = tuple(going)
    if not strays:
        return "Nothing to remove."
    priced = [s.usd_per_hour for s in strays if s.usd_per_hour is not None]
    more = "" if len(priced) == len(strays) else " and more"
    saved = f"saves {words.hourly(sum(priced))}{more} at list price, " if sum(priced) or more else ""
    chips = words.plural(sum(orphan.chips or 0 for orphan in strays), "chip")
    return f"Plan: {len(strays)} to remove; {saved}gives {chips} of quota back."
