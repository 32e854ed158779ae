"""One look at the world: every slice a state remembers, what its machine says, whether it serves."""

from __future__ import annotations

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.slices import BootPhase, BootReport, Health, Observed, Phase
from tpudeploy.domain.state import State
from tpudeploy.ports import World


def look(world: World, state: State, deployment: Deployment | None = None, *, anew: bool = True) -> Observed:
    """Raise `errors.Fault` or `errors.Denied`. Endpoints are probed where a deployment is given.

    `anew` False: what has served before is not asked again.
    """
    known = {a.name for a in state.attempts if a.served and not anew}
    refs = {a.name: a.ref for a in state.attempts}
    slices = {s.name: s for s in world.cloud.slices(refs.values())}
    reports: dict[str, BootReport] = {}
    health: dict[str, Health] = {}
    for name, found in slices.items():
        if found.phase is not Phase.UP:
            continue
        report = world.cloud.report(refs[name])
        if report is not None:
            reports[name] = report
        if deployment is not None and name not in known and _may_serve(report):
            health[name] = world.probe.health(deployment, found, report)
    return Observed(at=world.clock.now(), slices=slices, reports=reports, health=health)


def _may_serve(report: BootReport | None) -> bool:
    """A machine that says it is still booting need not be knocked at; one that says nothing must be."""
    return report is None or report.phase in {BootPhase.SERVING, BootPhase.FAILED}
