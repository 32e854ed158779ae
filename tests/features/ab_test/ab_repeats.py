"""Repeats of an A/B that nobody measured: worlds whose truth is known, and what an A/B of them is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import exp
from random import Random

from tpudeploy.features.ab_test import view
from tpudeploy.features.ab_test.experiment import Arm, Experiment, InEffect
from tpudeploy.features.ab_test.result import ExperimentResult
from tpudeploy.features.ab_test.turns import order
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.run import (
    Cell,
    CellStatus,
    Driver,
    Ended,
    Figures,
    Run,
    Side,
    Spread,
    Subject,
    Sweep,
    Turn,
)
from tpudeploy.text.paint import Paint

POINTS = tuple(Point(concurrency=count, context_tokens=128, output_tokens=16) for count in (1, 8, 64))
OF = Experiment(
    id="ab-1",
    began_at=0,
    version="1",
    deployment="gemma",
    path="serving.padding_gap",
    file="gemma.yaml",
    line=7,
    written=Side.A,
    a=Arm(value="0", fingerprint="a", in_effect=InEffect.YES),
    b=Arm(value="512", fingerprint="b", in_effect=InEffect.YES),
    sweep=Sweep(points=POINTS),
    repeats=3,
)
SUBJECT = Subject(model="m", usd_per_hour=1.35)

# (place, side, cell) → how many times as fast as usual, and as late; with luck from 0 to 1 of each by itself.
World = Callable[[Side, Point], tuple[float, float]]


def runs(world: World, random: Random, *, doubted: Mapping[int, CellStatus] | None = None) -> list[Run]:
    """Every repeat, each scattering by 1 %. `doubted` are the statuses of cells by their streams, in the third one."""
    finished_runs = []
    for place, side in enumerate(order(OF.repeats)):
        cells = []
        for point in POINTS:
            speed, delay = world(side, point)
            late = 0.2 * delay * exp(random.gauss(0, 0.01))
            rate = 10 * speed * exp(random.gauss(0, 0.01))
            ttft = Spread(count=9, mean=late, deviation=0.01, p50=late, p90=late, p95=late, p99=late, most=late)
            figures = Figures(
                requests=9,
                requests_failed=0,
                requests_per_second=rate,
                output_tokens_per_second=16 * rate,
                ttft_seconds=ttft,
                tpot_seconds=None,
            )
            status = (doubted or {}).get(point.sizes[0], CellStatus.OK) if place == 2 else CellStatus.OK
            cells.append(Cell(point=point, status=status, figures=figures))
        finished_runs.append(
            Run(
                id=f"run-{place}",
                began_at=place,
                version="1",
                driver=Driver.TPUDEPLOY,
                subject=SUBJECT,
                sweep=OF.sweep,
                cells=tuple(cells),
                ended=Ended.COMPLETE,
                turn=Turn(experiment=OF.id, place=place, side=side),
            )
        )
    return finished_runs


def nothing(_side: Side, _point: Point) -> tuple[float, float]:
    return 1.0, 1.0


def page_of(result: ExperimentResult) -> str:
    return view.result(result, Paint(), path="ab-1.json", width=None)
