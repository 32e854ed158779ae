"""The current figures of every machine of a deployment. It takes no lock and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.errors import StateError
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.metrics import EngineFigures, Grade, Metered, Metrics, Reading, combined
from tpudeploy.domain.names import address
from tpudeploy.domain.slices import Slice
from tpudeploy.domain.together import together
from tpudeploy.engine.retry import retry_on_fault
from tpudeploy.metrics.readings import readings
from tpudeploy.ports import Meter, World


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFigures:
    """The figures of one server, by the address of its replica."""

    address: str
    url: str
    figures: EngineFigures | Unknown


def read_metrics(world: World, meter: Meter, deployment: Deployment) -> Metrics:
    """Return the readings of each machine, and of several together. Raise as `server_figures` does."""
    return to_metrics({deployment.name: server_figures(world, meter, deployment)}, deployment.budget)


def server_figures(world: World, meter: Meter, deployment: Deployment) -> tuple[ServerFigures, ...]:
    """Return the figures of each machine.

    Raise `errors.StateError` without a machine, `errors.Fault` or `errors.Denied` where they cannot be observed.
    """
    state = world.state.read(deployment.name).state
    attempts = state.indexed_slice_attempts if state is not None else ()
    granted = [(index, attempt) for index, attempt in attempts if attempt.holds_slice]
    if not granted:
        raise StateError(
            f"{deployment.name} has no machine to read metrics from.",
            hint="Run `tpudeploy apply` first; `tpudeploy status` shows its progress.",
        )
    refs = [attempt.ref for _, attempt in granted]
    budget = world.patience.faults_at_plan
    observed = retry_on_fault(world, deployment.name, lambda: world.cloud.slices(refs), budget=budget)
    slices = {slice_.name: slice_ for slice_ in observed}

    def read(replica: int, slice_: Slice | None) -> ServerFigures:
        where = address(deployment.name, replica)
        if slice_ is None:
            return ServerFigures(address=where, url="", figures=Unknown(because="its machine no longer exists"))
        url, figures = meter.figures(deployment, slice_)
        return ServerFigures(address=where, url=url, figures=figures)

    return tuple(together(world.threads, lambda pair: read(pair[0], slices.get(pair[1].name)), granted))


def to_metrics(answers: Mapping[str, Sequence[ServerFigures]], budget: HbmBudget | Unsized | None = None) -> Metrics:
    """Return the answers of servers in words, by deployment, with the total of each one that has several servers."""
    replicas = [
        to_readings(each.address, each.url, each.figures, budget) for of_one in answers.values() for each in of_one
    ]
    totals = [_total(name, of_one) for name, of_one in answers.items() if len(of_one) > 1]
    return Metrics(replicas=tuple(replicas), totals=tuple(totals))


def _total(name: str, answers: Sequence[ServerFigures]) -> Metered:
    """Return the sum of the servers that answer. What to do about a figure is said at the server that has it."""
    servers = [each.figures for each in answers if isinstance(each.figures, EngineFigures)]
    missing = ", ".join(each.address for each in answers if isinstance(each.figures, Unknown))
    silent = f"without {missing}, which could not be read" if missing else ""
    if not servers:
        return Metered(address=name, url="", silent=silent, observed=False)
    return Metered(address=name, url="", readings=tuple(map(_as_total, readings(combined(servers)))), silent=silent)


def _as_total(reading: Reading) -> Reading:
    says = "of the fullest replica" if reading.name == "kv_cache_used" else reading.says
    grade = Grade.PLAIN if reading.grade is Grade.WARN else reading.grade
    return replace(reading, grade=grade, says=says, hint="")


def to_readings(
    where: str, url: str, figures: EngineFigures | Unknown, budget: HbmBudget | Unsized | None = None
) -> Metered:
    """Return an engine's report in words; `budget` is that of its profile, for the remedies."""
    if isinstance(figures, Unknown):
        return Metered(address=where, url=url, silent=figures.because, observed=False)
    silent = (
        "" if figures.running is not None else "the engine keeps no statistics (--disable-log-stats), or is not vLLM"
    )
    return Metered(address=where, url=url, readings=readings(figures, budget), silent=silent)
