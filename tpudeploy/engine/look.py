"""One look at the world: every slice a state remembers, what its machine says, whether it serves."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.domain import errors
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import BootPhase, BootReport, Health, Observed, Phase, Slice
from tpudeploy.domain.state import Attempt, State
from tpudeploy.ports import World


def look(
    world: World, state: State, deployment: Deployment | None = None, *, anew: bool = True, patient: bool = False
) -> Observed:
    """Raise `errors.Fault` or `errors.Denied`. Endpoints are probed where a deployment is given.

    `anew` False: what has served before is not asked again. `patient`: a request in a zone that does not answer is
    `unseen`, as long as others can be looked at.
    """
    known = {a.name for a in state.attempts if a.served and not anew}
    refs = {a.name: a.ref for a in state.attempts}
    unseen: Mapping[str, str] = {}
    if patient:
        slices, unseen = _answered(world, state.attempts)
    else:
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
    return Observed(at=world.clock.now(), slices=slices, reports=reports, health=health, unseen=unseen)


def _answered(world: World, attempts: tuple[Attempt, ...]) -> tuple[dict[str, Slice], dict[str, str]]:
    """The slices, and of each that could not be looked at, why.

    One zone's trouble stops no hunt in the others. Where nothing answers it is ours, or Google's, as a whole; and of a
    slice that was granted all must be known.
    """
    slices: dict[str, Slice] = {}
    silent: dict[Zone, errors.Fault] = {}
    unseen: dict[str, str] = {}
    for number, attempt in enumerate(attempts, start=1):
        try:
            if attempt.zone in silent:
                raise silent[attempt.zone]
            slices |= {s.name: s for s in world.cloud.slices([attempt.ref])}
        except errors.Fault as fault:
            silent[attempt.zone] = fault
            unseen[attempt.name] = fault.message
            regions = {zone.region for zone in silent}
            is_no_answer = len(unseen) == number and (number == len(attempts) or len(regions) > 1)
            if attempt.granted_at is not None or is_no_answer:
                raise
    return slices, unseen


def _may_serve(report: BootReport | None) -> bool:
    """A machine that says it is still booting need not be knocked at; one that says nothing must be."""
    return report is None or report.phase in {BootPhase.SERVING, BootPhase.FAILED}
