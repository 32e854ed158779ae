"""A real vLLM at the end of the chain: an emulated node brings it up by the rendered script, and everything asks it.

Where VLLM_PYTHON names a Python that has a vLLM for CPUs. Time is real here, and so are weights, tokens and logs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tpudeploy.cli.main import main
from tpudeploy.emulator import Emulator, running

pytestmark = pytest.mark.long
PROFILE = """\
version: 1
name: tiny
model:
  id: example/tiny-llama
  config: model/config.json
tpu:
  type: v6e-1
serving:
  image: vllm/vllm-tpu:v0.32.0
  max_model_len: 1024
  max_num_seqs: 8
  hbm_utilization: 0.9
  padding_gap: 512
  args:
    enforce_eager: true
placement:
  zones: [us-east5-a]
  provisioning: [spot]
health:
  timeout: 15m
"""
QUIET = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "NO_COLOR": "1"}
HASTE = {"TPUDEPLOY_PATIENCE_POLL_FIRST": "0.5", "TPUDEPLOY_PATIENCE_POLL_MOST": "2"}


@dataclass(frozen=True, kw_only=True)
class Chain:
    """A folder with a profile in it, and a cloud whose machines run a real engine."""

    folder: Path
    emulator: Emulator
    capture: pytest.CaptureFixture[str]

    def run(self, *words: str, code: int = 0) -> str:
        """Run one command; return all that it wrote."""
        out, err = self._run(*words, code=code)
        return " ".join((out + err).split())

    def document(self, *words: str) -> Any:
        """Run one command with --json; return its document."""
        return json.loads(self._run(*words, "--json", code=0)[0])

    def write(self, text: str) -> str:
        (self.folder / "tiny.yaml").write_text(text, encoding="utf-8")
        return "tiny.yaml"

    def _run(self, *words: str, code: int) -> tuple[str, str]:
        self.capture.readouterr()
        ended = main([*words, "--chdir", str(self.folder)])
        output = self.capture.readouterr()
        assert ended == code, output.out + output.err
        return output.out, output.err


@pytest.fixture
def chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Chain]:
    """Skipped, with the reason, where no vLLM is."""
    python = os.environ.get("VLLM_PYTHON", "")
    if not python:
        pytest.skip("VLLM_PYTHON names no Python that has a vLLM for CPUs")
    maker = Path(__file__).with_name("make_model.py")
    subprocess.run([python, maker, tmp_path / "model"], check=True, cwd=tmp_path, capture_output=True)
    _put_into_the_hubs_cache(tmp_path / "model", tmp_path / "hub")
    for name, value in {**QUIET, **HASTE, "HF_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TPUDEPLOY_BACKEND", raising=False)
    with running(engine=(python, "-m", "vllm.entrypoints.cli.main")) as emulator:
        for name, value in emulator.environment.items():
            monkeypatch.setenv(name, value)
        yield Chain(folder=tmp_path, emulator=emulator, capture=capfd)
        assert not emulator.unsupported


def test_a_real_engine_serves_is_asked_measured_changed_and_brought_back(chain: Chain) -> None:
    _serves_a_real_completion(chain)
    _does_what_the_profile_says(chain)
    _has_a_log_that_is_explained(chain)
    _tells_its_metrics(chain)
    _is_measured(chain)
    _takes_over_a_changed_flag_in_place(chain)
    _comes_back_after_a_flag_that_it_refuses(chain)
    chain.run("destroy", "-auto-approve", "tiny.yaml")
    assert not chain.emulator.live()


def _serves_a_real_completion(chain: Chain) -> None:
    applied = chain.run("apply", "-auto-approve", chain.write(PROFILE))
    assert "Serving at http://" in applied
    answer = chain.document("query", "tiny.yaml", "What is a slice?")
    assert answer["completion_tokens"] > 0
    assert "emulator" not in answer["answer"]


def _does_what_the_profile_says(chain: Chain) -> None:
    verified = chain.run("verify", "tiny.yaml")
    assert "NOT IN EFFECT" not in verified
    assert "max_model_len 1024 1024 (api, log) in effect" in verified
    assert "hbm_utilization 0.9 0.9 (metrics) in effect" in verified
    assert "version 0.32.0 0.32.0 (api, log) in effect" in verified
    # A CPU has another memory: what was planned for a chip is a prediction, and said to be off.
    assert re.search(r"kv_cache_tokens [\d]+ [\d]+ \(metrics, log\) not as predicted", verified)


def _has_a_log_that_is_explained(chain: Chain) -> None:
    explained = chain.run("logs", "-explain", "tiny.yaml")
    assert "until it serves" in explained
    for phase in ("imports, flags", "engine starts", "weights", "warm-up"):
        assert phase in explained
    log = chain.run("logs", "tiny.yaml")
    assert "emulator: dropped the variable VLLM_TPU_BUCKET_PADDING_GAP: only a TPU build reads it" in log


def _tells_its_metrics(chain: Chain) -> None:
    result = chain.run("metrics", "tiny.yaml")
    assert "requests finished" in result
    assert "TTFT p50 <=" in result


def _is_measured(chain: Chain) -> None:
    cells = ("-concurrency", "1,4", "-context", "64,512", "-output", "16", "-window", "5s")
    chain.run("bench", "tiny.yaml", *cells)
    (file,) = (chain.folder / ".tpudeploy" / "runs").glob("*.json")
    run = json.loads(file.read_text(encoding="utf-8"))
    assert run["subject"]["engine"]["version"] == "0.32.0"
    assert [cell["status"] for cell in run["cells"] if cell["status"].startswith("failed")] == []


def _takes_over_a_changed_flag_in_place(chain: Chain) -> None:
    (before,) = chain.emulator.live()["us-east5-a"]
    applied = chain.run("apply", "-auto-approve", chain.write(PROFILE.replace("1024", "512")))
    assert "Change sent to the node" in applied
    assert "max_model_len 512 512 (api, log) in effect" in chain.run("verify", "tiny.yaml")
    assert list(chain.emulator.live()["us-east5-a"]) == [before]


def _comes_back_after_a_flag_that_it_refuses(chain: Chain) -> None:
    """The tokenizer is nowhere: nobody but the engine can know."""
    refused = PROFILE.replace("1024", "512").replace("args:", "args:\n    tokenizer: example/no-such-tokenizer")
    applied = chain.run("apply", "-auto-approve", chain.write(refused), code=13)
    assert "no-such-tokenizer" in applied
    chain.write(PROFILE.replace("1024", "512"))
    assert chain.document("query", "tiny.yaml", "Are you there?")["completion_tokens"] > 0
    assert "max_model_len 512 512 (api, log) in effect" in chain.run("verify", "tiny.yaml")


def _put_into_the_hubs_cache(model: Path, cache: Path) -> None:
    """As huggingface_hub would keep it, so that the engine finds it by its name and asks no network."""
    repository = cache / "models--example--tiny-llama"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("made", encoding="ascii")
    shutil.copytree(model, repository / "snapshots" / "made")
