"""The engine of an image is known or said to be unknown, and no figure or flag is taken for another engine's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open

HMA = {
    "kv_connector": "TPUConnectorHMA",
    "kv_role": "kv_both",
    "kv_connector_module_path": "tpu_inference.distributed.tpu_connector_hma",
}
DIGEST = f"vllm/vllm-tpu@sha256:{'a' * 64}"
OWN = "us-docker.pkg.dev/my-project/serving/our-server:v1.2.3"


@pytest.fixture
def at(cli: Open) -> CommandLine:
    opened: CommandLine = cli()
    opened.write()
    return opened


def image(name: str) -> tuple[str, str]:
    return "--set", f"serving.image={name}"


def size(at: CommandLine, *words: str) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(at.run("size", "gemma.yaml", "-json", *words).out)
    return tree


def problems(at: CommandLine, *words: str) -> Mapping[str, dict[str, Any]]:
    out = at.run("validate", "gemma.yaml", "-format", "json", *words).out
    (profile,) = json.loads(out)["profiles"]
    return {each["code"]: each for each in profile["diagnostics"]}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("vllm/vllm-tpu:nightly", "Which release vllm/vllm-tpu:nightly has is not known"),
        ("vllm/vllm-tpu:nightly-20260801-1a2b3c4-5d6e7f8", "5d6e7f8 has is not known"),
        (DIGEST, "Which release vllm/vllm-tpu has is not known"),
        (OWN, f"Which engine {OWN} has is not known"),
    ],
)
def test_a_release_that_nothing_names_is_said_to_be_unknown_everywhere(
    at: CommandLine, name: str, sentence: str
) -> None:
    warning = problems(at, *image(name))["TPU1341"]
    assert warning["severity"] == "warning"
    assert sentence in warning["message"]
    assert "as 0.32.0 allocates it: neither is certain" in warning["message"]
    sized = at.run("size", "gemma.yaml", *image(name))
    assert "engine: tpu-inference of an unknown release" in sized.words or "engine that is not known" in sized.words
    assert size(at, *image(name))["engine"]["release"] is None
    assert "Figures are for tpu-inference 0.32.0" in sized.words
    planned = at.run("plan", "gemma.yaml", *image(name))
    assert sentence in planned.words
    assert "Figures are for tpu-inference 0.32.0" in planned.words
    assert "unknown release" in planned.words or "an engine that is not known" in planned.words


def test_figures_name_the_release_that_they_are_for(at: CommandLine) -> None:
    assert "TPU1341" not in problems(at)
    assert "engine: tpu-inference 0.32.0, by the tag" in at.run("size", "gemma.yaml").words
    assert size(at)["engine"] == {"kind": "tpu-inference", "release": "0.32.0", "known_from": "tag"}
    assert "For tpu-inference 0.32.0." in at.run("plan", "gemma.yaml").words


def test_an_earlier_release_is_sized_by_its_own_rules(at: CommandLine) -> None:
    steps = ("--set", "serving.max_num_batched_tokens=5000")
    new, old = size(at, *steps), size(at, *steps, *image("vllm/vllm-tpu:v0.29.0"))
    assert (new["token_buckets"][-1], old["token_buckets"][-1]) == (5_008, 8_192)
    assert new["program_bytes_per_chip"] != old["program_bytes_per_chip"]
    assert "For tpu-inference 0.29.0." in at.run("plan", "gemma.yaml", *image("vllm/vllm-tpu:v0.29.0")).words


@pytest.mark.parametrize("release", ["0.29.0", "0.30.0", "0.31.0"])
def test_a_release_with_tables_of_its_own_is_no_doubt(at: CommandLine, release: str) -> None:
    name = image(f"vllm/vllm-tpu:v{release}")
    assert "TPU1341" not in problems(at, *name)
    newer_flag = ("--set", "serving.args.monokernel=true")
    assert "TPU1310" not in problems(at, *newer_flag)
    assert problems(at, *newer_flag, *name)["TPU1310"]["severity"] == "error"


def test_a_release_with_tables_of_flags_alone_names_them(at: CommandLine) -> None:
    message = problems(at, *image("vllm/vllm-tpu:v0.33.0"))["TPU1341"]["message"]
    assert "checked against vLLM 0.33.0, whose plug-in for TPU is not known" in message
    assert "Memory is computed as 0.32.0 allocates it: not certain for 0.33.0" in message


def test_an_unknown_flag_is_an_error_only_where_the_release_is_known(at: CommandLine) -> None:
    flag = ("--set", "serving.args.brand_new_flag=1")
    assert problems(at, *flag)["TPU1310"]["severity"] == "error"
    names = ("vllm/vllm-tpu:nightly", DIGEST, "vllm/vllm-torchtpu:v0.29.0", OWN)
    for name in names:
        warning = problems(at, *flag, *image(name))["TPU1310"]
        assert warning["severity"] == "warning"
        assert "not known" in warning["message"] or "another engine" in warning["message"]
    variable = ("--set", "serving.env.NEW_MODEL_DESIGN=perhaps")
    assert problems(at, *variable)["TPU1335"]["severity"] == "error"
    assert problems(at, *variable, *image("vllm/vllm-tpu:nightly"))["TPU1335"]["severity"] == "warning"


def test_a_known_fault_of_a_release_is_an_error_with_its_source_and_fix(at: CommandLine) -> None:
    settings = ("--set", f"serving.args.kv_transfer_config={json.dumps(HMA)}")
    for release in ("v0.27.0", "v0.28.0", "v0.29.0"):
        fault = problems(at, *settings, *image(f"vllm/vllm-tpu:{release}"))["TPU2128"]
        assert fault["severity"] == "error"
        assert "llm-d pull request 2533" in fault["message"]
        assert "v0.30.0" in fault["hint"]
    assert size(at, *settings, *image("vllm/vllm-tpu:v0.28.0"))["fits"] is False
    for name in ("vllm/vllm-tpu:v0.30.0", "vllm/vllm-tpu:nightly"):
        assert "TPU2128" not in problems(at, *settings, *image(name))


def test_torchtpu_gets_its_own_variables_and_no_promise_or_release_of_another_engine(at: CommandLine) -> None:
    settings = ("--set", "serving.padding_gap=512", "--set", "serving.env.SKIP_JAX_PRECOMPILE='1'")
    torch = problems(at, *settings, *image("vllm/vllm-torchtpu:v0.32.0"))
    assert "another engine than vllm-tpu: torchtpu 0.32.0" in torch["TPU1341"]["message"]
    assert "newest release of torchtpu that is known here is 0.29.0" in torch["TPU1341"]["hint"]
    assert "vllm-tpu:" not in torch["TPU1341"]["hint"]
    assert "does not read" in torch["TPU2129"]["message"]
    tree = size(at, *settings, *image("vllm/vllm-torchtpu:v0.29.0"))
    assert tree["engine"] == {"kind": "torchtpu", "release": "0.29.0", "known_from": "tag"}
    assert (tree["fits"], "graphs" in tree, "num_blocks" in tree) == (None, False, False)
    script = at.run("render", "gemma.yaml", "docker", *image("vllm/vllm-torchtpu:v0.29.0")).out
    assert "TORCH_TPU_TIER3_COMPILATION_CACHE_ROOT=/root/.cache/vllm/xla_cache" in script
    assert "VLLM_XLA_CACHE_PATH" not in script
    assert "TORCH_TPU" not in at.run("render", "gemma.yaml", "docker").out


def test_the_release_that_an_engine_reports_at_boot_is_known_from_then_on(cli: Open) -> None:
    at: CommandLine = cli(boot={"release": "0.31.0"})
    at.write()
    nightly = image("vllm/vllm-tpu:nightly")
    assert "TPU1341" in problems(at, *nightly)
    assert at.run("apply", "gemma.yaml", "-auto-approve", *nightly).code == 0
    lock = json.loads((at.folder / "tpudeploy.lock.json").read_text(encoding="utf-8"))
    assert lock["releases"] == {lock["images"]["vllm/vllm-tpu:nightly"]: "0.31.0"}
    tree = size(at, *nightly)
    assert tree["engine"] == {"kind": "tpu-inference", "release": "0.31.0", "known_from": "boot"}
    assert "TPU1341" not in problems(at, *nightly)
    newer_flag = ("--set", "serving.args.monokernel=true")
    assert problems(at, *nightly, *newer_flag)["TPU1310"]["severity"] == "error"


def test_a_verified_boot_says_how_far_off_the_prediction_was(cli: Open) -> None:
    at: CommandLine = cli(boot={"kv_blocks": 18_000})
    at.write()
    assert size(at)["boots"] == []
    at.run("apply", "gemma.yaml", "-auto-approve")
    (boot,) = size(at)["boots"]
    assert (boot["engine"], boot["release"], boot["model"]) == ("tpu-inference", "0.32.0", "google/gemma-4-E2B-it")
    assert boot["predicted"]["num_blocks"] > 0
    assert boot["measured"]["num_blocks"] > 0
    assert boot["predicted"]["weights_seconds"] > 0
    sized = at.run("size", "gemma.yaml").words
    assert "1 verified boot of this engine, model and slice; of the last one" in sized
    assert size(at, *image("vllm/vllm-tpu:v0.30.0"))["boots"] == []


def test_what_upstream_has_not_tested_is_said_in_one_line_and_is_no_warning(at: CommandLine) -> None:
    untested = ("--set", "model.id=Qwen/Qwen3-8B", "--set", "serving.args={}")
    line = "Qwen/Qwen3-8B is untested on v6e (vllm-project/tpu-inference 0.27.0, "
    for command in ("validate", "size", "plan"):
        assert line in at.run(command, "gemma.yaml", *untested).words
        assert "is untested" not in at.run(command, "gemma.yaml").words
    assert size(at, *untested)["support"]["support"] == "untested"
    broken = at.run("size", "gemma.yaml", "--set", "model.id=google/gemma-4-26B-A4B-it", "--set", "tpu.type=v6e-4")
    assert "does not pass on v6e: not enough hbm" in broken.words


def test_logs_are_exported_without_what_is_private_and_never_over_a_file(at: CommandLine) -> None:
    at.write("Using key projects/my-project/secrets/vllm-key from 10.0.0.7\n", "boot.log")
    wrote = at.run("logs", "gemma.yaml", "-file", "boot.log", "-export", "issue.txt")
    text = (at.folder / "issue.txt").read_text(encoding="utf-8")
    assert wrote.code == 0
    assert "engine: tpu-inference 0.32.0" in text
    assert "my-project" not in text
    assert "10.0.0.7" not in text
    assert at.run("logs", "-file", "boot.log", "-export", "issue.txt").code != 0


VERSION = "org.opencontainers.image.version"
SOURCE = "org.opencontainers.image.source"
TITLE = "org.opencontainers.image.title"


@pytest.mark.parametrize(
    ("labels", "title", "origin"),
    [
        ({VERSION: "0.31.0", TITLE: "vllm-tpu"}, "tpu-inference 0.31.0", "labels"),
        (
            {VERSION: "v0.29.0", SOURCE: "https://github.com/vllm-project/tpu-inference.git"},
            "tpu-inference 0.29.0",
            "labels",
        ),
        ({VERSION: "0.31.1rc1.dev80+g1a2b3c4"}, "tpu-inference 0.31.1rc1", "labels"),
        ({VERSION: "0.29.0", TITLE: "vllm-torchtpu"}, "torchtpu 0.29.0", "labels"),
        # What an image inherits from the one that it is built on.
        (
            {VERSION: "24.04", "org.opencontainers.image.ref.name": "ubuntu"},
            "tpu-inference of an unknown release",
            "none",
        ),
        ({VERSION: "3.12.11"}, "tpu-inference of an unknown release", "none"),
        ({VERSION: "0.31.0", TITLE: "our base"}, "tpu-inference of an unknown release", "none"),
        ({}, "tpu-inference of an unknown release", "none"),
    ],
)
@pytest.mark.parametrize("name", ["vllm/vllm-tpu:nightly", DIGEST])
def test_the_labels_of_an_image_tell_its_engine_and_are_kept_with_the_pin(
    cli: Open, name: str, labels: Mapping[str, str], title: str, origin: str
) -> None:
    at: CommandLine = cli(project={"labels": {name: labels}})
    at.write()
    words = image(name)
    plan = at.run("plan", "gemma.yaml", *words)
    assert title in plan.words
    assert at.run("apply", "gemma.yaml", "-auto-approve", "-wait", "accepted", *words).code == 0
    before = len(at.emulator.requests)
    assert size(at, *words)["engine"]["known_from"] == origin
    assert f"engine: {title}" in at.run("size", "gemma.yaml", *words).words
    assert at.run("plan", "gemma.yaml", *words).code == 0
    assert not [r for r in at.emulator.requests[before:] if r.path.startswith("/registry")], "the lock file has them"


def test_labels_tell_the_engine_of_an_image_with_a_name_of_its_own(cli: Open) -> None:
    at: CommandLine = cli(project={"labels": {OWN: {VERSION: "0.31.0", TITLE: "vllm-tpu"}}})
    at.write()
    planned = at.run("plan", "gemma.yaml", *image(OWN)).words
    assert "For tpu-inference 0.31.0" in planned
    assert "TPU1341" not in planned
    at.run("apply", "gemma.yaml", "-auto-approve", "-wait", "accepted", *image(OWN))
    assert "engine: tpu-inference 0.31.0, by the labels" in at.run("size", "gemma.yaml", *image(OWN)).words


def test_a_registry_that_shows_no_labels_leaves_the_release_unknown_and_stops_nothing(cli: Open) -> None:
    at: CommandLine = cli(trouble=({"fault": "unavailable", "method": "registry.blobs.get"},))
    at.write()
    result = at.run("apply", "gemma.yaml", "-auto-approve", *image(DIGEST))
    assert result.code == 0
    assert "Which release vllm/vllm-tpu has is not known" in result.words


@pytest.mark.parametrize("witness", ["labels", "boot", "lock file"])
def test_a_flag_that_the_release_lacks_is_an_error_once_the_lock_file_tells_the_release(
    cli: Open, witness: str
) -> None:
    at: CommandLine = cli()
    at.write()
    digest = f"sha256:{'a' * 64}"
    tree: dict[str, Any] = {"format": "tpudeploy.lock/1", "images": {}, "models": {}}
    tree |= {
        "labels": {"labels": {digest: "tpu-inference 0.31.0"}},
        "boot": {"releases": {digest: "0.31.0"}},
        "lock file": {"images": {"vllm/vllm-tpu:v0.31.0": digest}},
    }[witness]
    flag = ("--set", "serving.args.brand_new_flag=1", *image(DIGEST))
    assert problems(at, *flag)["TPU1310"]["severity"] == "warning"
    (at.folder / "tpudeploy.lock.json").write_text(json.dumps(tree), encoding="utf-8")
    refusal = problems(at, *flag)["TPU1310"]
    assert refusal["severity"] == "error"
    assert "vLLM 0.31.0 has no flag" in refusal["message"]
    for command in ("size", "plan"):
        result = at.run(command, "gemma.yaml", *flag)
        assert result.code == 1, result.all
        assert "has no flag" in result.words
    assert at.run("plan", "gemma.yaml", *image(DIGEST)).code == 0


WORKLOAD = ("-users", "16", "-context", "4096", "-output", "256")
FULL = {"kv_cache_usage_perc": 0.97, "num_requests_running": 60, "num_requests_waiting_by_reason.capacity": 40}
# Every command that prints a figure of the arithmetic, with what names the release that it is for.
SURFACES = [
    (("size", "gemma.yaml"), "Figures are for tpu-inference 0.32.0"),
    (("size", "gemma.yaml", "-sweep"), "Figures are for tpu-inference 0.32.0"),
    (("validate", "gemma.yaml"), "memory is computed as 0.32.0 allocates it: neither is certain"),
    (("plan", "gemma.yaml"), "Figures are for tpu-inference 0.32.0"),
    (("recommend", "gemma.yaml", *WORKLOAD), "Figures are for tpu-inference 0.32.0"),
    (("metrics", "gemma.yaml"), "tokens (tpu-inference 0.32.0). More would hold"),
    (("verify", "gemma.yaml"), "Figures are for tpu-inference 0.32.0"),
]


def test_each_command_that_prints_figures_names_the_release_that_they_are_for(cli: Open) -> None:
    at: CommandLine = cli(nodes="simulated", boot={"boot_seconds": 60, "load": FULL})
    at.write(PROFILE.replace("v0.32.0", "nightly"))
    assert at.run("apply", "gemma.yaml", "-auto-approve").code == 0
    (at.folder / "tpudeploy.lock.json").unlink()  # it was not committed: nothing tells the release
    lacking = [words for words, basis in SURFACES if basis not in at.run(*words).words]
    assert lacking == []
    tree = json.loads(at.run("recommend", "gemma.yaml", *WORKLOAD, "-json").out)
    assert tree["engine"] == {"kind": "tpu-inference", "release": None, "known_from": "none"}


@pytest.mark.parametrize("words", [words for words, _ in SURFACES if words[0] not in ("metrics", "verify")])
def test_no_command_promises_blocks_or_graphs_of_an_engine_whose_layout_is_not_known(
    at: CommandLine, words: tuple[str, ...]
) -> None:
    result = at.run(*words, *image("vllm/vllm-torchtpu:v0.29.0"))
    assert "a profiling run decides what is left for the KV cache" in result.words
    for promise in ("blocks of", "graphs", "tokens of KV cache", "such requests run at once", "Figures are for"):
        assert promise not in result.words


def test_recommend_gives_the_error_that_is_in_the_way_and_no_warning(at: CommandLine) -> None:
    result = at.run("recommend", "gemma.yaml", *WORKLOAD, *image("vllm/vllm-tpu:nightly"))
    assert "not tpu7x-1" in result.words or "and " in result.words
    assert 'not tpu7x-1: "nightly" is a floating tag' not in result.words
    assert ': "nightly" is a floating tag' not in result.words.partition("For 16 users")[2]
