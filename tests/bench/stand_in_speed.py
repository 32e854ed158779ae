"""Published cells beside those of the emulator's stand-in: `PYTHONPATH=tests python -m bench.stand_in_speed`.

The authors do not name the length of their answers; it is taken to be OUTPUT tokens. Cells that the product's own rules
doubt (copied figures, more than 60 % of the chips' arithmetic) are printed and not counted, and neither is the first one of
a table where the same cell was published twice with figures four times apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from tpudeploy.emulator.machine.vllm import arguments
from tpudeploy.emulator.machine.vllm.closed_loop import LoopOffer, play
from tpudeploy.emulator.machine.vllm.engine import new_engine
from tpudeploy.features.benchmark.load.emulated import observation_of
from tpudeploy.features.benchmark.measure import figures
from tpudeploy.features.benchmark.offer import Offer, Point
from tpudeploy.features.benchmark.published import published
from tpudeploy.features.benchmark.run import Cell, Run, Slo

OUTPUT = 32
_CHIPS = {"v6e-1": 1, "v6e-4": 4}
_SMALL_CACHE = ("fp8-26b-v6e-4", "agent-e2b-v6e-4")  # tables whose author names an eight-bit cache
_TWICE = {("fp8-26b-v6e-4", 1), ("fp8-26b-v6e-4-earlier", 1)}  # 0.489 s and 0.116 s for one and the same


@dataclass(frozen=True)
class SpeedRow:
    """One published figure and the stand-in's; `doubt` is why it does not count, or ""."""

    table: str
    users: int
    context: int
    measure: str
    published: float
    emulated: float
    doubt: str

    @property
    def error(self) -> float:
        return self.emulated / self.published - 1


def rows() -> Iterator[SpeedRow]:
    """Yield each published figure of a slice of TPUs, in the order of the tables."""
    for name, run in published().items():
        if run.subject.accelerator_type not in _CHIPS:
            continue
        best: dict[str, float] = {}
        for cell in run.cells:
            yield from _cell(name, run, cell, best)


def _cell(name: str, run: Run, cell: Cell, best: dict[str, float]) -> Iterator[SpeedRow]:
    point, figures = cell.point, cell.figures
    assert figures is not None
    if point.context_tokens is None:
        return  # a peak whose prompts are not stated
    users = point.concurrency or 512  # only the peak is printed
    outcome = _emulated(name, run, users, point.context_tokens, point.output_tokens or OUTPUT)
    doubt = "" if cell.is_trusted else cell.status.value
    if (name, users) in _TWICE:
        doubt = "published twice, 4 times apart"
    if name.startswith("turbo-"):
        doubt = "published three times, 140 times apart"
    for measure, value in _published(cell).items():
        yield SpeedRow(name, users, point.context_tokens, measure, value, outcome[measure], doubt)


def _published(cell: Cell) -> Mapping[str, float]:
    figures = cell.figures
    assert figures is not None
    values = {"requests/s": figures.requests_per_second}
    if cell.point.output_tokens == 1:
        values = {"prompt tok/s": figures.input_tokens_per_second}
    values["mean TTFT s"] = None if figures.ttft_seconds is None else figures.ttft_seconds.mean
    return {name: value for name, value in values.items() if value is not None}


def _emulated(name: str, run: Run, users: int, context: int, output: int) -> Mapping[str, float]:
    chips = _CHIPS[run.subject.accelerator_type]
    words = [
        "vllm",
        "serve",
        run.subject.model,
        "--tensor-parallel-size",
        str(chips),
        "--max-num-batched-tokens",
        "4096",
    ]
    if name.startswith(_SMALL_CACHE):
        words += ["--kv-cache-dtype", "fp8"]
    task: dict[str, Any] = {
        "image": "vllm/vllm-tpu:v0.32.0",
        "environment": {},
        "accelerator_type": run.subject.accelerator_type,
        **dict.fromkeys(("kv_blocks", "block_size")),
        **{key: {} for key in ("instead", "load")},
        "paced": True,
    }
    engine = new_engine(arguments.parse(words[2:]), task)
    assert engine.performance is not None
    offer = LoopOffer(
        streams=users,
        context=context,
        output=output,
        requests=max(16, 3 * users),
        window_seconds=600.0,
        least_seconds=2.0,
        seed=1,
    )
    point = Point(concurrency=users, context_tokens=context, output_tokens=output)
    offer_of_client = Offer(point=point, model="", seed=1, requests=0, window_seconds=0.0)
    loop = play(engine.performance, offer, 0.0)
    outcome = figures(observation_of(loop, offer_of_client), Slo())
    ttft = outcome.ttft_seconds
    assert ttft is not None
    values = {"requests/s": outcome.requests_per_second, "prompt tok/s": outcome.input_tokens_per_second}
    return {name: value or 0.0 for name, value in values.items()} | {"mean TTFT s": ttft.mean}


def main() -> None:
    """Print the table, and how far apart the two are."""
    table = tuple(rows())
    for row in table:
        cell = f"{row.table:24}{row.users:>6}{row.context:>7}  {row.measure:13}"
        print(f"{cell}{row.published:>12,.2f}{row.emulated:>12,.2f}{row.error:>+8.0%}  {row.doubt}")
    errors = [abs(row.error) for row in table if not row.doubt]
    within = sum(error <= 0.25 for error in errors)
    print(f"{within} of {len(errors)} trusted figures are within 25 %; the median error is {median(errors):.0%}.")


if __name__ == "__main__":
    main()
