"""What `gc` found, a line each, in groups by whose it is and what happens to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tpudeploy.domain.garbage import Claim, Garbage, Stray
from tpudeploy.domain.plan import Action
from tpudeploy.domain.report import Report
from tpudeploy.views import words
from tpudeploy.views.paint import Paint

_WHOSE: Mapping[Claim, str] = {
    Claim.LEFTOVER: "Left over: the state here of their deployment does not name them.",
    Claim.NO_STATE: "Foreign: no state of their deployment is here.",
    Claim.OTHER_LINEAGE: "Foreign: of another lineage than the state here of their deployment.",
}
_GOES = "To be removed:"
_STAYS = "Left alone, for they may be somebody else's; -foreign removes them:"
_ALIKE = (
    "Foreign, and by nothing but their names like ours. Always left alone; if they are yours:\n"
    "  gcloud compute tpus queued-resources delete NAME --zone=ZONE --force"
)


def gc(of: Garbage, paint: Paint) -> str:
    """The whole, ending with what removing would give back."""
    groups = ("\n".join(_group(heading, strays, of, paint)) for heading, strays in _groups(of) if strays)
    return "\n\n".join([_looked(of), *groups, paint.bold(_summary(of.going))])


def done(report: Report, paint: Paint) -> str:
    return paint.green(f"\nDone! {report.count(Action.DESTROY)} removed.")


def _looked(of: Garbage) -> str:
    where = f"project{'s' if len(of.projects) > 1 else ''} {', '.join(of.projects)}"
    how = f", in the {len(of.looked_in)} zones that we know: all at once was refused" if of.looked_in else ""
    found = len(of.strays) + of.needed
    return f"Looked through {where}{how}. Found {found} with tpudeploy's mark, {of.needed} of them needed."


def _groups(of: Garbage) -> Iterator[tuple[str, list[Stray]]]:
    signed = [s for s in of.strays if s.goes or s.found.is_signed]
    for claim, whose in _WHOSE.items():
        yield f"{whose} {_GOES}", [s for s in signed if s.claim is claim and s.goes]
    for claim, whose in _WHOSE.items():
        yield f"{whose}\n{_STAYS}", [s for s in signed if s.claim is claim and not s.goes]
    yield _ALIKE, [s for s in of.strays if s not in signed]


def _group(heading: str, strays: Sequence[Stray], of: Garbage, paint: Paint) -> Iterator[str]:
    yield heading
    yield ""
    rows = [tuple(_columns(s, with_project=len(of.projects) > 1)) for s in strays]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for stray, row in zip(strays, rows, strict=True):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield f"  {paint.red('-') if stray.goes else ' '} {words.plain(line)}"


def _columns(of: Stray, *, with_project: bool) -> Iterator[str]:
    yield of.found.ref.name
    if with_project:
        yield of.found.ref.project
    yield of.found.ref.zone
    yield of.found.asked.accelerator_type or "unknown type"
    yield of.found.asked.provisioning
    yield of.found.slice.raw_state
    yield "age unknown" if of.age is None else f"{words.duration(of.age)} old"
    yield "no cost" if of.usd_per_hour == 0 else words.hourly(of.usd_per_hour)
    yield "" if of.chips is None else _chips(of.chips)


def _summary(going: Iterable[Stray]) -> str:
    known = tuple(going)
    if not known:
        return "Nothing to remove."
    priced = [s.usd_per_hour for s in known if s.usd_per_hour is not None]
    more = "" if len(priced) == len(known) else " and more"
    saved = f"saves {words.hourly(sum(priced))}{more} at list price, " if sum(priced) or more else ""
    return f"Plan: {len(known)} to remove; {saved}gives {_chips(sum(s.chips or 0 for s in known))} of quota back."


def _chips(count: int) -> str:
    return f"{count} chip{'' if count == 1 else 's'}"
