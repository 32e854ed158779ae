"""What upstream's tests say of a model on a chip is data with its commit and date."""

from __future__ import annotations

import re

import pytest
from oracle.dump_support import rows_of

from tpudeploy.catalog import _support
from tpudeploy.catalog.support import UpstreamVerdict, deployment_support, model_support
from tpudeploy.loading import Profile, sized


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


@pytest.mark.parametrize(
    ("tpu", "arguments", "features"),
    [
        ("v6e-1", {}, ()),
        ("v6e-16", {}, ("a slice of several hosts",)),
        ("v6e-4", {"decode_context_parallel_size": 2}, ("context parallelism",)),
        ("v6e-4", {"enable_expert_parallel": True, "enable_lora": True}, ()),
        (
            "v5litepod-4",
            {"decode_context_parallel_size": 2},
            (),
        ),  # the whole generation is untested, which the line about the model says
    ],
)
def test_a_feature_that_no_test_of_the_generation_passed_is_said(
    tpu: str, arguments: dict[str, object], features: tuple[str, ...]
) -> None:
    image = {"image": "vllm/vllm-tpu:v0.32.0", "args": arguments}
    tree = {"version": 1, "name": "demo", "model": {"id": "google/gemma-4-E2B-it"}, "tpu": {"type": tpu}}
    support = deployment_support(sized(Profile.from_mapping({**tree, "serving": image})))
    assert support.features == features
    assert all(feature in support.sentence for feature in features)


def test_tests_of_another_release_are_not_taken_for_those_of_the_image() -> None:
    untested = model_support("Qwen/Qwen3-8B", "v6e", release="0.32.0")
    assert "0.27.0, 2026-08-22; no tests of 0.32.0 are known)" in untested.sentence
    assert not model_support("google/gemma-4-E2B-it", "v6e", release="0.32.0").sentence
    own = model_support("Qwen/Qwen3-8B", "v6e", release=_support.RELEASE)
    assert "are known" not in own.sentence
    assert "'is_of_the_release': True" in str(own.to_dict())


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('Model,Type,UnitTest,Accuracy\n"a/b",Text,✅ Passing,❓ Untested\n', ["a/b pass untested"]),
        ("Type,Model Name,UnitTest,Notes\nText,a/b,❌ Failing,see 1\n", ["a/b failing"]),
        ("\ufeffFeature,CorrectnessTest\nmulti host,✅\n\n,✅\n", ["multi_host pass"]),
        ("Model,UnitTest,Accuracy\na/b,Passed\nc/d,❌,N/A\n", ["a/b pass untested", "c/d failing untested"]),
        ("Model,UnitTest\na/b,not enough HBM\n", ["a/b not_enough_hbm"]),
    ],
)
def test_a_matrix_is_read_whatever_its_columns_and_spellings_are(text: str, rows: list[str]) -> None:
    assert rows_of(text) == rows
