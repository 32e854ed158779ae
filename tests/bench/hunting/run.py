"""Every policy in every world, on as many processes as asked for."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from time import process_time

from bench.hunting.outcome import Outcome
from bench.hunting.policies import policies
from bench.hunting.setting import Setting
from bench.hunting.worlds import world

from tpudeploy.domain.deployment import Provisioning

# Few enough worlds that both processes have some of the command line's.
_CHUNK = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is tried: `names` and `requests` as in policies.py, in `worlds` worlds."""

    setting: Setting
    names: tuple[str, ...]
    requests: tuple[int | None, ...]
    models: tuple[Provisioning, ...]
    worlds: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One policy: an outcome for each world, in their order, and the processor's seconds that they took."""

    outcomes: tuple[Outcome, ...]
    seconds: float


def run(job: Job, processes: int) -> Mapping[str, Row]:
    chunks = [(job, range(at, min(at + _CHUNK, job.worlds))) for at in range(0, job.worlds, _CHUNK)]
    if processes == 1:
        return _joined([_part(chunk) for chunk in chunks])
    with multiprocessing.Pool(processes) as pool:
        return _joined(pool.map(_part, chunks, chunksize=1))


def _part(chunk: tuple[Job, range]) -> Mapping[str, Row]:
    job, indices = chunk
    worlds = [world(job.setting, job.seed, index) for index in indices]
    rows: dict[str, Row] = {}
    for name, policy in policies(job.names, job.requests, job.models).items():
        began = process_time()
        outcomes = tuple(policy(each) for each in worlds)
        rows[name] = Row(outcomes=outcomes, seconds=process_time() - began)
    return rows


def _joined(parts: Sequence[Mapping[str, Row]]) -> Mapping[str, Row]:
    return {
        name: Row(
            outcomes=tuple(chain.from_iterable(part[name].outcomes for part in parts)),
            seconds=sum(part[name].seconds for part in parts),
        )
        for name in parts[0]
    }
