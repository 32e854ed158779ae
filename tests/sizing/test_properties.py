"""What must hold for every model, slice and setting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sizing.profiles import deployment

from tpudeploy import catalog
from tpudeploy.catalog import families
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.budget import EngineSettings, HbmBudget, Unsized
from tpudeploy.domain.model import LanguageModel
from tpudeploy.sizing import compute_budget
from tpudeploy.sizing.advice import longest
from tpudeploy.sizing.checks import check
from tpudeploy.sizing.serve import ServingAnswer, can_serve

MODELS = sorted({name for family in families.FAMILIES for name in family.models})
SLICES = ["v6e-1", "v6e-4", "v6e-8", "v5litepod-1", "v5litepod-4", "v5litepod-8"]
UTILIZATIONS = st.floats(min_value=0.3, max_value=1.0)
LENGTHS = st.integers(min_value=1, max_value=131_072)
# The checks that say whether weights and one request go in.
OF_FIT = {"TPU2101", "TPU2102", "TPU2103", "TPU2106"}

STEADY = settings(max_examples=150)

Asked = tuple[LanguageModel, AcceleratorType, EngineSettings]


@st.composite
def drawn_case(draw: st.DrawFn) -> Asked:
    model = families.find_model(draw(st.sampled_from(MODELS)))
    kind = catalog.accelerator_type(draw(st.sampled_from(SLICES)))
    assert model is not None
    assert kind is not None
    data = draw(st.sampled_from([n for n in (1, 2, 4, 8) if kind.chips % n == 0]))
    engine = EngineSettings(
        tensor_parallel=kind.chips // data,
        data_parallel=data,
        kv_dtype=draw(st.sampled_from(["auto", "bfloat16", "fp8", "fp8_e5m2"])),
        utilization=draw(UTILIZATIONS),
        max_model_len=draw(LENGTHS),
        max_num_seqs=draw(st.sampled_from([1, 8, 64, 100, 256, 1_024])),
        max_num_batched_tokens=draw(st.integers(min_value=1_024, max_value=16_384)),
        padding_gap=draw(st.sampled_from([0, 0, 128, 512])),
        is_multimodal=model.is_multimodal,
    )
    return model, kind, engine


def sized(case: Asked, **changes: Any) -> HbmBudget:
    model, kind, engine = case
    budget = compute_budget(model, kind, replace(engine, **changes))
    assume(isinstance(budget, HbmBudget))
    assert isinstance(budget, HbmBudget)
    return budget


@STEADY
@given(case=drawn_case(), share=UTILIZATIONS)
def test_more_utilization_never_means_fewer_blocks(case: Asked, share: float) -> None:
    low, high = sorted((case[2].utilization, share))
    assert sized(case, utilization=low).num_blocks <= sized(case, utilization=high).num_blocks


@STEADY
@given(case=drawn_case(), block=st.sampled_from([8, 16, 32, 64, 128]))
def test_a_longer_block_never_means_more_blocks(case: Asked, block: int) -> None:
    assert sized(case, block_size=2 * block).num_blocks <= sized(case, block_size=block).num_blocks


@STEADY
@given(case=drawn_case())
def test_twice_the_copies_hold_twice_the_tokens_to_a_block_a_rank(case: Asked) -> None:
    model, kind, engine = case
    assume(engine.data_parallel * 2 * engine.tensor_parallel <= 8)
    once = sized((model, kind, engine))
    whole = catalog.accelerator_type("v6e-8" if kind.generation == "v6e" else "v5litepod-8")
    assert whole is not None
    twice = sized((model, whole, engine), data_parallel=engine.data_parallel * 2)
    assert abs(twice.kv_cache_tokens - 2 * once.kv_cache_tokens) <= twice.block_size * twice.engine.data_parallel


@STEADY
@given(case=drawn_case())
def test_a_chips_parts_are_the_whole_chip(case: Asked) -> None:
    budget = sized(case)
    parts = budget.weights_bytes_per_chip + budget.kv_bytes_per_chip + budget.program_bytes_per_chip
    assert parts + budget.free_bytes_per_chip == budget.hbm_bytes_per_chip
    assert budget.num_blocks >= 0
    assert budget.block_size & (budget.block_size - 1) == 0


@STEADY
@given(case=drawn_case())
def test_more_chips_for_one_copy_never_mean_heavier_chips(case: Asked) -> None:
    model, kind, engine = case
    assume(engine.tensor_parallel > 1)
    assume(model.experts is None)  # expert widths are padded a shard, which can grow the sum
    spread, half = sized(case), sized((model, kind, engine), tensor_parallel=engine.tensor_parallel // 2)
    assert spread.weights_bytes_per_chip <= half.weights_bytes_per_chip


@STEADY
@given(case=drawn_case())
def test_the_longest_length_fits_and_serves_one_user(case: Asked) -> None:
    assume(case[2].max_model_len >= 16)
    budget = sized(case)
    length = longest(budget)
    if length:
        best = sized(case, max_model_len=length)
        assert best.holds_a_request
        assert can_serve(best, users=1, context=length - 1, output=1).service is ServingAnswer.FITS
    else:
        assert not sized(case, max_model_len=16).holds_a_request


@STEADY
@given(
    name=st.sampled_from(MODELS),
    slice_type=st.sampled_from(SLICES[:3]),
    data=st.sampled_from([1, 2, 4, 8]),
    share=UTILIZATIONS,
    length=st.integers(min_value=16, max_value=131_072),
)
def test_the_checks_of_fit_and_the_sizing_agree(
    name: str, slice_type: str, data: int, share: float, length: int
) -> None:
    kind = catalog.accelerator_type(slice_type)
    assert kind is not None
    assume(kind.chips % data == 0)
    budget = deployment(
        {
            "model.id": name,
            "tpu.type": slice_type,
            "serving.data_parallel_size": data,
            "serving.hbm_utilization": round(share, 4),
            "serving.max_model_len": length,
        }
    )
    assume(not isinstance(budget.budget, Unsized))  # what cannot be sized fails no check of fit
    passes = not OF_FIT & {diagnostic.code for diagnostic in check([budget])}
    assert passes is (isinstance(budget.budget, HbmBudget) and budget.budget.fits is not False)
