"""The table of policies: what each is called, and how it hunts in one world."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from bench.hunting import processes
from bench.hunting.baselines import BASELINES
from bench.hunting.oracle import floor, oracle
from bench.hunting.ours import hunt
from bench.hunting.outcome import Outcome
from bench.hunting.worlds import World

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Provisioning

Policy = Callable[[World], Outcome]
ORACLE = "oracle"
OURS = "tpudeploy"
# Ours where there is a second API: there alone, and at both.
INSTANCES = "Compute Engine alone"
EITHER = "auto"
_BACKENDS = {
    OURS: (Backend.QUEUED_RESOURCE,),
    INSTANCES: (Backend.GCE_INSTANCE,),
    EITHER: (Backend.QUEUED_RESOURCE, Backend.GCE_INSTANCE),
}
# A bound: what so many requests can reach that know no window.
FLOOR = "at best"
# The whole program, in a few worlds: a second of it is a thousand times as long.
COMMAND_LINE = "command line"
NAMES = (OURS, *BASELINES)


def policies(
    names: Sequence[str], requests: Sequence[int | None], models: tuple[Provisioning, ...]
) -> Mapping[str, Policy]:
    """By the name of their row, the oracle first. Ours has a row for each number of requests at once."""
    rows: dict[str, Policy] = {ORACLE: _oracle}
    for name in names:
        if name in _BACKENDS:
            ours = partial(hunt, models=models, backends=_BACKENDS[name])
            rows |= {row(most, name): partial(ours, requests=most) for most in requests}
        elif name == FLOOR:
            rows |= {row(most, FLOOR): partial(_floor, requests=most, models=models) for most in requests}
        elif name == COMMAND_LINE:
            rows[name] = processes.hunt
        else:
            rows[name] = BASELINES[name]
    return rows


def row(requests: int | None, name: str = OURS) -> str:
    return f"{name}, {'all at once' if requests is None else f'{requests} at once'}"


def _oracle(world: World) -> Outcome:
    return Outcome(usable_at=oracle(world), creates=1)


def _floor(world: World, requests: int | None, models: tuple[Provisioning, ...]) -> Outcome:
    return Outcome(usable_at=floor(world, requests, models))
