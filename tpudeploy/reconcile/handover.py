"""Hand-overs without a lost request: what takes over from a slice that serves, and when that one may go.

    asked for ─▶ serves ─▶ clients are sent there ─▶ the old one is drained ─▶ it is given back

Blue-green makes one of a serving change, `on_run_end: renew` one of a run that ends; a slice change drains likewise.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.errors import GivenUpUpdate, ServingError
from tpudeploy.domain.names import address
from tpudeploy.domain.state import Attempt, State
from tpudeploy.node.fingerprint import server_print
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.fate import Fate, Judged, Moment, judge
from tpudeploy.reconcile.serve import Standing, remedy
from tpudeploy.reconcile.wanted import wanted

_HOUR = 3600.0
# Of a run, that a successor may cut short: where more would be needed to be in time, one would always be asked for.
_MOST = 0.5


def is_handed_over(deployment: Deployment, attempt: Attempt) -> bool:
    """Whether a slice that could stay as it is gives way to a second one, whatever `lifecycle.replace` says."""
    return is_blue(deployment, attempt) or (attempt.is_ending and deployment.lifecycle.renew)


def is_blue(deployment: Deployment, attempt: Attempt) -> bool:
    """Whether its server is not the one that is wanted, and must not be touched while clients may hold it.

    What has not served yet is nobody's: it is brought up with the new server in place. A restart that was written down,
    but not asked for, has not ended the server before.
    """
    if not deployment.lifecycle.blue_green or not attempt.served:
        return False
    return not attempt.boot_asked or attempt.booted != server_print(wanted(deployment, attempt))


def drains_for(attempt: Attempt, moment: Moment) -> float:
    """Seconds at most until what clients were sent away from may go: 0 once none of them can miss it.

    Nobody holds its endpoint any more after `Patience.drain`; what it still runs then is waited for, within bounds.
    """
    patience = moment.patience
    since = 0.0 if attempt.draining_at is None else moment.now - attempt.draining_at
    if since >= patience.drain and not moment.observed.running.get(attempt.name):
        return 0.0
    most = patience.drained if moment.observed.running.get(attempt.name) else patience.drain
    return max(0.0, max(most, patience.drain) - since)


def serves(judged: Judged, moment: Moment) -> bool:
    """Whether clients can be sent there: it stands, was given to them before, and answers."""
    health = moment.observed.health.get(judged.attempt.name)
    return judged.fate is Fate.UP and judged.attempt.served and health is not None and health.serving


def ends_at(attempt: Attempt, moment: Moment) -> float | None:
    """When Google ends its run, in seconds since the epoch; None where nothing but a person does.

    Google's own word. Where it gives none, counted from the look that found it granted, which may be late.
    """
    found = moment.observed.slices.get(attempt.name)
    if found is not None and found.ends_at is not None:
        return found.ends_at
    hours = prices.run_hours(attempt)
    return None if hours is None or attempt.granted_at is None else attempt.granted_at + hours * _HOUR


def is_due(deployment: Deployment, attempt: Attempt, moment: Moment) -> bool:
    """Whether a successor has to be asked for now, to take over before the run ends."""
    ends, hours = ends_at(attempt, moment), prices.run_hours(attempt)
    if not deployment.lifecycle.renew or not attempt.served or ends is None or hours is None:
        return False
    return moment.now >= ends - min(_lead(deployment, moment), _MOST * hours * _HOUR)


def _lead(deployment: Deployment, moment: Moment) -> float:
    """What a hand-over takes, in seconds: a slice, a start, a drain."""
    budget = deployment.budget
    start = budget.start.cold_seconds if isinstance(budget, HbmBudget) else deployment.health.timeout_seconds
    waits = max(moment.patience.acquisition, moment.acquisition)
    return waits + start + moment.patience.drained


def given_up(standing: Standing, old: Attempt, *, cause: str) -> ServingError:
    """What to say of a slice that does not come up, while the one that it was to take over from goes on serving.

    Both are kept: the chips of the new one are as scarce as any, and the next apply goes on with them.
    """
    deployment, attempt = standing.deployment, standing.attempt
    usd = [prices.of_attempt(attempt), prices.of_attempt(old)]
    cost = "at an unknown price" if None in usd else f"at about ${sum(u for u in usd if u is not None):.2f}/h together"
    where = address(deployment.name, standing.replica)
    what_to_do = "Run `tpudeploy apply` again: it starts the new one once more, as the profile then says."
    if is_blue(deployment, old):
        what_to_do = (
            "Mend the cause and run `tpudeploy apply` again: it goes on with the new one. Undo the change instead, and "
            "it gives that one back."
        )
    return GivenUpUpdate(
        f"{where} does not serve on its new slice: {cause}\n{where} goes on serving as it was: {old.name} was not"
        " touched, and clients are still sent there.",
        hint=f"{remedy(deployment, cause)}The new slice {attempt.name} in {attempt.zone} is kept. Both are billed, "
        f"{cost}.\n{what_to_do}",
    )


def due(deployment: Deployment, state: State, moment: Moment) -> tuple[str, ...]:
    """The slices for which a successor has to be asked for now."""
    standing = [a for a in state.attempts if judge(a, moment).fate is Fate.UP and a.draining_at is None]
    return tuple(a.name for a in standing if a.is_ending or is_due(deployment, a, moment))


def ending(state: State, names: Collection[str]) -> State:
    """`state` in which a successor may be asked for in the place of each of these slices."""
    for record in state.records:
        for attempt in record.attempts:
            if attempt.name in names and not attempt.is_ending:
                record = record.with_attempt(replace(attempt, is_ending=True))  # noqa: PLW2901 - one after the other
        state = state.with_record(record)
    return state
