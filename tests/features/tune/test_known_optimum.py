"""The whole default space on a v6e-4, through the command line: what a tuning finds beside the stand-in's own full grid."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from command_line import PROFILE, Open

from tpudeploy.emulator.machine.vllm import arguments
from tpudeploy.emulator.machine.vllm.closed_loop import LoopOffer, play
from tpudeploy.emulator.machine.vllm.engine import new_engine
from tpudeploy.features.benchmark.load.emulated import observation_of
from tpudeploy.features.benchmark.measure import figures
from tpudeploy.features.benchmark.offer import Offer, Point
from tpudeploy.features.benchmark.run import Slo

MODEL = "google/gemma-4-E2B-it"
SPECULATION = '{"method": "ngram", "num_speculative_tokens": 3}'
POINT = Point(concurrency=64, context_tokens=700, output_tokens=128)
LOAD = ("-concurrency", "64", "-context", "700", "-output", "128")
# Flag by flag, the values of the grid; those of the profile as it is written are the first ones.
GRID: dict[str, tuple[str, ...]] = {
    "split": ("4x1", "2x2", "1x4"),
    "max-num-seqs": ("256", "64"),
    "max-num-batched-tokens": ("2048", "4096", "8192"),
    "gap": ("0", "512"),
    "block-size": ("64", "32", "128"),
    "kv-cache-dtype": ("auto", "fp8"),
    "speculative-config": ("", SPECULATION),
}
PATHS = {
    "serving.max_num_seqs": "max-num-seqs",
    "serving.max_num_batched_tokens": "max-num-batched-tokens",
    "serving.padding_gap": "gap",
    "serving.block_size": "block-size",
    "serving.kv_cache_dtype": "kv-cache-dtype",
    "serving.args.speculative_config": "speculative-config",
}


def truth(cell: dict[str, str]) -> float:
    """Output tokens per second of the stand-in with these values, without noise."""
    tensor, data = cell["split"].split("x")
    flags = {name: value for name, value in cell.items() if name not in {"split", "gap"} and value}
    flags |= {"tensor-parallel-size": tensor, "data-parallel-size": data, "max-model-len": "16384"}
    words = ["serve", MODEL, *(word for name, value in flags.items() for word in (f"--{name}", value))]
    task: dict[str, Any] = {
        "image": "vllm/vllm-tpu:v0.32.0",
        "environment": {"VLLM_TPU_BUCKET_PADDING_GAP": cell["gap"]},
        "accelerator_type": "v6e-4",
        "kv_blocks": None,
        "block_size": None,
        "instead": {},
        "load": {},
        "paced": True,
        "acceptance": 0.5,
    }
    performance = new_engine(arguments.parse(words[1:]), task).performance
    assert performance is not None
    streams, context, output = POINT.sizes
    load = LoopOffer(
        streams=streams,
        context=context,
        output=output,
        requests=192,
        window_seconds=60.0,
        least_seconds=2.0,
        seed=1,
    )
    offer = Offer(point=POINT, model=MODEL, seed=1, requests=192, window_seconds=60.0)
    return figures(observation_of(play(performance, load, 0.0), offer), Slo()).output_tokens_per_second or 0.0


@pytest.mark.long
def test_a_tuning_of_the_default_space_is_within_a_percent_of_the_best_of_432_cells(cli: Open) -> None:
    at = cli(boot={"boot_seconds": 60, "paced": True, "noise": 0.003, "acceptance": 0.5})
    at.write(PROFILE.replace("v6e-1", "v6e-4"))
    assert at.run("apply", "gemma.yaml", "-auto-approve").code == 0
    result = at.run("tune", "gemma.yaml", *LOAD, "-max-cost", "30", "-auto-approve", "--json")
    assert result.code == 0, result.all
    tree = json.loads(result.out)
    assert tree["finding"] == "better", tree
    winner = {name: values[0] for name, values in GRID.items()}
    winner |= {PATHS[path]: value for path, value in tree["settings"].items() if path in PATHS}
    tensor = tree["settings"].get("serving.tensor_parallel_size", "4")
    winner["split"] = f"{tensor}x{4 // int(tensor)}"
    cells = [dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]
    assert len(cells) == 432
    assert truth(winner) > 0.99 * max(map(truth, cells))
    assert len(tree["trials"]) < len(cells) / 3
