"""What features run beside the deployments of an apply or a destroy. Their row in the table of features names them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from tpudeploy import feature_table
from tpudeploy.domain.errors import Interrupted
from tpudeploy.domain.events import Event
from tpudeploy.domain.plan import Plan
from tpudeploy.ports import World
from tpudeploy.wiring import Adapters


class RunCompanion(Protocol):
    """Runs beside the deployments, delays none of them, and raises nothing but `errors.Interrupted`."""

    def heard(self, event: Event) -> None:
        """Take note of an event of the run, from any thread."""
        ...

    def begin(self, world: World) -> None:
        """Begin, before anything of the plan does."""
        ...

    def step(self) -> float | None:
        """See `engine.schedule.ScheduledRun`."""
        ...

    def end(self, world: World, *, is_interrupted: bool) -> None:
        """End, after everything of the plan has, however that was."""
        ...


def companions_of(adapters: Adapters, plan: Plan) -> tuple[RunCompanion, ...]:
    """Return what runs beside the deployments of a plan."""
    every = (module.companion(adapters, plan) for module in feature_table.modules("companion"))
    return tuple(each for each in every if each is not None)


def heard_by(
    companions: Iterable[RunCompanion], on_event: Callable[[Event], None] | None
) -> Callable[[Event], None] | None:
    """Return `on_event` with what the companions hear."""
    companions = tuple(companions)
    if not companions:
        return on_event

    def hear(event: Event) -> None:
        for each in companions:
            each.heard(event)
        if on_event is not None:
            on_event(event)

    return hear


@contextmanager
def accompanied(world: World, companions: Iterable[RunCompanion]) -> Iterator[None]:
    """Let the companions of a run begin before it, and end after it."""
    companions = tuple(companions)
    for each in companions:
        each.begin(world)
    is_interrupted = False
    try:
        yield
    except (KeyboardInterrupt, Interrupted):
        is_interrupted = True
        raise
    finally:
        for each in companions:
            each.end(world, is_interrupted=is_interrupted)
