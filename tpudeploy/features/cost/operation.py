"""Show what deployments cost at list price: by deployment, zone, model, label, day or month, and what still runs.

Costs are those of the ledger that runs write beside the states. Google is not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from math import inf
from pathlib import Path
from typing import Annotated

from tpudeploy import loading
from tpudeploy.domain.errors import UsageError
from tpudeploy.features.cost import spend, view
from tpudeploy.features.cost.billing_export import read_export
from tpudeploy.features.cost.comparison import ComparedCosts, compare
from tpudeploy.features.cost.spend import Grouping, SpendNotes, SpendRow
from tpudeploy.operations.arguments import Agents, Arg, SomeProfiles
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.reconcile.spend import Billing, Interval, account
from tpudeploy.results import Result, result
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace

_MOST_BYTES = 256 << 20
_EMULATED = "On the emulator: nothing is billed. Its slices are in a ledger of their own."
_BY = "deployment, slice, zone, model, day, month, or label:KEY"


@result
class Cost(Result):
    """What was spent at list price until `at`, in groups, and all together."""

    FORMAT = "cost"
    ADDED_LATER = frozenset({"emulated", "unseen", "unreadable_lines"})
    at: float
    by: str
    rows: tuple[SpendRow, ...]
    total: SpendRow
    untracked: Annotated[tuple[str, ...], "slices that no state tracks any more, which may still run"] = ()
    bounds: Annotated[
        tuple[str, ...], "slices of whose end Google has no record: they count until their own, or until found gone"
    ] = ()
    unwatched: Annotated[
        tuple[str, ...], "slices that may have deleted themselves since a command looked: the next one to look says so"
    ] = ()
    unseen: Annotated[tuple[str, ...], "requests that no command has seen since: each may have been granted"] = ()
    unreadable_lines: Annotated[int, "lines of the ledger that cannot be read: what they say is missing here"] = 0
    prices: Annotated[str, "the dates of the list prices"] = ""
    ended_by: Annotated[str, "what ends those that run, in the words of a sentence"] = ""
    compared: Annotated[ComparedCosts | None, "the ledger beside a billing export, with -compare"] = None
    emulated: Annotated[bool, "whether all of it ran on the emulator, where nothing is billed"] = False

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        del width
        if self.compared is not None:
            return view.comparison_text(self.compared)
        notes = SpendNotes(**{each.name: getattr(self, each.name) for each in fields(SpendNotes)})
        text = view.text(self.by, self.rows, self.total, notes)
        return f"{text}\n\n{paint.yellow(_EMULATED)}" if self.emulated else text


def cost(
    workspace: Workspace,
    profiles: Annotated[
        SomeProfiles, Arg(agents=Agents("paths inside the project; none for everything in the ledger"))
    ] = (),
    *,
    compare: Annotated[
        Path | str | None,
        Arg("Compare with this CSV file of Google's billing export.", metavar="CSV", agents=None),
    ] = None,
    group_by: Annotated[str, Arg(f"Add up by {_BY}.", metavar="GROUP")] = str(Grouping.DEPLOYMENT),
) -> Cost:
    """Return what deployments cost at list price, by the ledger beside their states. Without profiles, all of them.

    A slice is billed from the creation of its machine, by Google's time, until its deletion was requested. One whose
    end was not seen is closed by Google's own time for it. If Google has none, it counts until the end that it was to
    have, or until a run found it gone, and is named. What may have ended since a command looked counts until now.

    `compare` is a CSV file of Google's billing export: then the result also has what was billed in its time, and the
    causes of each difference.

    Raise `errors.UsageError` for another grouping or a file that is no such export, `errors.StateUnreadable` if the
    ledger cannot be read.
    """
    _check_grouping(group_by)
    chosen = {profile.name for profile in loading.profiles(profiles)}
    now = workspace.adapters.clock.now()
    states = workspace.states()
    ledger = workspace.adapters.states.ledger()
    every = account(ledger, states, now)
    every = tuple(each for each in every if not chosen or each.request.deployment in chosen)
    price_dates = {each.request.price_as_of for each in every}
    compared = None if compare is None else _compared(Path(compare), every)
    return Cost(
        compared=compared,
        at=now,
        by=group_by,
        rows=spend.rows(every, group_by, now),
        total=spend.total(every, now),
        untracked=_names(every, lambda each: each.is_untracked),
        bounds=_names(every, lambda each: each.is_bound),
        unwatched=_names(every, lambda each: each.billing is Billing.MAY_RUN and not each.is_untracked),
        unseen=_names(every, lambda each: each.billing is Billing.UNKNOWN),
        unreadable_lines=ledger.unreadable_lines,
        ended_by=_what_ends(every),
        prices=", ".join(sorted(price_dates - {""})),
        emulated=workspace.adapters.is_emulated,
    )


def _what_ends(every: Iterable[Interval]) -> str:
    is_google = all(each.google_end < inf for each in every if each.may_run)
    return "Google ends them" if is_google else "their ends"


def _names(every: Iterable[Interval], is_named: Callable[[Interval], bool]) -> tuple[str, ...]:
    return tuple(each.request.name for each in every if is_named(each))


def _check_grouping(group_by: str) -> None:
    is_label = group_by.startswith("label:") and group_by != "label:"
    if group_by not in list(Grouping) and not is_label:
        raise UsageError(f"Costs are not added up by `{group_by}`.", hint=f"-group-by takes {_BY}.")


def _compared(path: Path, every: Iterable[Interval]) -> ComparedCosts:
    """Return the ledger beside an export. Raise `errors.UsageError` for a file that cannot be read."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{path} is larger than {_MOST_BYTES >> 20} MiB.", hint="Select fewer months or projects.")
        with path.open(encoding="utf-8-sig", newline="") as file:
            return compare(every, read_export(file, str(path)))
    except OSError as cause:
        raise UsageError(f"{path} cannot be read: {cause.strerror}.") from cause
    except UnicodeDecodeError as cause:
        raise UsageError(f"{path} is not UTF-8 text.", hint="Save the result of the query as CSV.") from cause


OPERATION = Operation(
    run=cost,
    results=(Cost,),
    access=Access.OFFLINE,
    title="Cost",
    tool="cost",
    options=("backend",),
)
