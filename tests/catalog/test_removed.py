"""What vLLM removed is answered with its successor, and never with the nearest spelling."""

from __future__ import annotations

import re

import pytest

from tpudeploy.catalog import flags, releases, variables

REMOVED = releases.table(None)["removed"]


@pytest.mark.parametrize("name", REMOVED)
def test_no_removed_name_is_one_of_the_release(name: str) -> None:
    assert not variables.is_read(name) if name.isupper() else flags.find(name) is None
    removal = flags.removal(name)
    assert removal is not None
    assert removal.instead


@pytest.mark.parametrize(
    ("name", "successor"),
    [
        ("disable_log_requests", "leave it out"),
        ("--disable-log-requests", "leave it out"),
        ("guided_decoding_backend", "structured_outputs_config"),
        ("enable_reasoning", "reasoning_parser alone"),
        ("device", "leave it out"),
        ("num_scheduler_steps", "leave it out"),
        ("swap_space", "leave it out"),
        ("task", "runner"),
        ("override_pooler_config", "pooler_config"),
        ("speculative_model", "speculative_config"),
        ("VLLM_USE_V1", "V1 is the only engine"),
        ("VLLM_ATTENTION_BACKEND", "attention_backend"),
        ("VLLM_TORCH_PROFILER_RECORD_SHAPES", "profiler_config: {torch_profiler_record_shapes"),
        ("VLLM_TRITON_ATTN_USE_TD", "VLLM_TRITON_USE_TD"),
        ("VLLM_RPC_TIMEOUT", "no successor is known"),
        ("guided_decoding_disable_fallback", "leave it out"),
        ("qlora_adapter_name_or_path", "no effect"),
        ("logits_processor_pattern", "no successor is known"),
    ],
)
def test_a_removed_name_has_its_successor(name: str, successor: str) -> None:
    removal = flags.removal(name)
    assert removal is not None
    assert successor in removal.instead


SUCCESSORS = {
    name: instead.removeprefix("write ") for name, (_, instead) in REMOVED.items() if instead.startswith("write ")
}


@pytest.mark.parametrize("name", SUCCESSORS)
def test_what_is_written_instead_is_a_flag_or_a_variable_of_the_release(name: str) -> None:
    words = SUCCESSORS[name].removeprefix("the flag ")
    successor = re.match(r"\w+", words)
    assert successor is not None
    is_variable = successor[0].isupper()
    assert variables.is_read(successor[0]) if is_variable else flags.find(successor[0].replace("_", "-")) is not None


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("no_async_scheduler", "Write `async_scheduling: false`."),
        ("no-enable-prefix-cachin", "Write `enable_prefix_caching: false`."),
        ("disable_log_request", ""),
        ("disable_enable_prefix_caching", ""),
    ],
)
def test_a_name_that_is_unknown_is_never_answered_with_its_opposite(name: str, advice: str) -> None:
    assert "enable_log_requests" not in flags.advice(name)
    assert not advice or flags.advice(name) == advice


def test_no_suggestion_has_the_other_sense_of_the_word() -> None:
    for name in flags.names():
        if name.startswith("enable-"):
            near = flags.nearest(name.replace("enable-", "disable-", 1))
            assert near is None or near.name != name
