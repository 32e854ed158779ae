"""Merge an observation into the state, and make one from the state alone where the cloud is not observed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tpudeploy.domain.life import Listed, MachineListed, ServerAnswered, ServerStopped, SliceGranted, not_later_than
from tpudeploy.domain.slices import BootPhase, BootReport, Observed, Phase, Slice
from tpudeploy.domain.state import Attempt, Boot, Record, RefusalRecord, State
from tpudeploy.node.node_facts import SPEC_KEY
from tpudeploy.reconcile.failed_landings import doubtful_places, drop_forgiven_landings
from tpudeploy.reconcile.preference import preference_key


def merge_observation(state: State, observed: Observed) -> State:
    """Return the state with the observation in it; the same object where nothing is new, so nothing is saved."""
    for record in state.all_records:
        merged = _merge_record(record, observed)
        if merged != record:
            state = state.with_record(merged)
    return state


def cached_observation(state: State, now: float) -> Observed:
    """Return the observation that shows each slice as it was last seen. For plans only: apply observes the cloud."""
    slices: dict[str, Slice] = {}
    for attempt in state.attempts:
        phase = Phase.QUEUED if attempt.granted_at is None else Phase.UP
        slices[attempt.name] = Slice(
            name=attempt.name,
            zone=attempt.zone,
            phase=phase if attempt.releasing_at is None else Phase.LEAVING,
            raw_state="not observed",
            provisioning=attempt.provisioning,
            metadata={SPEC_KEY: attempt.metadata_server},
        )
    return Observed(at=now, slices=slices)


def _merge_record(record: Record, observed: Observed) -> Record:
    now, slices = observed.at, observed.slices
    attempts = [_merge_slice(_without_future_times(a, now), observed) for a in record.attempts]
    up = [a for a in attempts if a.name in slices and slices[a.name].phase is Phase.UP]
    refusals = (_refusal_without_future_times(r, now) for r in record.refusals)
    record = replace(record, refusals=drop_forgiven_landings(refusals, up, now))
    prefer = partial(preference_key, doubtful=doubtful_places(record, now))
    attempts = _announce(attempts, observed, prefer)
    holding = [a for a in attempts if a.holds_slice]
    home = min(holding, key=prefer).zone if holding else record.home
    return replace(record, attempts=tuple(attempts), home=home)


def _announce(
    attempts: list[Attempt], observed: Observed, prefer: Callable[[Attempt], tuple[object, ...]]
) -> list[Attempt]:
    """Return the attempts with the slice marked that clients may use from now on."""
    # Clients keep the slice that they use until it drains. What takes over from it is announced at the cutover.
    if any(a.is_announced and a.releasing_at is None for a in attempts):
        return attempts
    first = min((a for a in attempts if _serves_known_server(a, observed)), key=prefer, default=None)
    return [a.after(ServerAnswered()) if a is first else a for a in attempts]


def _without_future_times(attempt: Attempt, now: float) -> Attempt:
    """Return the attempt with no time after `now`: where the clock went back, each wait begins again."""
    boot, change, expires_at = attempt.boot, attempt.change, attempt.expires_at
    if boot.at is not None:
        boot = replace(boot, at=min(boot.at, now))
    if change is not None:
        change = replace(change, sent_at=min(change.sent_at, now))
    if expires_at is not None:
        expires_at -= max(0.0, attempt.asked_at - now)
    asked_at, life = min(attempt.asked_at, now), not_later_than(attempt.life, now)
    return replace(attempt, asked_at=asked_at, expires_at=expires_at, life=life, boot=boot, change=change)


def _refusal_without_future_times(refused: RefusalRecord, now: float) -> RefusalRecord:
    """Return the refusal with no start after `now`. It holds for as long as it did."""
    ahead = max(0.0, refused.at - now)
    return replace(refused, at=refused.at - ahead, until=refused.until - ahead)


def _merge_slice(attempt: Attempt, observed: Observed) -> Attempt:
    """Return the attempt with what the cloud and its node show of it."""
    current = observed.slices.get(attempt.name)
    # A 404 may be late visibility, a failed create lists nothing, and an operation is no sighting. `classify` decides
    # what each means.
    if current is None or current.phase is Phase.REFUSED or current.operation is not None:
        return attempt
    attempt = attempt.after(Listed())
    # Google lists a granted slice whose node is not visible yet like one whose node is gone. Either had a machine.
    if current.phase in {Phase.PROVISIONING, Phase.LOST}:
        attempt = attempt.after(MachineListed(provisioning_at=observed.at))
    if current.phase is Phase.UP:
        attempt = attempt.after(SliceGranted(granted_at=observed.at))
    return _merge_report(attempt, observed.reports.get(attempt.name), observed.at)


def _merge_report(attempt: Attempt, report: BootReport | None, now: float) -> Attempt:
    """Return the attempt with what its node made of the last change: applied, or undone, which is another start."""
    # A report without this change's name is about an earlier start: the state knows it already (decision 46).
    if report is None or not attempt.is_answered_by(report):
        return attempt
    # The node stopped the previous server for this start, so clients wait until the new one answers.
    if attempt.boot.server != report.spec or not attempt.boot.is_sent:
        boot = Boot(server=report.spec, at=now, previous=attempt.boot.server)
        attempt = replace(attempt, boot=boot).after(ServerStopped())
    # The previous server serves again, so the change has ended. A later run may send it again.
    if attempt.is_undone_by(report) and report.phase is BootPhase.SERVING:
        attempt = replace(attempt, is_failed=True)
    return attempt


def _serves_known_server(attempt: Attempt, observed: Observed) -> bool:
    """Return whether its endpoint answered, and it is known which server answered."""
    if not observed.serves(attempt.name):
        return False
    # A node that was given another server may still run the previous one: the endpoint can answer before its report
    # is read, or although the report was lost.
    return attempt.change is None or attempt.metadata_server == attempt.boot.server
