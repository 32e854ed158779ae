"""The graphs that the stand-in compiles are those of a measured boot, and of the engine's source beyond it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tpudeploy.emulator.machine.vllm.arguments import parse
from tpudeploy.emulator.machine.vllm.graphs import Graph, graphs_of

LOG = (Path(__file__).parents[1] / "sizing" / "data" / "boot_gemma4_e2b_v6e1.log").read_text(encoding="utf-8")
NGRAM = ("--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3}')
GAP = {"VLLM_TPU_BUCKET_PADDING_GAP": "512"}


def graphs(*words: str, model: str = "google/gemma-4-E2B-it", **environment: str) -> tuple[Graph, ...]:
    return graphs_of(parse([model, *words]), environment)


def test_a_measured_boot_is_listed_graph_by_graph_in_its_order() -> None:
    logged = re.findall(r"Precompile (.+?) --> (\{.*)", LOG)
    measured = [(name, *map(int, re.findall(r"'(?:num_\w+|\w+_size)': (\d+)", shapes))) for name, shapes in logged]
    listed = [
        (graph.group, *(size for size in graph.shapes.values() if not isinstance(size, bool)))
        for graph in graphs("--max-num-batched-tokens", "4096")
    ]
    assert listed == measured
    assert len(listed) == 199


@pytest.mark.parametrize(
    ("batched", "words", "environment", "total", "backbones"),
    [
        ("4096", (), {}, 199, 18),
        ("4096", (), GAP, 267, 26),
        ("4096", NGRAM, {}, 599, 18),
        ("4096", NGRAM, GAP, 679, 26),
        ("8192", (), GAP, 403, 42),
        ("1024", ("--max-num-seqs", "64"), {}, 128, 14),
    ],
)
def test_other_settings_compile_as_many_as_the_engines_source_says(
    batched: str, words: tuple[str, ...], environment: dict[str, str], total: int, backbones: int
) -> None:
    listed = graphs("--max-num-batched-tokens", batched, *words, **environment)
    assert len(listed) == total
    assert sum(graph.group.startswith("worker0 backbone") for graph in listed) == backbones


@pytest.mark.parametrize(("environment", "total"), [({}, 569), (GAP, 649)])
def test_the_wheel_skips_pairs_with_more_requests_than_positions(environment: dict[str, str], total: int) -> None:
    """Of 0.32.0, as far as its source goes; see the mark in graphs.py."""
    skipping = ("worker0 _process_and_extend_logits", "worker0 _extend_logits_simple")
    listed = graphs("--max-num-batched-tokens", "4096", *NGRAM, **environment)
    skipped = [g for g in listed if g.group in skipping and g.shapes["num_reqs"] > g.shapes["num_logits"]]
    assert len(listed) - len(skipped) == total


def test_a_model_of_text_alone_merges_nothing() -> None:
    groups = Counter(graph.group for graph in graphs(model="meta-llama/Llama-3.1-8B-Instruct"))
    assert "input_embeddings_merger" not in groups
    assert "worker0 backbone with embeds" not in groups
    off = ("--limit-mm-per-prompt", '{"image": 0, "audio": 0}')
    assert "input_embeddings_merger" not in Counter(graph.group for graph in graphs(*off))


@pytest.mark.parametrize(("words", "environment"), [(("--enforce-eager",), {}), ((), {"SKIP_JAX_PRECOMPILE": "1"})])
def test_a_server_that_compiles_on_demand_compiles_nothing_before(
    words: tuple[str, ...], environment: dict[str, str]
) -> None:
    assert graphs(*words, **environment) == ()
