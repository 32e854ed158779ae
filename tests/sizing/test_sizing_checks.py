"""What cannot boot is an error that names what would; what merely wastes is a warning with figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml
from sizing.profiles import budget, deployment, diagnostics_of

from tpudeploy.domain.budget import Unsized
from tpudeploy.domain.diagnostics import Diagnostic, Severity
from tpudeploy.operations.examples import EXAMPLES
from tpudeploy.sizing.checks import CHECKS
from tpudeploy.sizing.checks.unchecked import SUBJECTS

E2B_ON_FOUR = {"tpu.type": "v6e-4"}
ARGS = "serving.args"


def _example(code: str) -> dict[str, Any]:
    """Return what `tpudeploy explain` shows for a check, as settings of dotted paths."""
    return dict(_settings("", yaml.safe_load(EXAMPLES[code].layer)))


def _settings(above: str, tree: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        path = f"{above}{key}"
        if isinstance(value, Mapping) and value:
            yield from _settings(f"{path}.", value)
        else:
            yield path, value


# Settings, the code, whether it is an error, and words that the message or hint must hold.
CASES: list[tuple[str, dict[str, Any], str, bool, tuple[str, ...]]] = [
    (
        "weights too large",
        _example("TPU2101"),
        "TPU2101",
        True,
        ("58.3 GiB", "v6e-4"),
    ),
    (
        "nothing left for the cache",
        _example("TPU2102"),
        "TPU2102",
        True,
        ("no KV cache",),
    ),
    (
        "length beyond the cache",
        _example("TPU2103"),
        "TPU2103",
        True,
        ("65,536", "max_model_len: "),
    ),
    ("experts of a dense model", _example("TPU2121"), "TPU2121", True, ("has none", "--enable-expert-parallel")),
    (
        "routed experts of a dense model",
        {f"{ARGS}.aux_output_config": {"enable_return_routed_experts": True}},
        "TPU2121",
        True,
        ("has none",),
    ),
    ("a quantization that TPUs refuse", _example("TPU2122"), "TPU2122", True, ("gptq", "does not run on TPU")),
    ("an id in another case", _example("TPU2123"), "TPU2123", False, ("google/gemma-4-E2B-it",)),
    ("an encoder with a decoder", _example("TPU2126"), "TPU2126", True, ("openai/whisper-large-v3", "encoder")),
    ("a router without a route", _example("TPU2127"), "TPU2127", True, ("smg", "/rerank", "haproxy or envoy")),
    ("half a pair", _example("TPU2124"), "TPU2124", False, ("prefill half", "cannot express the pair")),
    ("a parser of another family", _example("TPU2125"), "TPU2125", False, ("hermes", "tool_call_parser: gemma4")),
    (
        "an image limit for text alone",
        {"model.id": "Qwen/Qwen3-8B", "tpu.type": "v6e-4", f"{ARGS}.limit_mm_per_prompt": {"image": 4}},
        "TPU2125",
        False,
        ("text alone",),
    ),
    ("length beyond the model", _example("TPU2104"), "TPU2104", True, ("131,072",)),
    (
        "no room for programs",
        {**_example("TPU2105"), "serving.image": "vllm/vllm-tpu:v0.31.0"},
        "TPU2105",
        True,
        ("0.79 GiB", "0.82 GiB", "hbm_utilization: 0.92"),
    ),
    (
        "no room for the backbone of a large step",
        _example("TPU2105"),
        "TPU2105",
        False,
        ("0.79 GiB", "0.81 GiB", "may fail", "hbm_utilization: 0.92"),
    ),
    (
        "a copied cache",
        _example("TPU2107"),
        "TPU2107",
        False,
        ("18,432", "1,539,264", "data_parallel_size 4", "4,608,000"),
    ),
    (
        "fp8 that buys nothing",
        _example("TPU2108"),
        "TPU2108",
        False,
        ("18,432 bytes a token and chip, and 18,432",),
    ),
    ("a video beyond a step", _example("TPU2109"), "TPU2109", True, ("2,496", "video")),
    (
        "a step below its requests",
        _example("TPU2110"),
        "TPU2110",
        True,
        ("256",),
    ),
    (
        "a whole prompt beyond a step",
        {f"{ARGS}.enable_chunked_prefill": False},
        "TPU2110",
        True,
        ("16,384", "4,096"),
    ),
    (
        "a block below the guard",
        {**_example("TPU2111"), "serving.max_num_seqs": 200},
        "TPU2111",
        False,
        ("32", "may not fit"),
    ),
    (
        "a block table of twice scalar memory",
        {**_example("TPU2111"), "serving.max_num_seqs": 512},
        "TPU2111",
        True,
        ("64", "Allocation (size=2097152) would exceed memory (size=1048576)"),
    ),
    (
        "32 KV heads on a chip",
        _example("TPU2132"),
        "TPU2132",
        False,
        ("32 KV heads", "2,048 tokens or more", "Used 278.82M of 127.94M vmem", "with 512"),
    ),
    (
        "16 KV heads on each of two chips",
        {**_example("TPU2132"), "tpu.type": "v6e-4", "serving.tensor_parallel_size": 2},
        "TPU2132",
        False,
        ("16 KV heads", "Used 139.59M of 127.94M vmem"),
    ),
    ("a block table that fills scalar memory", _example("TPU2111"), "TPU2111", True, ("32", "memory space smem")),
    ("a gap that makes graphs", _example("TPU2112"), "TPU2112", False, ("267", "199")),
    ("fast prefill", _example("TPU2113"), "TPU2113", False, ("no effect",)),
    ("fp8 weights of bfloat16", _example("TPU2114"), "TPU2114", True, ("bfloat16 checkpoint",)),
    ("a cache in the container", _example("TPU2115"), "TPU2115", False, ("lost with the container",)),
    (
        "a cache in memory",
        {"serving.volumes": {"/dev/shm": "/dev/shm"}, "serving.xla_cache_path": "/dev/shm/xla"},
        "TPU2115",
        False,
        ("reboots",),
    ),
    (
        "weights in memory",
        {"serving.volumes": {"/dev/shm": "/dev/shm"}, "serving.env": {"HF_HOME": "/dev/shm"}},
        "TPU2116",
        False,
        ("9.5 GiB", "164.0 GiB"),
    ),
    (
        "weights in the container's own memory",
        {"serving.volumes": {}, "serving.env": {"HF_HOME": "/dev/shm/hub"}},
        "TPU2116",
        True,
        ("64 MiB", "9.5 GiB"),
    ),
    (
        "weights in the container's own memory, made larger",
        {"serving.volumes": {}, "serving.env": {"HF_HOME": "/dev/shm"}, "serving.shm_size": "16gb"},
        "TPU2116",
        False,
        ("9.5 GiB", "164.0 GiB"),
    ),
    (
        "weights in the container's own memory, no volumes written",
        _example("TPU2116"),
        "TPU2116",
        True,
        ("64 MiB", "9.5 GiB"),
    ),
    (
        "weights in memory by name alone",
        {"serving.volumes": {"/mnt/models": "/dev/shm"}, "serving.env": {"HF_HOME": "/dev/shm"}},
        "TPU2116",
        False,
        ("not memory here", "/mnt/models"),
    ),
    ("a disk below the weights", {"tpu.boot_disk_size": "9GiB"}, "TPU2117", True, ("9 GiB", "9.5 GiB")),
    ("a disk that is short", _example("TPU2117"), "TPU2117", False, ("40.5 GiB", "41GiB")),
    (
        "torchax",
        {"model.id": "google/gemma-4-12B-it", "tpu.type": "v6e-4", "serving.hbm_utilization": 0.8},
        "TPU2118",
        False,
        ("torchax",),
    ),
    (
        "a run that ends before its start is done",
        {"placement.max_run_duration": "8m"},
        "TPU2005",
        True,
        ("ends the run after 8m 0s", "a cold start takes about 11 min", "more than 22 min"),
    ),
    (
        "a run that is longer than a start with the graphs from a bucket",
        {"placement.max_run_duration": "5m", "serving.xla_cache_bucket": "gs://bucket/xla"},
        "TPU2005",
        True,
        ("ends the run after 5m 0s", "with a warm compile cache takes about 6 min"),
    ),
    (
        "a health check that ends before a start",
        {"health.timeout": "8m"},
        "TPU2005",
        False,
        ("health.timeout is over after 8m 0s", "about 11 min"),
    ),
    (
        "a successor that cannot serve in time",
        {"placement.max_run_duration": "15m", "lifecycle.on_run_end": "renew", "lifecycle.drain_timeout": "1m"},
        "TPU2007",
        True,
        ("requested 7m 30s before the end of a run of 15m 0s", "a cold start takes about 11 min"),
    ),
    (
        "a successor that has no time to wait for its grant",
        _example("TPU2007"),
        "TPU2007",
        False,
        ("1h 0m before the end of a run of 2h 0m", "A grant (1h 0m)", "drain (16m 0s) may take 87 min"),
    ),
    (
        "replicas that are always about to leave",
        _example("TPU2008"),
        "TPU2008",
        True,
        ("A run of 1h 0m has no time to serve", "the last 56m 0s are for the drain"),
    ),
    (
        "the default drain in a short run",
        {"placement.max_run_duration": "20m", "replicas": 2},
        "TPU2008",
        True,
        ("A run of 20m 0s has no time to serve", "the last 16m 0s"),
    ),
    (
        "a drain of one replica beyond its run",
        {"placement.max_run_duration": "2h", "lifecycle.drain_timeout": "3h"},
        "TPU2008",
        False,
        ("ends a run after 2h 0m", "a drain of 3h 1m is over"),
    ),
    (
        "a cool-down that is over before the replica serves",
        _example("TPU2009"),
        "TPU2009",
        False,
        ("cool-down of 2m 0s", "a cold start takes about 11 min", "16 min or more"),
    ),
    (
        "no way to the hub",
        _example("TPU2119"),
        "TPU2119",
        False,
        ("vllm/vllm-tpu", "Cloud NAT"),
    ),
]


@pytest.mark.parametrize(("settings", "code", "is_error", "words"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_problem_is_told_with_its_figures(
    settings: dict[str, Any], code: str, is_error: bool, words: tuple[str, ...]
) -> None:
    answer = next(d for d in diagnostics_of(settings) if d.code == code)
    assert (answer.severity is Severity.ERROR) is is_error
    for word in words:
        assert word in f"{answer.message} {answer.hint}"


def test_the_measured_start_is_told_only_what_its_api_key_leaves_open() -> None:
    assert [each.code for each in diagnostics_of()] == ["TPU2010"]


@pytest.mark.parametrize(
    "settings",
    [
        {"placement.max_run_duration": "20m", "health.timeout": "20m", "lifecycle.drain_timeout": "15m"},
        {"placement.max_run_duration": "1h", "replicas": 2},
        {"placement.max_run_duration": "3h", "lifecycle.on_run_end": "renew"},
        {"scale.max": 4},
    ],
    ids=["one replica", "two replicas", "a renewal", "the default cool-down"],
)
def test_durations_with_time_for_a_start_have_nothing_to_be_told(settings: dict[str, Any]) -> None:
    codes = {"TPU2005", "TPU2007", "TPU2008", "TPU2009"}
    assert codes.isdisjoint(_codes(diagnostics_of(settings)))


def test_a_problem_points_at_the_line_that_wrote_it() -> None:
    (answer,) = (each for each in diagnostics_of({"serving.kv_cache_dtype": "fp8"}) if each.code != "TPU2010")
    assert answer.path == "serving.kv_cache_dtype"
    assert answer.location is not None
    assert "fp8" in answer.location.text


@pytest.mark.parametrize("code", ["TPU2101", "TPU2102", "TPU2103"])
def test_only_one_of_the_reasons_not_to_fit_is_told(code: str) -> None:
    settings = next(case[1] for case in CASES if case[2] == code)
    fits = [d for d in diagnostics_of(settings) if d.code in {"TPU2101", "TPU2102", "TPU2103"}]
    assert [d.code for d in fits] == [code]


def test_the_largest_length_that_is_named_is_the_largest_that_fits() -> None:
    settings = next(case[1] for case in CASES if case[2] == "TPU2103")
    answer = next(d for d in diagnostics_of(settings) if d.code == "TPU2103")
    length = int(answer.hint.split("max_model_len: ")[1].split()[0])  # the second way, after utilization
    assert budget({**settings, "serving.max_model_len": length}).fits
    assert not budget({**settings, "serving.max_model_len": length + 16}).fits


def test_the_utilization_that_is_named_is_not_warned_about() -> None:
    settings = {"tpu.type": "v5litepod-1", "serving.hbm_utilization": 0.92}
    assert "TPU2105" not in _codes(diagnostics_of(settings))


@pytest.mark.parametrize(
    "settings",
    [
        {"serving.hbm_utilization": 0.975},
        {"model.id": "meta-llama/Llama-3.1-8B", "serving.hbm_utilization": 0.98},
        {"model.id": "google/gemma-4-31B-it", **E2B_ON_FOUR, "serving.hbm_utilization": 0.98},
        {"serving.hbm_utilization": 0.99, f"{ARGS}.enforce_eager": True},
    ],
    ids=["less than on v5e", "text alone", "four chips", "nothing compiled at boot"],
)
def test_a_boot_that_may_succeed_is_only_warned_about(settings: dict[str, Any]) -> None:
    assert [d.severity for d in diagnostics_of(settings) if d.code == "TPU2105"] == [Severity.WARNING]


def test_arrays_that_cannot_go_in_are_an_error_on_any_chip_and_model() -> None:
    settings: dict[str, Any] = {"model.id": "google/gemma-4-31B-it", "tpu.type": "v6e-8"}
    for release, utilization in (("v0.31.0", 0.99), ("v0.32.0", 0.997)):
        image = {"serving.image": f"vllm/vllm-tpu:{release}", "serving.hbm_utilization": utilization}
        answers = diagnostics_of({**settings, **image})
        assert [d.severity for d in answers if d.code == "TPU2105"] == [Severity.ERROR]


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"serving.max_model_len": 262144, "serving.env": {"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"}}, "TPU2104"),
        ({f"{ARGS}.quantization": "fp8", "serving.env": {"MODEL_IMPL_TYPE": "vllm"}}, "TPU2114"),
        ({"serving.volumes": {"/tmp/hub": "/root/.cache/huggingface"}}, "TPU2116"),
    ],
    ids=["a length beyond the model that is allowed", "weights that another implementation reads", "/tmp is on disk"],
)
def test_what_boots_is_no_error(settings: dict[str, Any], code: str) -> None:
    assert code not in _codes(diagnostics_of(settings))


def test_a_mirror_of_the_hub_needs_no_way_to_it() -> None:
    settings = {"placement.network.external_ip": False, "serving.env": {"HF_ENDPOINT": "http://hub.internal"}}
    assert [d.path for d in diagnostics_of(settings) if d.code == "TPU2119"] == ["serving.image"]


def test_mirrored_weights_need_no_way_to_the_hub_and_lie_on_the_disk() -> None:
    settings = {
        "model.mirror": "gs://bucket/weights",
        "placement.network.external_ip": False,
        "serving.volumes": {"/dev/shm": "/dev/shm"},
        "serving.env": {"HF_HOME": "/dev/shm"},
    }
    answer = diagnostics_of(settings)
    assert [d.path for d in answer if d.code == "TPU2119"] == ["serving.image"]
    assert "TPU2116" not in _codes(answer)
    assert "TPU2117" in _codes(diagnostics_of({**settings, "tpu.boot_disk_size": "20GiB"}))


def test_a_cache_for_a_bucket_has_to_be_in_a_volume() -> None:
    cached = {"serving.xla_cache_bucket": "gs://bucket/xla"}
    answer = next(d for d in diagnostics_of({**cached, "serving.volumes": {}}) if d.code == "TPU2115")
    assert answer.severity is Severity.ERROR
    assert "TPU2115" not in _codes(diagnostics_of({**cached, "serving.volumes": {"/dev/shm": "/root/.cache"}}))


def test_heads_that_do_not_divide_are_an_error() -> None:
    config = {"architectures": ["LlamaForCausalLM"], **_llama(heads=12, kv_heads=3)}
    answer = next(d for d in diagnostics_of({"tpu.type": "v6e-8"}, config) if d.code == "TPU2106")
    assert answer.severity is Severity.ERROR
    assert "12 attention heads" in answer.message


def test_weights_in_memory_that_are_larger_than_its_half_are_an_error() -> None:
    in_memory = {"serving.volumes": {"/dev/shm": "/dev/shm"}, "serving.env": {"HF_HOME": "/dev/shm"}}
    settings = {"model.id": "meta-llama/Llama-3.1-70B", **in_memory}
    assert [d.severity for d in diagnostics_of({**settings, "tpu.type": "v6e-8"}) if d.code == "TPU2116"] == [
        Severity.WARNING
    ]
    assert [d.severity for d in diagnostics_of({**settings, "tpu.type": "v6e-1"}) if d.code == "TPU2116"] == [
        Severity.ERROR
    ]


def test_no_videos_need_no_step_for_one() -> None:
    settings = {"serving.max_num_batched_tokens": 2048, f"{ARGS}.limit_mm_per_prompt": {"image": 4, "video": 0}}
    assert "TPU2109" not in _codes(diagnostics_of(settings))


def test_more_chips_for_the_weights_alone_are_not_warned_about() -> None:
    settings = {"model.id": "google/gemma-4-26B-A4B-it", **E2B_ON_FOUR}
    assert "TPU2107" not in _codes(diagnostics_of(settings))


def test_a_model_that_the_catalogue_does_not_know_is_checked_as_far_as_it_can_be() -> None:
    settings = {"model.id": "somebody/something", "tpu.boot_disk_size": "10GiB"}
    assert isinstance(deployment(settings).budget, Unsized)
    answer = {d.code: d for d in diagnostics_of(settings)}
    assert answer.keys() == {"TPU2010", "TPU2117", "TPU2120"}
    assert "31.0 GiB" in answer["TPU2117"].message
    assert "whether the weights fit on the boot disk" in answer["TPU2120"].message


@pytest.mark.parametrize("model_id", ["google/gemma-4-31b-it", "Google/Gemma-4-31B-IT", "google/gemma4-31b-it"])
def test_a_model_id_in_the_wrong_case_gets_the_right_one_as_a_suggestion(model_id: str) -> None:
    (spelling,) = (d for d in diagnostics_of({"model.id": model_id}) if "Did you mean" in d.hint)
    assert "Did you mean `google/gemma-4-31B-it`?" in spelling.hint


# What makes sizing impossible, and how.
OBSTACLES: dict[str, dict[str, Any]] = {
    "an unknown model": {"model.id": "somebody/something"},
    "adapters": {f"{ARGS}.enable_lora": True},
    "a draft model": {f"{ARGS}.speculative_config": {"method": "eagle3", "model": "x", "num_speculative_tokens": 3}},
    "quantised weights": {f"{ARGS}.quantization": "compressed-tensors"},
    "another sharding": {"serving.env.USE_2D_TP": "1"},
    "an overridden config": {f"{ARGS}.hf_overrides": {"x": 1}},
}
# What needs no size: settings alone decide these, or the model's id.
_OF_THE_ID = {
    "TPU2114",
    "TPU2120",
    "TPU2122",
    "TPU2123",
    "TPU2124",
    "TPU2126",
    "TPU2127",
    "TPU2128",
    "TPU2129",
    "TPU2130",
    "TPU2131",
}
SIZED_CODES = [code for code in EXAMPLES if code.startswith("TPU21") and code not in _OF_THE_ID]


@pytest.mark.parametrize("obstacle", list(OBSTACLES))
@pytest.mark.parametrize("code", SIZED_CODES)
def test_a_check_either_finds_its_example_or_is_named_as_not_made(code: str, obstacle: str) -> None:
    """An obstacle may hide no check: each one reports what it can, or the profile says that it did not run."""
    settings = {**_example(code), **OBSTACLES[obstacle]}
    answer = {d.code: d for d in diagnostics_of(settings)}
    if code in answer:
        return

    open_subjects = [subject.what for subject in SUBJECTS if code in subject.codes]
    assert any(what in answer["TPU2120"].message for what in open_subjects), answer


@pytest.mark.parametrize("code", ["TPU2101", "TPU2102", "TPU2103", "TPU2105"])
def test_what_does_not_fit_without_an_adapter_does_not_fit_with_it(code: str) -> None:
    settings = {**_example(code), f"{ARGS}.enable_lora": True, "serving.image": "vllm/vllm-tpu:v0.31.0"}
    answer = next(d for d in diagnostics_of(settings) if d.code == code)
    assert answer.severity is Severity.ERROR
    assert "at least" in answer.message or "at most" in answer.message


@pytest.mark.parametrize(
    ("part", "is_bound"),
    [({"num_nextn_predict_layers": 1}, True), ({"quantization_config": {"quant_method": "awq"}}, False)],
)
def test_a_config_with_a_part_that_is_not_covered_is_sized_without_it_or_checked_without_bytes(
    part: dict[str, Any], is_bound: bool
) -> None:
    config = {"architectures": ["MistralForCausalLM"], **_llama(heads=12, kv_heads=4), **part}
    budget = deployment({}, config).budget
    assert isinstance(budget, Unsized)
    assert (budget.at_least is not None) is is_bound
    assert "TPU2106" in _codes(diagnostics_of({"tpu.type": "v6e-8"}, config))


def test_an_image_and_weights_of_googles_own_need_no_way_out() -> None:
    settings = {
        "placement.network.external_ip": False,
        "serving.image": "us-docker.pkg.dev/my-project/vllm/vllm-tpu:v0.32.0",
        "model.id": "gs://bucket/weights",
    }
    assert "TPU2119" not in _codes(diagnostics_of(settings))


def test_codes_stand_once() -> None:
    codes = [row.code for row in CHECKS]
    assert len(codes) == len(set(codes))


def _codes(diagnostics: list[Diagnostic]) -> list[str]:
    return [d.code for d in diagnostics]


def _llama(*, heads: int, kv_heads: int) -> dict[str, int]:
    return {
        "num_hidden_layers": 4,
        "hidden_size": 768,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": 2_048,
        "vocab_size": 32_000,
        "max_position_embeddings": 32_768,
    }


@pytest.mark.parametrize(
    "change",
    [
        {"serving.max_num_batched_tokens": 512},
        {"serving.block_size": 128},
        {"serving.kv_cache_dtype": "fp8"},
        {"serving.image": "vllm/vllm-tpu:v0.31.0"},
        {"model.id": "meta-llama/Llama-3.1-8B", "tpu.type": "v6e-1"},
    ],
    ids=str,
)
def test_a_kernel_of_which_the_compiler_was_not_asked_is_not_refused(change: dict[str, Any]) -> None:
    codes = {each.code for each in diagnostics_of({**_example("TPU2132"), **change})}
    assert "TPU2132" not in codes
