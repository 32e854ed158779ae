"""What `args` of a profile become on vLLM's command line."""

from __future__ import annotations

from typing import Any

import pytest

from tpudeploy.catalog.flags import Inexpressible, advice, express, find, names

CASES: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    # a switch, a pair of switches, nothing at all
    ("disable_log_stats", True, ("--disable-log-stats",)),
    ("enable_prefix_caching", True, ("--enable-prefix-caching",)),
    ("enable_prefix_caching", False, ("--no-enable-prefix-caching",)),
    ("enable_prefix_caching", None, ()),
    # one word
    ("max_num_seqs", 256, ("--max-num-seqs", "256")),
    ("max_num_seqs", "256", ("--max-num-seqs", "256")),
    ("max-model-len", "16k", ("--max-model-len", "16k")),
    ("max-model-len", "auto", ("--max-model-len", "auto")),
    ("max-model-len", -1, ("--max-model-len=-1",)),
    ("gpu_memory_utilization", 0.9, ("--gpu-memory-utilization", "0.9")),
    ("gpu_memory_utilization", 1, ("--gpu-memory-utilization", "1")),
    ("gpu_memory_utilization", 1e-07, ("--gpu-memory-utilization", "1e-07")),
    ("kv_cache_memory_bytes", 2**70, ("--kv-cache-memory-bytes", "1180591620717411303424")),
    ("kv_cache_dtype", "fp8", ("--kv-cache-dtype", "fp8")),
    ("moe_backend", "FlashInfer-TRTLLM", ("--moe-backend", "FlashInfer-TRTLLM")),
    ("max_lora_rank", 16, ("--max-lora-rank", "16")),
    ("tool_call_parser", "gemma4", ("--tool-call-parser", "gemma4")),
    ("chat_template", "", ("--chat-template", "")),
    ("chat_template", '--it\'s $HOME\n"é" ☃', ('--chat-template=--it\'s $HOME\n"é" ☃',)),
    ("chat_template", "-0.5", ("--chat-template=-0.5",)),
    # alone or with a word
    ("hf_token", True, ("--hf-token",)),
    ("hf_token", "name", ("--hf-token", "name")),
    # several words
    ("served_model_name", "one", ("--served-model-name", "one")),
    ("served_model_name", ["one", "two words"], ("--served-model-name", "one", "two words")),
    ("served_model_name", ["-dash"], ("--served-model-name=-dash",)),
    ("cudagraph_capture_sizes", [1, 2, 4], ("--cudagraph-capture-sizes", "1", "2", "4")),
    ("collect_detailed_traces", ["model", "worker"], ("--collect-detailed-traces", "model", "worker")),
    ("lora_modules", ["a=/a", {"name": "b"}], ("--lora-modules", "a=/a", '{"name":"b"}')),
    # the flag again for each
    ("middleware", ["a.b", "-c"], ("--middleware", "a.b", "--middleware=-c")),
    ("middleware", [], ()),
    # one JSON argument
    ("limit_mm_per_prompt", {"image": 4, "audio": 1}, ("--limit-mm-per-prompt", '{"image":4,"audio":1}')),
    (
        "speculative_config",
        {"z": "é", "a": [0.1, None, True]},
        ("--speculative-config", '{"z":"é","a":[0.1,null,true]}'),
    ),
    ("speculative_config", '{"method": "ngram"}', ("--speculative-config", '{"method": "ngram"}')),
    ("allowed_origins", ["*"], ("--allowed-origins", '["*"]')),
    ("pt_load_map_location", "cpu", ("--pt-load-map-location", "cpu")),
    ("pt_load_map_location", {"cuda:1": "cuda:0"}, ("--pt-load-map-location", '{"cuda:1":"cuda:0"}')),
)

