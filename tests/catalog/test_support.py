"""What upstream's tests say of a model on a chip is data with its commit and date."""

from __future__ import annotations

import re

import pytest

from tpudeploy.catalog import _support
from tpudeploy.catalog.support import UpstreamVerdict, model_support


def test_the_data_name_their_repository_commit_and_date() -> None:
    assert _support.REPOSITORY == "vllm-project/tpu-inference"
    assert re.fullmatch(r"[0-9a-f]{40}", _support.COMMIT)
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", _support.DATE)


@pytest.mark.parametrize(
    ("model", "generation", "support", "words"),
    [
        ("google/gemma-4-E2B-it", "v6e", UpstreamVerdict.TESTED, ""),
        ("google/gemma-4-31B-it", "v6e", UpstreamVerdict.TESTED, ""),
        ("google/gemma-4-26B-A4B-it", "v6e", UpstreamVerdict.FAILING, "not enough hbm"),
        ("google/gemma-4-26B-A4B-it", "tpu7x", UpstreamVerdict.TESTED, ""),
        ("openai/gpt-oss-20b", "v6e", UpstreamVerdict.UNTESTED, ""),
        ("meta-llama/Llama-4-Maverick-17B-128E-Instruct", "v6e", UpstreamVerdict.UNTESTED, ""),
        ("Qwen/Qwen3-8B", "v6e", UpstreamVerdict.UNTESTED, ""),
        ("google/gemma-4-E2B-it", "v5e", UpstreamVerdict.UNTESTED, ""),
        ("unsloth/Meta-Llama-3.1-8B-Instruct", "v6e", UpstreamVerdict.TESTED, ""),
        ("acme/Llama-3.1-8B-Instruct-AWQ", "v6e", UpstreamVerdict.UNTESTED, ""),
    ],
)
def test_a_model_is_tested_untested_or_not_passing(
    model: str, generation: str, support: UpstreamVerdict, words: str
) -> None:
    verdict = model_support(model, generation)
    assert (verdict.support, verdict.words) == (support, words)
    assert bool(verdict.sentence) is (support is not UpstreamVerdict.TESTED)
