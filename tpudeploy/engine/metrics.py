"""The current figures of every machine of a deployment. It takes no lock and changes nothing."""

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
from tpudeploy.metrics.readings import readings
from tpudeploy.ports import Meter, World


def read_metrics(world: World, meter: Meter, deployment: Deployment) -> tuple[Metered, ...]:
    """Return the readings of each machine.

    Raise `errors.StateError` without a machine, `errors.Fault` or `errors.Denied` where they cannot be observed.
    """
    state = world.state.read(deployment.name).state
    granted = [
        (record.index, attempt)
        for record in (() if state is None else state.records)
        for attempt in record.attempts
        if attempt.holds_slice
    ]
    if not granted:
        raise StateError(
            f"{deployment.name} has no machine to read metrics from.",
            hint="Run `tpudeploy apply` first; `tpudeploy status` shows its progress.",
        )
    refs = [attempt.ref for _, attempt in granted]
    budget = world.patience.faults_at_plan
    observed = retry_on_fault(world, deployment.name, lambda: world.cloud.slices(refs), budget=budget)
    slices = {slice_.name: slice_ for slice_ in observed}

    def read(replica: int, slice_: Slice | None) -> Metered:
        where = address(deployment.name, replica)
        if slice_ is None:
            return Metered(address=where, url="", silent="its machine no longer exists")
        return to_readings(where, *meter.figures(deployment, slice_), deployment.budget)

    return tuple(together(world.threads, lambda pair: read(pair[0], slices.get(pair[1].name)), granted))


def to_readings(where: str, url: str, figures: Figures | Unknown, budget: HbmBudget | Unsized | None = None) -> Metered:
    """Return an engine's report in words; `budget` is that of its profile, for the remedies."""
    if isinstance(figures, Unknown):
        return Metered(address=where, url=url, silent=figures.because)
    silent = (
        "" if figures.running is not None else "the engine keeps no statistics (--disable-log-stats), or is not vLLM"
    )
    return Metered(address=where, url=url, readings=readings(figures, budget), silent=silent)
