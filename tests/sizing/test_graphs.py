"""Every graph that a real boot compiled is counted, by its own name."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from sizing.vectors import ngram, sized

LOG = (Path(__file__).parent / "data" / "boot_gemma4_e2b_v6e1.log").read_text(encoding="utf-8")


def test_all_eleven_groups_of_a_real_boot_are_counted() -> None:
    logged = Counter(name.replace("worker0 ", "") for name in re.findall(r"Precompile (.+?) -->", LOG))
    assert len(logged) == 11
    assert logged.total() == 199
    assert sized("E2B", "v6e-1", max_model_len=32_768).compilation.graphs == dict(logged)


def test_buckets_of_a_real_boot_are_the_predicted_ones() -> None:
    plan = sized("E2B", "v6e-1", max_model_len=32_768).compilation
    assert f"Prepared token paddings: {list(plan.token_buckets)}" in LOG
    assert f"Prepared request paddings: {list(plan.request_buckets)}" in LOG


# Tokens a step, requests, gap, proposed tokens: token buckets, graphs, backbones.
REFERENCE: list[tuple[tuple[int, int, int, int], tuple[int, int, int]]] = [
    ((4_096, 256, 0, 0), (9, 199, 18)),
    ((4_096, 256, 512, 0), (13, 267, 26)),
    ((4_096, 256, 0, 3), (9, 599, 18)),
    ((8_192, 256, 512, 0), (21, 403, 42)),
    ((1_024, 64, 0, 0), (7, 128, 14)),
]


@pytest.mark.parametrize(("requests", "counts"), REFERENCE)
def test_graphs_are_those_of_the_reference(requests: tuple[int, int, int, int], counts: tuple[int, int, int]) -> None:
    batched, seqs, gap, proposed = requests
    plan = sized(
        "E2B",
        "v6e-1",
        max_num_batched_tokens=batched,
        max_num_seqs=seqs,
        padding_gap=gap,
        speculation=ngram(proposed) if proposed else None,
        is_async=not proposed,
    ).compilation
    backbones = plan.graphs["backbone"] + plan.graphs["backbone with embeds"]
    assert (len(plan.token_buckets), plan.total, backbones) == counts


def test_text_alone_needs_no_graphs_of_embeddings() -> None:
    text = sized("E2B", "v6e-1", is_multimodal=False).compilation
    both = sized("E2B", "v6e-1").compilation
    assert both.total - text.total == 9 + 9 + 9
    assert not [name for name in text.graphs if "embed" in name]


def test_a_budget_between_two_powers_is_the_last_bucket_itself() -> None:
    assert sized("E2B", "v6e-1", max_num_batched_tokens=2_500).compilation.token_buckets[-2:] == (2_048, 2_512)


def test_nothing_is_counted_where_the_engine_compiles_on_demand() -> None:
    assert sized("E2B", "v6e-1", is_precompiled=False).compilation.total == 0


def test_attention_buckets_multiply_the_backbones() -> None:
    plan = sized("E2B", "v6e-1", attention_buckets=()).compilation
    assert plan.graphs["backbone"] == 9 * 6
    assert sized("E2B", "v6e-1", attention_buckets=(64,)).compilation.graphs["backbone"] == 9 * 2


def test_a_cold_start_is_predicted_within_a_tenth_of_the_measured_one() -> None:
    start = sized("E2B", "v6e-1", max_model_len=32_768).start
    assert start.cold_seconds == pytest.approx(11 * 60 + 7, rel=0.1)
    assert start.warm_seconds < start.cold_seconds
    assert start.basis
