"""What a plan is about: all of its deployments as they are, unless a person said otherwise."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import Address
from tpudeploy.domain.plan import Mode
from tpudeploy.domain.state import State
from tpudeploy.planning.targets import Targets, replicas, to_go


@frozen
class Scope:
    """What a plan is about. `refresh` False: the world is taken to be as the states remember it."""

    mode: Mode = Mode.NORMAL
    adopt: bool = False
    refresh: bool = True
    replace: tuple[Address, ...] = ()
    target: tuple[Address, ...] = ()


@frozen
class Extent:
    """One deployment's share of a scope: which replicas it is about, and which of them are to be replaced."""

    targets: Targets = None
    replaces: Targets = ()

    def to_go(self, state: State) -> tuple[str, ...]:
        """The slices that another is to take the place of."""
        records = [r for r in state.records if self.replaces is None or r.index in self.replaces]
        return tuple(name for record in records for name in to_go(record))


def extents_of(scope: Scope, known: Collection[Deployment], states: Mapping[str, State]) -> dict[str, Extent]:
    """Of every deployment that the plan is about. Raise `errors.UsageError`."""
    targets = replicas(scope.target, known, states) if scope.target else {d.name: None for d in known}
    replaced = replicas(scope.replace, [d for d in known if d.name in targets], states)
    return {name: Extent(targets=which, replaces=replaced.get(name, ())) for name, which in targets.items()}
