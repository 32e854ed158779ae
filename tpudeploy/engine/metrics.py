"""Every machine of a deployment, asked for its figures of this moment. Takes no lock and changes nothing."""

from __future__ import annotations

from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.errors import StateError
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.metrics import Figures, Metered
from tpudeploy.domain.names import address
from tpudeploy.domain.slices import Slice
from tpudeploy.domain.together import together
from tpudeploy.engine.retry import retry_on_fault
from tpudeploy.metrics.metrics import readings
from tpudeploy.ports import Meter, World


def metered(world: World, meter: Meter, deployment: Deployment) -> tuple[Metered, ...]:
    """Raise `errors.StateError` where it has no machine, `errors.Fault` or `errors.Denied` where it cannot be seen."""
    state = world.state.read(deployment.name).state
    held = [
        (record.index, attempt)
        for record in (() if state is None else state.records)
        for attempt in record.attempts
        if attempt.holds_slice
    ]
    if not held:
        raise StateError(
            f"{deployment.name} has no machine that could be asked.",
            hint="Run `tpudeploy apply` first; `tpudeploy status` says how far it is.",
        )
    budget = world.patience.faults_at_plan
    look = [attempt.ref for _, attempt in held]
    found = retry_on_fault(world, deployment.name, lambda: world.cloud.slices(look), budget=budget)
    slices = {each.name: each for each in found}

    def ask(replica: int, slice_: Slice | None) -> Metered:
        where = address(deployment.name, replica)
        if slice_ is None:
            return Metered(address=where, url="", silent="its machine is gone")
        return judged(where, *meter.figures(deployment, slice_), deployment.budget)

    return tuple(together(world.threads, lambda each: ask(each[0], slices.get(each[1].name)), held))


def judged(where: str, url: str, told: Figures | Unknown, budget: HbmBudget | Unsized | None = None) -> Metered:
    """Return what the engine reports, in words; what to do is computed with the profile's `budget`."""
    if isinstance(told, Unknown):
        return Metered(address=where, url=url, silent=told.because)
    found = readings(told, budget)
    silent = "" if told.running is not None else "the engine keeps no statistics (--disable-log-stats), or is no vLLM"
    return Metered(address=where, url=url, readings=found, silent=silent)
