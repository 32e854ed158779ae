"""Change the number of replicas of a deployment that is kept alive, within the bounds that were approved.

The new number is saved before anything is requested or released, so that a run that is killed continues with it.
"""

from __future__ import annotations

from dataclasses import replace

from tpudeploy.domain import events
from tpudeploy.domain.deployment import Deployment, Scale
from tpudeploy.domain.plan import Goal
from tpudeploy.domain.slices import Observed
from tpudeploy.domain.state import ScalingStep, State
from tpudeploy.engine.session import StateSession
from tpudeploy.ports import World
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.readiness import ready_slices
from tpudeploy.reconcile.replicas import choose_indexes
from tpudeploy.reconcile.scaling import Demand, Trend, decide_scale
from tpudeploy.sizing.serve import places_of


class Scaler:
    """Scales one deployment. It remembers for how long its load has had one tendency."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._trend = Trend()
        self._obstacle = ""

    def goal_after(self, session: StateSession, goal: Goal, observed: Observed) -> Goal:
        """Return the goal with the replicas that the load needs, which the state has then.

        Raise `errors.StateError` or `errors.Fault` if the state cannot be written.
        """
        deployment = goal.deployment
        scale = None if deployment is None else deployment.scale
        # A plan for a part of the replicas decides nothing about their number.
        if deployment is None or scale is None or goal.targets is not None:
            return goal
        state = session.state
        # Another run for the same profile may have scaled it.
        deployment = replace(deployment, indexes=state.replicas or deployment.replica_indexes)
        before = len(deployment.replica_indexes)
        decision = decide_scale(scale, self._demand(deployment, scale, state, observed))
        self._trend = decision.trend
        if decision.replicas == before:
            self._report_obstacle(goal.name, decision.why)
            return replace(goal, deployment=deployment)
        self._obstacle = ""
        indexes = choose_indexes(decision.replicas, replace(state, replicas=deployment.replica_indexes), observed)
        now = self._world.clock.now()
        step = ScalingStep(at=now, before=before, after=decision.replicas, why=decision.why)
        session.save(replace(state, replicas=indexes, scaled=step))
        self._world.emit(
            events.Scaled(at=now, address=goal.name, before=before, after=decision.replicas, why=decision.why)
        )
        return replace(goal, deployment=replace(deployment, indexes=indexes))

    def _demand(self, deployment: Deployment, scale: Scale, state: State, observed: Observed) -> Demand:
        indexes = deployment.replica_indexes
        serving = [name for name, replica in ready_slices(state, observed).items() if replica in indexes]
        return Demand(
            replicas=len(indexes),
            least=max(scale.min, deployment.on_demand_floor),
            loads=[observed.loads.get(name) for name in serving],
            places=places_of(deployment),
            usd_per_hour_next=prices.usd_per_hour_with_another(deployment, state, indexes),
            trend=self._trend,
            scaled_at=None if state.scaled is None else state.scaled.at,
            now=observed.at,
        )

    def _report_obstacle(self, name: str, why: str) -> None:
        """Report once why no replica is added although the load asks for one."""
        if why and why != self._obstacle:
            message = f"The load needs another replica, but {why}."
            hint = "Raise the ceiling and apply again, or leave it: the replicas that there are serve on."
            self._world.emit(events.Warned(at=self._world.clock.now(), address=name, message=message, hint=hint))
        self._obstacle = why
