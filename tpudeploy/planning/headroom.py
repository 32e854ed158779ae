"""Headroom: whether a replacement fits beside the slice that it replaces, by quotas, refusals and reservations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tpudeploy import catalog
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Candidate, Deployment, Provisioning
from tpudeploy.domain.diagnostics import CodePage, Diagnostic, Severity
from tpudeploy.domain.facts import POOLS, UNLIMITED
from tpudeploy.domain.names import ROUTER
from tpudeploy.domain.plan import Action, Change, Goal
from tpudeploy.domain.state import Record, State
from tpudeploy.planning.quota import QuotaTable
from tpudeploy.reconcile.refusals import QUOTAS, closes
from tpudeploy.reconcile.replicas import at_replica

NO_ROOM = "TPU3021"
EXPLANATIONS: Mapping[str, CodePage] = {
    NO_ROOM: CodePage(
        "There is no room for a replacement beside what it replaces",
        "With lifecycle.replace: create-before-destroy, the new slice exists before the old one is deleted. The "
        "quota has no room for both, or it's a reservation of unknown size. Delete the old slice first, as below "
        "(no server runs until the new one does). For a serving change, restart the server on the same chips "
        "(lifecycle: {update: in-place}). Or allow a zone or provisioning model with another quota, or request "
        "more quota. `tpudeploy zones` shows it.",
        "lifecycle: {replace: destroy-before-create}",
    ),
}


def needs_headroom(goal: Goal) -> bool:
    """Return whether a plan needs room for a slice and its replacement at one time, and is not approved yet."""
    return not goal.resumes and any(map(_is_beside, goal.changes))


def headroom_problems(
    deployment: Deployment, goal: Goal, state: State, quotas: Mapping[Backend, QuotaTable], now: float
) -> Iterator[Diagnostic]:
    """Return an error for each replacement that fits in none of its places before the old slice is gone.

    `quotas` are those of the APIs that were read; the quota of any other is not known.
    """
    for change in filter(_is_beside, goal.changes):
        own_deployment = at_replica(deployment, state, change.replica)
        replacement = _Replacement(
            deployment=own_deployment, change=change, record=state.record(change.replica), quotas=quotas, now=now
        )
        obstacles = [replacement.obstacle(place) for place in own_deployment.candidates]
        if obstacles and all(obstacles):
            yield _no_headroom(deployment, change, "; ".join(dict.fromkeys(obstacles)))


def _no_headroom(deployment: Deployment, change: Change, why: str) -> Diagnostic:
    if change.run_ends_at is not None:
        # The run ends in any case, so this forbids nothing. The successor is requested until there is room.
        return Diagnostic(
            code=NO_ROOM,
            message=f"{change.address} will find no successor before its run ends: {why}.",
            severity=Severity.WARNING,
            path="lifecycle.on_run_end",
            location=deployment.origin("lifecycle.on_run_end"),
            hint="It is requested all the same, and granted once there is room: nothing serves from the end of the run "
            "until then.",
        )
    path = "lifecycle.update" if change.hands_over else "lifecycle.replace"
    start = change.start_seconds_after
    duration = "the time of a start" if start is None else f"about {max(round(start / 60), 1)} min"
    if change.hands_over:
        hint = (
            "lifecycle.update: in-place restarts the server on the chips that it has.\n"
            f"Nothing then serves for {duration}."
        )
    else:
        hint = (
            "lifecycle.replace: destroy-before-create releases the old slice first.\n"
            f"Nothing then serves during the wait for chips, and for {duration} more."
        )
    return Diagnostic(
        code=NO_ROOM,
        message=f"{change.address} cannot be replaced before its slice is deleted: {why}.",
        path=path,
        location=deployment.origin(path),
        hint=hint,
    )


def _is_beside(change: Change) -> bool:
    # The VM of a router takes no chips.
    return change.action is Action.REPLACE and change.create_before_destroy and change.replica != ROUTER


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replacement:
    deployment: Deployment
    change: Change
    record: Record
    quotas: Mapping[Backend, QuotaTable]
    now: float

    def obstacle(self, place: Candidate) -> str:
        """Return why there is no room in this place for both, though there is for one; "" where there may be."""
        reservation = self.change.before.get("placement.reservation")
        # The old slice uses the same reservation, and Google does not say how much of it is free.
        if place.provisioning is Provisioning.RESERVED and reservation == self.deployment.reservation:
            return f"nothing shows that {reservation} has room for both"
        return self._quota_obstacle(place) or self._refusal_obstacle(place)

    def _quota_obstacle(self, place: Candidate) -> str:
        """Return the quota that has room for the new slice only once the old one is gone.

        The use is the sum of everything that Google lists at this API. There may be more, but not less.
        """
        pool, chips = POOLS[place.provisioning], self.deployment.accelerator.chips
        old = self.record.attempt(self.change.slice_name)
        # Nothing is replaced that uses the quota.
        if old is None or POOLS[old.provisioning] is not pool:
            return ""
        # The two APIs have quotas of their own, and neither is full for the other.
        if old.backend is not place.backend or place.backend not in self.quotas:
            return ""
        quota = self.quotas[place.backend].quota(place.zone, pool, chips=chips)
        for name, limit, used, is_shared in (
            (str(place.zone), quota.zone_limit, quota.zone_used, old.zone == place.zone),
            (place.zone.region, quota.region_limit, quota.region_used, old.zone.region == place.zone.region),
        ):
            if limit is None or used is None or limit == UNLIMITED or not is_shared:
                continue
            free_chips = limit - used
            if free_chips < chips <= free_chips + self._old_chips:
                return f"{name} has a quota of {limit} {pool} chips, of which {used} are used"
        return ""

    def _refusal_obstacle(self, place: Candidate) -> str:
        """Return the full quota by which Google refused that place a short while ago."""
        chips = self.deployment.accelerator.chips
        for refused in self.record.refusals:
            limit = self._old_chips if refused.limit is None else refused.limit
            is_full_quota = refused.until > self.now and refused.scope in QUOTAS
            if is_full_quota and chips <= limit and closes(refused, place, chips, self.record.attempts):
                return f"{refused.zone} refused, for its quota is full ({refused.message.rstrip('.')})"
        return ""

    @property
    def _old_chips(self) -> int:
        accelerator = catalog.accelerator_type(str(self.change.before.get("tpu.type")))
        return 0 if accelerator is None else accelerator.chips
