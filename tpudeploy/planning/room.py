"""Whether a replacement fits beside what it replaces: not where a quota is full, nor for sure in a reservation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tpudeploy import catalog
from tpudeploy.domain.deployment import Candidate, Deployment, Provisioning
from tpudeploy.domain.diagnostics import Diagnostic, Explanation, Severity
from tpudeploy.domain.facts import POOLS, UNLIMITED
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.plan import Action, Change, Goal
from tpudeploy.domain.state import Attempt, Record, State
from tpudeploy.planning.quota import Book
from tpudeploy.reconcile.refusals import QUOTAS, closes

NO_ROOM = "TPU3021"
EXPLANATIONS: Mapping[str, Explanation] = {
    NO_ROOM: Explanation(
        "There is no room for a replacement beside what it replaces",
        "With lifecycle.replace: create-before-destroy the new slice has to exist before the old one is deleted, "
        "which takes room for both. A full quota has none, and a reservation does not say whether it has any. "
        "Delete the old slice first, as below (nothing serves until the new one does); restart the server on the "
        "chips that it has, for a serving change (lifecycle: {update: in-place}); allow a zone or a provisioning "
        "model that draws from another quota; or ask for more quota, which `tpudeploy zones` shows.",
        "lifecycle: {replace: destroy-before-create}",
    ),
}


def asks_for_both(goal: Goal) -> bool:
    """Whether it would have a slice and its replacement stand side by side, and nobody approved that yet."""
    return not goal.resumes and any(map(_is_beside, goal.changes))


def no_room(deployment: Deployment, goal: Goal, state: State, book: Book, now: float) -> Iterator[Diagnostic]:
    """An error for each replacement that can fit in none of its places before the old slice is gone."""
    for change in filter(_is_beside, goal.changes):
        case = _Case(deployment=deployment, change=change, record=state.record(change.replica), book=book, now=now)
        why = [case.why_not(place) for place in deployment.candidates]
        if why and all(why):
            yield _crowded(deployment, change, "; ".join(dict.fromkeys(why)))


def _crowded(deployment: Deployment, change: Change, why: str) -> Diagnostic:
    if change.run_ends_at is not None:
        # It ends whatever we do: no reason to forbid anything. Its successor is asked for until there is room.
        return Diagnostic(
            code=NO_ROOM,
            message=f"{change.address} will find no successor before its run ends: {why}.",
            severity=Severity.WARNING,
            path="lifecycle.on_run_end",
            location=deployment.origin("lifecycle.on_run_end"),
            hint="It is asked for all the same, and granted once there is room: nothing serves from the end of the run "
            "until then.",
        )
    path = "lifecycle.update" if change.hands_over else "lifecycle.replace"
    start = change.start_seconds_after
    in_place = "lifecycle.update: in-place restarts the server on the chips that it has.\nNothing then serves for"
    most = "the time of a start" if start is None else f"about {max(round(start / 60), 1)} min"
    return Diagnostic(
        code=NO_ROOM,
        message=f"{change.address} cannot be replaced before it goes: {why}.",
        path=path,
        location=deployment.origin(path),
        hint=f"{in_place} {most}."
        if change.hands_over
        else "lifecycle.replace: destroy-before-create gives the old slice up first.\n"
        f"Nothing then serves while chips are waited for, and {most} more.",
    )


def _is_beside(change: Change) -> bool:
    return change.action is Action.REPLACE and change.create_before_destroy


@frozen
class _Case:
    deployment: Deployment
    change: Change
    record: Record
    book: Book
    now: float

    def why_not(self, place: Candidate) -> str:
        """Why there is no room in this place for both, though there is for one; "" where there may be."""
        held_in = self.change.before.get("placement.reservation")
        if place.provisioning is Provisioning.RESERVED and held_in == self.deployment.reservation:
            return f"nothing shows that {held_in} has room for both"
        return self._by_quota(place) or self._by_refusal(place)

    def _by_quota(self, place: Candidate) -> str:
        """Held now are all queued resources that Google lists: others may hold more, none less."""
        pool, chips, old = POOLS[place.provisioning], self.deployment.accelerator.chips, self._old
        if old is None:
            return ""
        quota = self.book.quota(place.zone, pool, chips=chips)
        shares = POOLS[old.provisioning] is pool
        for name, limit, used, is_there in (
            (str(place.zone), quota.zone_limit, quota.zone_used, old.zone == place.zone),
            (place.zone.region, quota.region_limit, quota.region_used, old.zone.region == place.zone.region),
        ):
            if limit is None or used is None or limit == UNLIMITED or not (shares and is_there):
                continue
            if limit - used < chips <= limit - used + self._old_chips:
                return f"{name} has a quota of {limit} {pool} chips, of which {used} are used"
        return ""

    def _by_refusal(self, place: Candidate) -> str:
        chips = self.deployment.accelerator.chips
        for refused in self.record.refusals:
            most = self._old_chips if refused.limit is None else refused.limit
            stands = refused.until > self.now and refused.scope in QUOTAS
            if stands and chips <= most and closes(refused, place, chips, self.record.attempts):
                return f"{refused.zone} refused, for its quota is full ({refused.message.rstrip('.')})"
        return ""

    @property
    def _old(self) -> Attempt | None:
        return self.record.attempt(self.change.slice_name)

    @property
    def _old_chips(self) -> int:
        kind = catalog.accelerator_type(str(self.change.before.get("tpu.type", "")))
        return 0 if kind is None else kind.chips
