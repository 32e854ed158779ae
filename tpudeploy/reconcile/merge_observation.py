"""What one look teaches that must outlive the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tpudeploy.domain.life import Listed, MachineListed, ServerAnswered, ServerStopped, SliceGranted, not_later_than
from tpudeploy.domain.slices import BootPhase, BootReport, Observed, Phase, Slice
from tpudeploy.domain.state import Attempt, Boot, Record, Refused, State
from tpudeploy.reconcile.failed_landings import doubtful_places, drop_forgiven_landings
from tpudeploy.reconcile.preference import preference_key


def merge_observation(state: State, observed: Observed) -> State:
    """The state with what was seen written into it; the same object where nothing is new."""
    for record in state.records:
        known = _merge_record(record, observed)
        if known != record:
            state = state.with_record(known)
    return state


def _merge_record(record: Record, observed: Observed) -> Record:
    plausible = (_without_future_times(a, observed.at) for a in record.attempts)
    attempts = [_learn(a, observed.slices.get(a.name), observed) for a in plausible]
    refusals = tuple(_refusal_without_future_times(r, observed.at) for r in record.refusals)
    up = [a for a in attempts if (found := observed.slices.get(a.name)) is not None and found.phase is Phase.UP]
    refusals = drop_forgiven_landings(refusals, up, observed.at)
    prefer = partial(preference_key, doubtful=doubtful_places(replace(record, refusals=refusals), observed.at))
    served = _first_served(attempts, observed, prefer)
    standing = [a for a in served if a.holds_slice]
    home = min(standing, key=prefer).zone if standing else record.home
    return replace(record, attempts=served, refusals=refusals, home=home)


def _without_future_times(attempt: Attempt, now: float) -> Attempt:
    """Its times, none later than now: where the clock went back, every wait begins anew, and none lasts until then."""
    life, boot, change = not_later_than(attempt.life, now), attempt.boot, attempt.change
    if boot.at is not None and boot.at > now:
        boot = replace(boot, at=now)
    if change is not None and change.sent_at > now:
        change = replace(change, sent_at=now)
    expires_at = attempt.expires_at
    if expires_at is not None:
        expires_at -= max(0.0, attempt.asked_at - now)
    asked_at = min(attempt.asked_at, now)
    return replace(attempt, asked_at=asked_at, expires_at=expires_at, life=life, boot=boot, change=change)


def _refusal_without_future_times(refused: Refused, now: float) -> Refused:
    ahead = refused.at - now
    if ahead <= 0:
        return refused
    return replace(refused, at=refused.at - ahead, until=refused.until - ahead)


def _learn(attempt: Attempt, found: Slice | None, observed: Observed) -> Attempt:
    if found is None or found.phase is Phase.REFUSED:
        return attempt
    attempt = attempt.after(Listed())
    if found.phase in {Phase.PROVISIONING, Phase.LOST}:
        attempt = attempt.after(MachineListed(provisioning_at=observed.at))
    if found.phase is Phase.UP:
        attempt = attempt.after(SliceGranted(granted_at=observed.at))
    return _answered(attempt, observed.reports.get(attempt.name), observed.at)


def _answered(attempt: Attempt, report: BootReport | None, now: float) -> Attempt:
    """What its node made of the change that it was told: taken over; undone, which is a start of its own."""
    if report is None or not attempt.is_answered_by(report):
        return attempt
    if attempt.boot.server != report.spec or not attempt.boot.is_sent:
        boot = Boot(server=report.spec, at=now, previous=attempt.boot.server)
        attempt = replace(attempt, boot=boot).after(ServerStopped())
    if attempt.is_undone_by(report) and report.phase is BootPhase.SERVING and not attempt.is_failed:
        attempt = replace(attempt, is_failed=True)
    return attempt


def _first_served(
    attempts: list[Attempt], observed: Observed, prefer: Callable[[Attempt], tuple[object, ...]]
) -> tuple[Attempt, ...]:
    """Which clients may hold: what serves, unless another one does already, from which it is yet to take over."""
    answering = [a for a in attempts if (health := observed.health.get(a.name)) is not None and health.serving]
    serving = [a for a in answering if not _awaits_acknowledgement(a)]
    if not serving or any(a.is_announced and a.releasing_at is None for a in attempts):
        return tuple(attempts)
    first = min(serving, key=prefer)
    return tuple(a.after(ServerAnswered()) if a is first else a for a in attempts)


def _awaits_acknowledgement(attempt: Attempt) -> bool:
    """Return whether its node was given another server and has not said yet that it took it over.

    The endpoint answers before the report is read, or although the report was lost: which server answers is not known.
    """
    return attempt.change is not None and attempt.metadata_server != attempt.boot.server
