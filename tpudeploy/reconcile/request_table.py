"""The table of one replica's requests in each place, and the text that describes one request. For display only."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.boot_log.stage import stage, unreported
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.deployment import Candidate, Deployment
from tpudeploy.domain.request_table import PlaceState, PlaceStatus
from tpudeploy.domain.slices import Observed, Phase, Slice
from tpudeploy.domain.state import Attempt, Record, RefusalRecord
from tpudeploy.domain.status import BootStage
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.attempt_status import BILLED, AttemptStatus, Classification, DecisionContext, classify
from tpudeploy.reconcile.decide import matches
from tpudeploy.reconcile.placement import sweep_resumes_at
from tpudeploy.reconcile.refusals import closes, standing_refusals

_MINUTE, _HOUR = 60.0, 3600.0
_LONGEST_IN_MINUTES = 2 * _HOUR
# Any other phase of a waiting request counts as provisioning: its machine is late (lost, or not visible yet).
_WAITING = {Phase.CREATING: PlaceState.ASKED, Phase.QUEUED: PlaceState.QUEUED}


def request_table(deployment: Deployment | None, record: Record, context: DecisionContext) -> tuple[PlaceStatus, ...]:
    """Return the places of a replica's requests and, while it has no slice, the places that may be requested next.

    Without a deployment, nothing more is requested.
    """
    over = {AttemptStatus.GONE, AttemptStatus.REFUSED}
    classifications = [classify(attempt, context) for attempt in record.attempts]
    classifications = [each for each in classifications if each.status not in over]
    places = tuple(_requested_place(each, deployment, context.observed) for each in classifications)
    # A removal requests nothing more, and neither does a replica that has its slice.
    if deployment is None or any(
        each.status is AttemptStatus.UP and matches(deployment, each.attempt) for each in classifications
    ):
        return places
    return (*places, *_other_places(deployment, record, classifications, context))


def boot_stage(classification: Classification, observed: Observed, budget: HbmBudget | Unsized) -> BootStage | None:
    """Return how far a boot is: as its machine reports, or as planned for as long as it does not serve."""
    attempt = classification.attempt
    report, health = observed.reports.get(attempt.name), observed.health.get(attempt.name)
    if report is not None:
        return stage(report, budget, now=observed.at)
    if classification.status is not AttemptStatus.UP or attempt.granted_at is None or health is None or health.serving:
        return None
    return unreported(budget, granted_at=attempt.granted_at, now=observed.at)


def _requested_place(classification: Classification, deployment: Deployment | None, observed: Observed) -> PlaceStatus:
    attempt, state = classification.attempt, _state(classification)
    boot = None
    if deployment is not None and state is PlaceState.UP:
        boot = boot_stage(classification, observed, deployment.budget)
    health = observed.health.get(attempt.name)
    since, until = _interval(state, attempt, classification.slice)
    return PlaceStatus(
        zone=attempt.zone,
        provisioning=attempt.provisioning,
        backend=attempt.backend,
        state=state,
        name=attempt.name,
        why=attempt.release_reason or _last_message(classification, observed),
        since=since,
        until=until,
        usd_per_hour=prices.usd_per_hour(attempt),
        billed_since=attempt.granted_at if classification.status in BILLED else None,
        stage=boot,
        serving=None if health is None else health.serving,
    )


def _last_message(classification: Classification, observed: Observed) -> str:
    """Return the last message of the machine, else of Google; "" for a request that is not visible yet."""
    report = observed.reports.get(classification.attempt.name)
    if classification.status is AttemptStatus.UP and report is not None:
        return report.detail or report.phase
    if classification.slice is not None:
        return classification.slice.raw_state
    return "" if classification.status is AttemptStatus.HIDDEN else classification.reason


def _state(classification: Classification) -> PlaceState:
    match classification.status:
        case AttemptStatus.HIDDEN:
            return PlaceState.ASKED
        case AttemptStatus.WAITING if classification.slice is not None:
            return _WAITING.get(classification.slice.phase, PlaceState.PROVISIONING)
        case AttemptStatus.WAITING:  # Its zone does not answer, so the state decides.
            return PlaceState.QUEUED if classification.attempt.provisioning_at is None else PlaceState.PROVISIONING
        case AttemptStatus.UP:
            return PlaceState.UP
    return PlaceState.LEAVING


def _interval(state: PlaceState, attempt: Attempt, current: Slice | None) -> tuple[float | None, float | None]:
    """Return when the state of a place began, and when it ends at the latest."""
    match state:
        case PlaceState.UP:
            return attempt.granted_at, None if current is None else current.ends_at
        case PlaceState.PROVISIONING:
            return attempt.provisioning_at, None
        case PlaceState.LEAVING:
            return attempt.releasing_at, None
    return attempt.asked_at, attempt.expires_at


def _other_places(
    deployment: Deployment, record: Record, classifications: list[Classification], context: DecisionContext
) -> Iterator[PlaceStatus]:
    requested_places = {j.attempt.place for j in classifications}
    waiting = [j.attempt for j in classifications if j.status in {AttemptStatus.HIDDEN, AttemptStatus.WAITING}]
    for candidate in deployment.candidates:
        if candidate.place not in requested_places:
            refused = _last_refusal(deployment, record, candidate, context)
            resumes_at = sweep_resumes_at(candidate, record, waiting)
            yield _other_place(candidate, prices.usd_per_hour_at(deployment, candidate), refused, resumes_at)


def _last_refusal(
    deployment: Deployment, record: Record, candidate: Candidate, context: DecisionContext
) -> RefusalRecord | None:
    """Return the last active refusal that closes a place, else the last one of the place itself that has lapsed."""
    chips = deployment.accelerator.chips
    active = standing_refusals(deployment.candidates, record, context.now, context.patience)
    closing = [r for r in active if closes(r, candidate, chips, record.attempts)]
    own = [r for r in record.refusals if r.place == candidate.place]
    return max(closing or own, key=lambda r: r.until, default=None)


def _other_place(
    candidate: Candidate, usd_per_hour: float | None, refused: RefusalRecord | None, sweep_resumes: float | None
) -> PlaceStatus:
    # Nothing is known against it; it is requested as soon as one more request is allowed.
    if refused is None:
        return PlaceStatus(
            zone=candidate.zone,
            provisioning=candidate.provisioning,
            backend=candidate.backend,
            state=PlaceState.FREE,
            until=sweep_resumes,
            usd_per_hour=usd_per_hour,
        )
    return PlaceStatus(
        zone=candidate.zone,
        provisioning=candidate.provisioning,
        backend=candidate.backend,
        state=PlaceState.REFUSED,
        why=refused.message,
        kind=refused.kind,
        since=refused.at,
        until=refused.until if sweep_resumes is None else max(refused.until, sweep_resumes),
        usd_per_hour=usd_per_hour,
    )


def describe_request(attempt: Attempt, now: float) -> str:
    """Return the text of a request that a run leaves behind: when it lapses, and what it may cost.

    `gemma-00000000-0-0 (us-east5-a, spot): lapses in 90 min; if granted, $1.40/h`.
    """
    facts = []
    if attempt.releasing_at is not None:
        facts.append("abandoned, deletion pending")
    elif attempt.granted_at is None and attempt.provisioning_at is None and attempt.expires_at is not None:
        facts.append(f"lapses in {_format_span(attempt.expires_at - now)}")
    if attempt.granted_at is not None:
        facts.append(_format_cost(attempt))
    elif attempt.releasing_at is None:
        facts.append(f"if granted, {_format_cost(attempt)}")
    return f"{attempt.name} ({attempt.place}): {'; '.join(facts)}"


def _format_cost(attempt: Attempt) -> str:
    usd_per_hour, usd_per_run = prices.usd_per_hour(attempt), prices.usd_per_run(attempt)
    if usd_per_hour is None:
        return "at an unknown price"
    if usd_per_run is None:
        return f"${usd_per_hour:.2f}/h"
    return f"${usd_per_hour:.2f}/h, at most ${usd_per_run:.2f} in its {attempt.spec['placement.max_run_duration']}"


def _format_span(seconds: float) -> str:
    positive = max(0.0, seconds)
    return f"{positive / _MINUTE:.0f} min" if positive <= _LONGEST_IN_MINUTES else f"{positive / _HOUR:.0f} h"
