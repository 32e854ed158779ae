"""What the machines of a deployment printed while they booted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from tpudeploy.domain.errors import CloudError, StateError
from tpudeploy.engine.retry import looking_again
from tpudeploy.ports import Logs, World


def logs(
    world: World, source: Logs, name: str, on_unreadable: Callable[[str, CloudError], None] | None = None
) -> Mapping[str, tuple[str, ...]]:
    """Slice → lines; those that were granted. Raise `errors.StateError`, `errors.Fault` or `errors.Denied`.

    With `on_unreadable`, a log that cannot be read hides no other: it is told of, and raised only where none can be.
    """
    state = world.state.read(name).state
    granted = [] if state is None else [a for a in state.attempts if a.granted_at is not None]
    if not granted:
        raise StateError(
            f"{name} has no machine that could have a log.", hint="Run `tpudeploy status` to see how far it is."
        )
    budget = world.patience.faults_at_plan
    found: dict[str, tuple[str, ...]] = {}
    unreadable: dict[str, CloudError] = {}
    for attempt in granted:
        try:
            found[attempt.name] = looking_again(world, name, partial(source.lines, attempt.ref), budget=budget)
        except CloudError as error:
            if on_unreadable is None:
                raise
            unreadable[attempt.name] = error
    if not found:
        raise next(iter(unreadable.values()))
    for slice_name, cause in unreadable.items():
        assert on_unreadable is not None
        on_unreadable(slice_name, cause)
    return found
