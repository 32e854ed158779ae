"""`tpudeploy size` as people and programs use it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Open

import tpudeploy as td
from tpudeploy.cli.main import main
from tpudeploy.domain.budget import HbmBudget, Unsized

ROOT = Path(__file__).parents[2]
PROFILE = ROOT / "profiles" / "gemma4-e2b-v6e1.yaml"
PROMISED = {
    "weights_bytes_per_chip",
    "kv_bytes_per_token_per_chip",
    "block_size",
    "num_blocks",
    "kv_cache_tokens",
    "max_concurrency",
    "program_bytes_per_chip",
    "free_bytes_per_chip",
    "hbm_bytes_per_chip",
    "fits",
    "graphs",
    "cold_start_seconds",
    "estimates",
    "diagnostics",
}
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "max_position_embeddings": 131072,
    "num_attention_heads": 32,
    "num_hidden_layers": 16,
    "num_key_value_heads": 8,
    "tie_word_embeddings": True,
    "vocab_size": 128256,
}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["size", *arguments])
    answer = capsys.readouterr()
    return code, answer.out, answer.err


def test_auto_is_the_most_that_the_cache_holds(capsys: pytest.CaptureFixture[str]) -> None:
    """A warning of a library is an error in tests: `auto` was one, each time a profile was read."""
    setting = ("-set", "serving.max_model_len=auto")
    most = as_json(capsys, str(PROFILE), *setting, "-set", "serving.hbm_utilization=0.31")
    whole = as_json(capsys, str(PROFILE), *setting)

    assert whole["max_model_len"] == 131_072  # the model's own limit
    assert 0 < most["max_model_len"] < 131_072
    assert most["fits"]
    assert most["max_concurrency"] >= 1


def test_an_image_of_another_version_is_told_once_beside_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = run(capsys, str(PROFILE), "-set", "serving.image=vllm/vllm-tpu:v0.26.0")

    assert err.count("[TPU1341]") == 1
    assert "neither is certain for 0.26.0" in err


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code, out, _ = run(capsys, "--json", *arguments)
    tree: dict[str, Any] = json.loads(out)
    assert code == (13 if tree["fits"] is False else 0)
    return tree


def test_a_person_reads_what_a_chip_holds_and_what_that_serves(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, str(PROFILE))
    assert code == 0
    for words in (
        "weights    8.97 GiB",
        "windows save nothing",
        "1,152,000 tokens",
        "35.2 at once",
        "199 graphs",
        "fits",
    ):
        assert words in out
    (bar,) = [line for line in out.splitlines() if "█▓" in line]
    assert len(bar.strip()) == 56
    assert max(map(len, out.splitlines())) <= 110


def test_what_is_too_much_for_a_chip_is_cut_off_at_the_end_of_its_bar(capsys: pytest.CaptureFixture[str]) -> None:
    changes = ("--set", "serving.hbm_utilization=0.99", "--set", "serving.max_num_seqs=4096")
    _, out, _ = run(capsys, str(PROFILE), *changes)
    (bar,) = [line for line in out.splitlines() if "█▓" in line]
    assert len(bar.strip()) == 56
    assert "·" not in bar


def test_a_program_reads_everything_that_is_promised(capsys: pytest.CaptureFixture[str]) -> None:
    tree = as_json(capsys, str(PROFILE))
    assert set(tree) >= PROMISED
    assert tree["graphs"]["total"] == sum(tree["graphs"]["by_category"].values()) == 199
    assert tree["num_blocks"] == pytest.approx(17_996, rel=0.001)
    assert tree["fits"] is True
    assert tree["precision"] == {"weights": "bfloat16", "kv": "bfloat16", "compute": "bfloat16"}


def test_a_program_reads_the_profiles_own_warnings_too(capsys: pytest.CaptureFixture[str]) -> None:
    tree = as_json(capsys, str(PROFILE), "--set", "serving.image=vllm/vllm-tpu:nightly")
    assert "TPU1340" in [d["code"] for d in tree["diagnostics"]]


def test_what_does_not_fit_is_an_answer_with_its_problems(capsys: pytest.CaptureFixture[str]) -> None:
    tree = as_json(capsys, str(PROFILE), "--set", "model.id=google/gemma-4-31B-it")
    assert tree["fits"] is False
    assert "TPU2101" in [d["code"] for d in tree["diagnostics"]]
    code, out, err = run(capsys, str(PROFILE), "--set", "model.id=google/gemma-4-31B-it")
    assert code == 13
    assert "does not fit: 58.25 GiB of weights a chip" in out
    assert "tpu.type: v6e-4 is enough" in err


def test_a_sweep_shows_the_best_and_why_others_fail(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, str(ROOT / "profiles" / "gemma4-31b-v6e8.yaml"), "--sweep")
    assert "that no other one beats" in out
    assert "the weights do not fit" in out
    tree = as_json(capsys, str(PROFILE), "--sweep")
    assert {"kv_cache_tokens", "usd_per_hour", "cold_start_seconds"} <= set(tree["sweep"]["best"][0])


def test_a_model_that_nobody_knows_is_a_note_and_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    unknown = ("--set", "model.id=somebody/something")
    code, out, _ = run(capsys, str(PROFILE), *unknown)
    assert code == 0
    assert "Cannot size this, because the catalogue does not know somebody/something" in out
    assert as_json(capsys, str(PROFILE), *unknown)["fits"] is None
    code, out, _ = run(capsys, str(PROFILE), "--sweep", *unknown)
    assert code == 0


def test_a_local_config_sizes_a_model_that_nobody_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = PROFILE.read_text(encoding="utf-8").replace(
        "  id: google/gemma-4-E2B-it", "  id: me/mine\n  config: ./deep/config.json"
    )
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    # 128,256 x 2,048 embeddings, 16 layers of 60,821,504 and the last norm; two bytes each.
    assert as_json(capsys, str(tmp_path / "mine.yaml"))["weights_bytes_per_chip"] == 2 * 1_235_814_400


def test_a_config_that_is_not_there_is_an_error_at_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = PROFILE.read_text(encoding="utf-8").replace("E2B-it\n", "E2B-it\n  config: missing.json\n")
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    code, _, err = run(capsys, str(tmp_path / "mine.yaml"))
    assert code == 1
    assert "missing.json does not exist" in err
    assert "config: missing.json" in err


def test_the_library_sizes_a_profile(capsys: pytest.CaptureFixture[str]) -> None:
    size = td.size(td.Profile.load(PROFILE))
    assert isinstance(size, td.Size)
    assert isinstance(size.budget, HbmBudget)
    assert size.to_dict() == as_json(capsys, str(PROFILE))
    assert isinstance(td.size(td.Profile.load(PROFILE, set={"model.id": "a/b"})).budget, Unsized)


def test_a_plan_shows_what_a_chip_will_hold(cli: Open) -> None:
    with_project = cli()
    name = with_project.write()
    result = with_project.run("plan", name, "--set", "placement.project=my-project")
    assert "a chip holds 8.97 GiB of weights" in result.words
    result = with_project.run(
        "plan", name, "--set", "placement.project=my-project", "--set", "model.id=google/gemma-4-31B-it"
    )
    assert result.code == 13
    assert "TPU2101" in result.all


@pytest.mark.parametrize("path", sorted((ROOT / "profiles").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_profile_fits(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = as_json(capsys, str(path))
    assert tree["fits"] is True
    assert tree["free_bytes_per_chip"] > 0
    assert not [d for d in tree["diagnostics"] if d["severity"] == "error"]
