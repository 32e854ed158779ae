"""What the machines of a deployment printed while they booted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tpudeploy.domain.errors import StateError
from tpudeploy.engine.retry import looking_again
from tpudeploy.ports import Logs, World


def logs(world: World, source: Logs, name: str) -> Mapping[str, tuple[str, ...]]:
    """Slice → lines; those that were granted. Raise `errors.StateError`, `errors.Fault` or `errors.Denied`."""
    state = world.state.read(name).state
    granted = [] if state is None else [a for a in state.attempts if a.granted_at is not None]
    if not granted:
        raise StateError(
            f"{name} has no machine that could have a log.", hint="Run `tpudeploy status` to see how far it is."
        )
    budget = world.patience.faults_at_plan
    return {a.name: looking_again(world, name, partial(source.lines, a.ref), budget=budget) for a in granted}
