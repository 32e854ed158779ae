"""One world, step by step: what the policy did, when, and where the windows were that it could have had."""

from __future__ import annotations

from collections.abc import Iterator

from bench.hunting.oracle import oracle
from bench.hunting.ours import hunt
from bench.hunting.policies import row
from bench.hunting.run import Job
from bench.hunting.setting import MINUTE
from bench.hunting.worlds import World, world

from tpudeploy.domain.state import Record
from tpudeploy.domain.step import Forget, GiveUp, Release, Request, Step, Wait


def lines(job: Job, index: int) -> Iterator[str]:
    for requests in job.requests:
        here = world(job.setting, job.seed, index)
        lines_by_time: list[tuple[float, str]] = []

        def tell(at: float, record: Record, step: Step, lines_by_time: list[tuple[float, str]] = lines_by_time) -> None:
            if not isinstance(step, Wait):
                lines_by_time.append((at, _describe(record, step)))

        outcome = hunt(here, requests, job.models, tell=tell)
        lines_by_time += _windows(here, outcome.usable_at)
        yield f"{row(requests)}: usable after {outcome.usable_at / MINUTE:.2f} min, oracle {oracle(here) / MINUTE:.2f}"
        yield from (f"{at / MINUTE:9.2f}  {text}" for at, text in sorted(lines_by_time, key=lambda row: row[0]))


def _windows(here: World, until: float) -> Iterator[tuple[float, str]]:
    """Those of ours, until the slice was usable."""
    for place in here.places:
        at = 0.0
        while (window := place.window(at)) is not None and window.opens < until:
            minutes = (window.closes - max(0.0, window.opens)) / MINUTE
            fate = ", code 13" if window.internal else f", lands in {window.provisioning / MINUTE:.1f} min"
            yield max(0.0, window.opens), f"          {place.zone} opens for {minutes:.1f} min{fate}"
            at = window.closes


def _describe(record: Record, step: Step) -> str:
    match step:
        case Request():
            return f"request   {step.candidate.zone} {step.candidate.provisioning}"
        case Release() | Forget():
            attempt = record.attempt(step.name)
            where = "" if attempt is None else f"{attempt.zone} {attempt.provisioning}"
            kind = "" if step.refusal is None else f" ({step.refusal.kind})"
            reason = step.absence if isinstance(step, Forget) else step.reason
            return f"{type(step).__name__.lower():9} {where}: {reason}{kind}"
        case GiveUp():
            return f"giveup    {step.error}"
        case _:
            return f"{type(step).__name__.lower():9} {getattr(step, 'name', '')}"