REFUSED: tuple[tuple[str, Any, str], ...] = (
    ("disable_log_stats", False, "`--disable-log-stats` takes only `true`, and has no opposite; not `false`."),
    ("disable_log_stats", "true", "takes only `true`"),
    ("enable_prefix_caching", "yes", "takes `true` or `false`; not the text 'yes'."),
    ("enable_prefix_caching", 1, "takes `true` or `false`; not the number 1."),
    ("max_num_seqs", True, "takes a whole number; not `true`."),
    ("max_num_seqs", "abc", "takes a whole number; not the text 'abc'."),
    ("max_num_seqs", "16k", "takes a whole number; not the text '16k'."),
    ("max_num_seqs", 4.0, "takes a whole number; not the number 4.0."),
    ("max_num_seqs", [1], "takes a whole number; not this list."),
    ("max_num_batched_tokens", "auto", "takes a whole number, `16k` (16000) or `16K` (16384); not"),
    ("max_num_batched_tokens", "1.5K", "`16K` (16384); not the text '1.5K'."),
    ("gpu_memory_utilization", float("nan"), "takes a finite number; not the number nan."),
    ("gpu_memory_utilization", "inf", "takes a finite number; not the text 'inf'."),
    ("gpu_memory_utilization", {}, "takes a finite number; not an empty mapping."),
    (
        "dtype",
        "float8",
        "takes one of `auto`, `bfloat16`, `float`, `float16`, `float32`, `half`; not the text 'float8'.",
    ),
    ("max_lora_rank", 17, "takes one of `1`, `8`"),
    ("chat_template", ["a"], "takes text; not this list."),
    ("chat_template", False, "takes text; not `false`."),
    ("chat_template", "a\0b", r"takes text; not the text 'a\x00b'."),
    ("chat_template", "\ud800", "takes text; not the text"),
    ("chat_template", "--", "cannot have the value `--` here: vLLM would read it as a flag."),
    ("revision", 1.10, "takes text; not the number 1.1."),
    ("hf_token", False, "takes `true` or text; not `false`."),
    ("served_model_name", [], "takes a list with at least one item, each text; not an empty list."),
    ("served_model_name", ["a", "-b"], "cannot have the value `-b` here"),
    ("served_model_name", ["a", ["b"]], "each text; not this list."),
    ("served_model_name", {"a": 1}, "each text; not this mapping."),
    ("middleware", {"a": 1}, "takes a list, each item text; not this mapping."),
    ("speculative_config", ["ngram"], "takes a mapping; not this list."),
    ("speculative_config", "ngram", "takes a mapping; not the text 'ngram'."),
    ("speculative_config", {"x": [float("inf")]}, "takes a mapping; not this mapping."),
    ("allowed_origins", {"a": 1}, "takes a list; not this mapping."),
    ("pt_load_map_location", "{cpu}", "takes text or a mapping; not the text '{cpu}'."),
)


@pytest.mark.parametrize(("key", "value", "words"), CASES)
def test_a_value_is_written_as_its_flag_takes_it(key: str, value: Any, words: tuple[str, ...]) -> None:
    flag = find(key)

    assert flag is not None
    assert express(flag, value) == words


@pytest.mark.parametrize(("key", "value", "message"), REFUSED)
def test_a_value_that_the_flag_cannot_say_is_refused_with_what_it_takes(key: str, value: Any, message: str) -> None:
    flag = find(key)

    assert flag is not None
    with pytest.raises(Inexpressible) as refused:
        express(flag, value)
    assert message in str(refused.value)


@pytest.mark.parametrize("name", ["tensor-parallel-size", "tensor_parallel_size", "tp"])
def test_a_flag_is_found_by_every_name_vllm_gives_it(name: str) -> None:
    flag = find(name)

    assert flag is not None
    assert flag.name == "tensor-parallel-size"


def test_two_names_of_one_flag_are_seen_to_be_one() -> None:
    assert find("device_memory_utilization") == find("gpu_memory_utilization")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("max_num_seq", "Did you mean `max_num_seqs`?"),
        ("--max-num-seqs", "Did you mean `max_num_seqs`?"),
        ("no_enable_prefix_caching", "Write `enable_prefix_caching: false`."),
        ("speculative_config.method", "Write a mapping: `speculative_config: {method: …}`."),
        ("sc.num-speculative-tokens", "Write a mapping: `speculative_config: {num_speculative_tokens: …}`."),
        ("model", "The model is `model.id`."),
        ("zzzzzz", ""),
    ],
)
def test_an_unknown_name_gets_what_to_write_instead(name: str, hint: str) -> None:
    assert find(name) is None
    assert advice(name) == hint


def test_no_name_stands_for_two_flags() -> None:
    flags = [flag for name in names() if (flag := find(name))]
    spellings = [spelling for flag in flags for spelling in (flag.name, *flag.aliases)]

    assert len(flags) > 300
    assert len(set(spellings)) == len(spellings)


def test_one_word_flags_with_choices_accept_each_of_them() -> None:
    for flag in (flag for name in names() if (flag := find(name))):
        for choice in flag.choices:
            assert express(flag, choice) == (f"--{flag.name}", choice)
