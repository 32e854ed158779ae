"""A person without a profile answers four questions at a terminal, and has one that is valid."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import command
from pseudo_terminal import person

from tpudeploy import Profile
from tpudeploy.adapters import assets
from tpudeploy.cli.first_profile import Answers, value_of, with_answers


def test_answers_become_a_profile_and_the_next_command_needs_no_account(tmp_path: Path) -> None:
    with person("init", "mine.yaml", folder=tmp_path, environment={"NO_COLOR": "1"}) as somebody:
        somebody.waits_for("Start from profile [gemma4-e2b-v6e1]: ").types("gemma4-e2b-v6e\n")
        somebody.waits_for("Did you mean `gemma4-e2b-v6e").types("gemma4-e2b-v6e1\n")
        somebody.waits_for("Model [google/gemma-4-E2B-it]: ").types("\n")
        somebody.waits_for("Slice type [v6e-1]: ").types("v6e-4\n")
        somebody.waits_for("Zones, separated by commas [all]: ").types("us-east5-a, us-east5-x\n")
        somebody.waits_for("There is no `us-east5-x`. Did you mean `us-east5-").types("us-east5-a, us-east5-b\n")
        somebody.waits_for("Secret with the API key [none]: ").types("vllm-key\n")
        assert somebody.stays_to_the_end() == 0
    assert "Wrote mine.yaml, and profile.schema.json" in somebody.read
    assert "gemma4-e2b  google/gemma-4-E2B-it on v6e-4, 4 chips" in somebody.read
    assert somebody.read.rstrip().endswith("tpudeploy emulator run -- tpudeploy apply -auto-approve mine.yaml")
    spec = Profile.load(tmp_path / "mine.yaml")
    assert (spec.tpu.type, [*spec.placement.zones]) == ("v6e-4", ["us-east5-a", "us-east5-b"])
    assert {*spec.secrets} == {"HF_TOKEN", "VLLM_API_KEY"}


@pytest.mark.parametrize("words", [("-input=false",), ("-from", "gemma4-e2b-v6e4")])
def test_nothing_is_asked_where_the_command_line_says_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    with person("init", *words, folder=tmp_path, environment={}) as somebody:
        assert somebody.stays_to_the_end() == 0
    assert "[" not in somebody.read
    assert "Next: tpudeploy plan" in somebody.read


def test_nothing_is_asked_without_a_terminal(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tpudeploy", "init"]
    process = subprocess.run(
        command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    assert process.stdout.startswith("Wrote ")


def test_a_file_that_exists_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("mine", encoding="utf-8")
    with person("init", "mine.yaml", folder=tmp_path, environment={}) as somebody:
        assert somebody.stays_to_the_end() == 1
    assert "is not overwritten" in somebody.read


@pytest.mark.parametrize("name", sorted(assets.profiles()))
def test_every_shipped_profile_takes_the_answers_and_stays_valid(tmp_path: Path, name: str) -> None:
    text = assets.profiles()[name]
    zones = ("us-east5-a", "us-east5-b")
    answers = Answers(model=value_of(text, "id"), type=value_of(text, "type"), zones=zones, api_key="vllm-key")
    path = tmp_path / "mine.yaml"
    path.write_text(with_answers(text, answers), encoding="utf-8")
    spec = Profile.load(path)
    assert (spec.model.id, [*spec.placement.zones]) == (value_of(text, "id"), [*zones])
    assert path.read_text(encoding="utf-8").count("VLLM_API_KEY: vllm-key") == 1


CHOICES: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("Qwen/Qwen3-8B", "v6e-4", {"tool_call_parser": "hermes", "reasoning_parser": "qwen3"}),
    ("Qwen/Qwen3-32B", "v6e-8", {"tool_call_parser": "hermes", "reasoning_parser": "qwen3"}),
    ("meta-llama/Llama-3.1-8B", "v6e-1", {}),
    ("meta-llama/Llama-3.3-70B-Instruct", "v6e-8", {"tool_call_parser": "llama3_json"}),
    ("Qwen/Qwen2.5-7B-Instruct", "v5litepod-8", {"tool_call_parser": "hermes"}),
    ("Qwen/Qwen3-Embedding-8B", "v6e-4", {"runner": "pooling"}),
    ("google/gemma-4-31B-it", "v6e-8", {"tool_call_parser": "gemma4", "reasoning_parser": "gemma4"}),
    ("somebody/something", "v6e-1", {}),
)


@pytest.mark.parametrize(("model", "type_name", "arguments"), CHOICES)
def test_another_model_has_a_profile_of_its_own_facts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str, type_name: str, arguments: dict[str, str]
) -> None:
    shipped = assets.profiles()["gemma4-e2b-v6e1"]
    text = with_answers(shipped, Answers(model=model, type=type_name, zones=(), api_key=""))
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    spec = Profile.load(tmp_path / "mine.yaml")
    assert (spec.model.id, spec.tpu.type) == (model, type_name)
    multimodal = {"disable_chunked_mm_input": True, "limit_mm_per_prompt": {"image": 4}} if "gemma" in model else {}
    tools = {"enable_auto_tool_choice": True} if "tool_call_parser" in arguments else {}
    assert spec.serving.args == {**multimodal, **tools, **arguments}
    for measured in ("11 minutes", "1,151,744", "2,496", "E2B", "was seen", "one KV head"):
        assert measured not in text
    validated = command(tmp_path, capsys, "validate", "mine.yaml")
    assert validated.code == 0, validated.all
    assert "another family" not in validated.all


def test_another_slice_of_the_same_model_has_no_measurement_of_the_first() -> None:
    shipped = assets.profiles()["gemma4-e2b-v6e1"]
    text = with_answers(shipped, Answers(model="google/gemma-4-E2B-it", type="v6e-4", zones=(), api_key=""))
    assert "name: gemma4-e2b\n" in text
    assert "1,151,744" not in text
    assert "tool_call_parser: gemma4" in text
