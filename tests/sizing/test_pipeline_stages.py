"""Pipeline stages: the layers of each, and what the fullest of them leaves for the cache."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tpudeploy import catalog
from tpudeploy.catalog import families
from tpudeploy.domain.budget import EngineSettings, HbmBudget
from tpudeploy.domain.model import (
    Attention,
    EngineAnswer,
    Experts,
    FeedForward,
    Implementation,
    LanguageModel,
    Vision,
)
from tpudeploy.sizing import compute_budget
from tpudeploy.sizing.advice import remedies
from tpudeploy.sizing.stages import can_be_split, layers_per_stage, stages
from tpudeploy.sizing.weights import parameters

MODEL = "Qwen/Qwen3-235B-A22B-Instruct-2507"
PLACES = {"v6e-16": (4, 4), "v6e-32": (4, 8)}


ATTENTION = Attention(layers=6, cached=6, heads=8, kv_heads=2, head_dim=64)
DENSE = LanguageModel(
    name="six layers of one kind",
    architecture="",
    implementation=Implementation.JAX,
    layers=6,
    hidden=512,
    vocabulary=1000,
    is_tied=False,
    max_position=4096,
    attention=(ATTENTION,),
    feed_forward=(FeedForward(layers=6, width=2048),),
    norms=50,
)
EXPERTS = Experts(layers=6, count=4, width=128)
MIXTURE = replace(DENSE, feed_forward=(), experts=EXPERTS)


def model(name: str = MODEL) -> LanguageModel:
    row = families.find_model(name)
    assert row is not None
    return row


def budget(type_name: str, tensor: int, stage_count: int) -> HbmBudget:
    kind = catalog.accelerator_type(type_name)
    assert kind is not None
    engine = EngineSettings(
        tensor_parallel=tensor, pipeline_parallel=stage_count, max_model_len=32768, utilization=0.8, max_num_seqs=128
    )
    result = compute_budget(model(), kind, engine)
    assert isinstance(result, HbmBudget), result
    return result


@pytest.mark.parametrize(
    ("layers", "count", "expected"),
    [(8, 1, (8,)), (8, 4, (2, 2, 2, 2)), (94, 4, (23, 24, 24, 23)), (5, 4, (1, 1, 2, 1)), (94, 8, (11, *[12] * 6, 11))],
)
def test_layers_that_are_left_over_go_to_stages_from_the_last_but_one_backwards(
    layers: int, count: int, expected: tuple[int, ...]
) -> None:
    assert layers_per_stage(layers, count) == expected


@pytest.mark.parametrize(
    ("whole", "is_known"),
    [
        pytest.param(DENSE, True, id="each layer has the same attention and the same feed-forward"),
        pytest.param(MIXTURE, True, id="each layer has the same attention and the same experts"),
        pytest.param(
            replace(DENSE, attention=(ATTENTION, replace(ATTENTION, layers=3, cached=3))),
            False,
            id="some layers have another attention",
        ),
        pytest.param(
            replace(DENSE, feed_forward=(FeedForward(layers=6, width=2048), FeedForward(layers=2, width=512))),
            False,
            id="some layers have a wider feed-forward",
        ),
        pytest.param(replace(DENSE, experts=replace(EXPERTS, layers=5)), False, id="the first layer has no experts"),
        pytest.param(replace(DENSE, vision=Vision(heads=8, split=1, replicated=1)), False, id="it sees"),
        pytest.param(replace(DENSE, per_layer_width=256), False, id="each layer has an input of its own"),
        pytest.param(
            replace(DENSE, answer=EngineAnswer(release="", parameters=1, active=1, checkpoint_bytes=1, weights={})),
            False,
            id="the engine alone knows what it loads",
        ),
    ],
)
def test_a_model_whose_layers_differ_has_one_stage(whole: LanguageModel, is_known: bool) -> None:
    assert can_be_split(whole) is is_known
    assert len(stages(whole, 2)) == (2 if is_known else 1)
    assert stages(whole, 1) == (whole,)


@pytest.mark.parametrize("whole", [DENSE, MIXTURE], ids=["dense", "mixture"])
def test_each_stage_has_its_share_of_all_that_layers_have_and_the_outer_ones_a_table(whole: LanguageModel) -> None:
    parts = stages(whole, 4)
    assert [part.layers for part in parts] == [1, 2, 2, 1]
    for part in parts:
        assert [(kind.layers, kind.cached) for kind in part.attention] == [(part.layers, part.layers)]
        assert part.feed_forward == tuple(replace(each, layers=part.layers) for each in whole.feed_forward)
        assert part.experts == (None if whole.experts is None else replace(EXPERTS, layers=part.layers))
    assert [repr(part.norms) for part in parts] == ["8", "16", "16", "8"]
    assert [part.vocabulary for part in parts] == [1000, 0, 0, 1000]
    assert all(part.is_tied for part in parts), "an input or an output table: one"


@pytest.mark.parametrize(("name", "billions"), [(MODEL, 235.1), ("Qwen/Qwen3-Coder-480B-A35B-Instruct", 480.2)])
def test_the_stages_have_together_what_the_model_has(name: str, billions: float) -> None:
    whole = model(name)
    assert parameters(whole) / 1e9 == pytest.approx(billions, abs=0.05)
    assert sum(map(parameters, stages(whole, 8))) == pytest.approx(parameters(whole), rel=1e-9)


def test_tensor_parallelism_over_hosts_copies_kv_heads_that_stages_do_not() -> None:
    """Four KV heads on 32 chips are eight copies; in eight stages of four chips there is none."""
    staged, copied = budget("v6e-32", 4, 8), budget("v6e-32", 32, 1)
    assert (
        staged.kv_bytes_per_token_per_chip == 12 * 2 * 128 * 2
    )  # 12 layers of one head: keys and values of 128 bfloat16
    assert copied.kv_bytes_per_token_per_chip == 94 * 2 * 128 * 2
    assert staged.holds_a_request
    assert not copied.holds_a_request


def test_the_stage_with_the_fewest_blocks_decides() -> None:
    result = budget("v6e-32", 4, 8)
    # 12 layers of 128 experts, 3 x 4,096 x 1,536 each, and of attention and routers, on four chips, in bfloat16.
    layer = 128 * 3 * 4096 * 1536 + (2 * 64 + 2 * 4) * 128 * 4096
    least = 12 * layer * 2 // 4
    assert least < result.weights_bytes_per_chip < least * 1.01


def test_what_no_shape_of_these_hosts_holds_is_referred_to_more_hosts() -> None:
    (way,) = remedies(budget("v6e-16", 4, 4))
    assert way.settings == {"tpu.type": "v6e-32", "tensor_parallel_size": 4, "args.pipeline_parallel_size": 8}
