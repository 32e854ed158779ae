"""Hold a tuning to its money: the search, the requests, and the end of a slice of its own."""

from __future__ import annotations

from dataclasses import replace

from tpudeploy.config.scalars import Duration
from tpudeploy.domain.cost_budget import CostCeiling
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.state import Attempt, State
from tpudeploy.engine.cost_wall import cost_since
from tpudeploy.features.tune.search import FEWEST_PAIRS, SearchBudget, least_usd
from tpudeploy.features.tune.tuning import Tuning, cost_usd
from tpudeploy.loading import Profile
from tpudeploy.operations.endpoint import serving_attempt
from tpudeploy.reconcile.machine_end import LATE, next_deletion
from tpudeploy.reconcile.spend import seconds_beside_end
from tpudeploy.text import words
from tpudeploy.workspace import Workspace

_HOUR = 3600.0
_LEAST_SECONDS = 900.0  # that a slice is requested for
_RESERVE = 2 * LATE  # for the deletion
END = "lifecycle.end"


class TuneFunds:
    """The money of a tuning. A slice of its own costs what the ledger says, also between two runs of the tuning."""

    def __init__(self, workspace: Workspace, profile: Profile) -> None:
        self._workspace = workspace
        self._profile = profile

    def remaining_usd(self, tuning: Tuning) -> float | None:
        """Return the USD that are left; None: any amount."""
        if tuning.budget.limit is None:
            return None
        return max(0.01, tuning.budget.limit - self._cost(tuning))

    def search_budget(self, tuning: Tuning) -> SearchBudget:
        """Return the budget of the search: what is left for measurements, beside those that were made."""
        if tuning.budget.limit is None:
            return tuning.budget
        if tuning.was_there:
            left = self.remaining_usd(tuning) or 0.0
        else:
            left = self._seconds_to_serve(tuning) * (tuning.usd_per_hour or 0.0) / _HOUR
        return replace(tuning.budget, limit=sum(trial.usd for trial in tuning.trials) + left)

    def ceiling(self, tuning: Tuning) -> CostCeiling | None:
        """Return the most that a request may cost together with what was spent; None: any amount."""
        left = self.remaining_usd(tuning)
        if left is None:
            return None
        deployments = frozenset({tuning.deployment})
        if tuning.was_there:
            return CostCeiling(usd=left, since=self._workspace.adapters.clock.now(), deployments=deployments)
        return CostCeiling(usd=tuning.budget.limit or left, since=tuning.began_at, deployments=deployments)

    def with_end(self, tuning: Tuning) -> Profile:
        """Return the profile of a slice of the tuning's own, which ends when the money does."""
        if tuning.was_there or tuning.budget.limit is None or not tuning.usd_per_hour:
            return self._profile
        state, now = self._state(tuning), self._workspace.adapters.clock.now()
        attempt = self._running(tuning)
        since = None if state is None else state.serving_since
        seconds = self._seconds_to_serve(tuning) + (0.0 if since is None else now - since)
        # An end counts from the first slice that served. It is moved once, when the slice has started in time.
        if attempt is not None and seconds < Duration.parse(str(attempt.spec[END])) + _LEAST_SECONDS:
            return self._profile.with_settings([f"{END}={attempt.spec[END]}"])
        return self._profile.with_settings([f"{END}={int(seconds / 60)}m"])

    def _cost(self, tuning: Tuning) -> float:
        if tuning.was_there:
            return cost_usd(tuning)
        adapters = self._workspace.adapters
        return cost_since(adapters.states, [tuning.deployment], tuning.began_at, adapters.clock.now())

    def _running(self, tuning: Tuning) -> Attempt | None:
        """Return its own slice, before its end."""
        state = self._state(tuning)
        attempt = serving_attempt(state)
        if state is None or state.serving_since is None or attempt is None or not attempt.spec.get(END):
            return None
        now = self._workspace.adapters.clock.now()
        return None if next_deletion(attempt, state, now) - LATE <= now else attempt

    def _state(self, tuning: Tuning) -> State | None:
        return self._workspace.adapters.states.read(tuning.deployment).state

    def _seconds_to_serve(self, tuning: Tuning) -> float:
        """Return how long its own slice can serve from now on, or from the start of one that is to be requested."""
        left, price = self.remaining_usd(tuning), tuning.usd_per_hour
        if left is None or not price:
            return 0.0
        if self._running(tuning) is not None:
            return max(0.0, left / price * _HOUR - _RESERVE)
        start = self._workspace.deployment(self._profile, script=False).health.timeout_seconds
        return max(_LEAST_SECONDS, left / price * _HOUR - seconds_beside_end(start))


def check_money(base: Deployment, budget: SearchBudget, price: float | None, *, has_slice: bool) -> None:
    """Check that the money is enough for a tuning, and for a slice of its own if it has none.

    Raise `errors.UsageError`.
    """
    if budget.limit is None:
        return
    if price is None:
        raise UsageError("--max-cost needs a price, and that of this slice is unknown.")
    least, beside = least_usd(budget), seconds_beside_end(base.health.timeout_seconds)
    if budget.limit < least:
        raise UsageError(
            f"A tuning of {base.name} takes at least about ${least:.2f}: one start that compiles, and "
            f"{2 * FEWEST_PAIRS + 2} warm ones at about ${budget.warm:.2f} each with their measurement.",
            hint="Use a higher --max-cost, or a shorter load: --window, fewer --concurrency.",
        )
    needed = least + beside / _HOUR * price
    if not has_slice and budget.limit < needed:
        raise UsageError(
            f"A tuning of {base.name} on a slice of its own takes at least ${needed:.2f}: about ${least:.2f} for the "
            f"measurements, and up to {words.duration(beside)} at ${price:.2f}/h until it serves and is deleted.",
            hint=f"Use a higher --max-cost, a shorter health.timeout, or tune {base.name} while it serves.",
        )
