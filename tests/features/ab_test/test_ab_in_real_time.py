"""An A/B in real time: our own load client finds what a machine does; Ctrl-C at a terminal brings back the server before."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command_line import PROFILE
from pseudo_terminal import INTERRUPT, person

from tpudeploy.cli.main import main
from tpudeploy.emulator import RealClock, running

QUICK = {"queued": 0, "waiting": 0, "provisioning": 0, "patch": 0, "boot": 0}
HASTE = {"TPUDEPLOY_PATIENCE_POLL_FIRST": "0.05", "TPUDEPLOY_PATIENCE_POLL_MOST": "0.1"}
HANGS = "#!{python} -IS\nimport time\ntime.sleep(600)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a profile in it, and all that is typed in a hurry."""
    monkeypatch.delenv("TPUDEPLOY_BACKEND", raising=False)
    monkeypatch.chdir(tmp_path)
    for name, value in {"NO_COLOR": "1", **HASTE}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "gemma.yaml").write_text(PROFILE, encoding="utf-8")
    return tmp_path


def test_a_machine_that_a_flag_makes_three_times_as_slow_is_found_to_be(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # Long tokens: what a busy machine adds to each is small beside them.
    boot = {"token_seconds": 0.05, "paces": {"VLLM_TPU_BUCKET_PADDING_GAP=512": 3}}
    with running(clock=RealClock(), scenario={"nodes": "simulated", "timings": QUICK, "boot": boot}) as cloud:
        monkeypatch.setenv("TPU_EMULATOR_HOST", cloud.host)
        assert main(["apply", "-auto-approve", "gemma.yaml"]) == 0
        capfd.readouterr()
        words = ("-concurrency", "2", "-context", "16", "-output", "4", "-window", "1.5s", "-repeats", "2")
        assert (
            main(["compare", "gemma.yaml", "-ab", "serving.padding_gap=0,512", *words, "-auto-approve", "-json"]) == 0
        )
        tree = json.loads(capfd.readouterr().out)
        assert main(["plan", "gemma.yaml", "-detailed-exitcode"]) == 0
    (tpot,) = (row["effect"] for row in tree["rows"] if row["measure"] == "tpot")
    assert tpot["change"] == pytest.approx(2.0, rel=0.2)
    assert (tree["keep"], tree["reason"]) == ("A", "worse")
    assert (folder / ".tpudeploy" / "runs" / "ab").exists()


def test_ctrl_c_while_an_arm_is_measured_brings_back_the_server_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "vllm").write_text(HANGS.format(python=sys.executable), encoding="utf-8")
    (folder / "vllm").chmod(0o755)
    with running(clock=RealClock(), scenario={"nodes": "simulated", "timings": QUICK}) as cloud:
        monkeypatch.setenv("TPU_EMULATOR_HOST", cloud.host)
        assert main(["apply", "-auto-approve", "gemma.yaml"]) == 0
        capfd.readouterr()
        words = ("compare", "gemma.yaml", "-ab", "serving.block_size=32,64", "-driver", "vllm")
        with person(*words, folder=folder, environment={"PATH": str(folder)}) as somebody:
            somebody.waits_for("Enter a value: ").types("yes\n").waits_for("measuring").types(INTERRUPT)
            assert somebody.stays_to_the_end() == 130
        assert main(["plan", "gemma.yaml", "-detailed-exitcode"]) == 0
    assert "8 restarts: nothing serves for about" in somebody.read
    assert "1/7  A  serving.block_size=32" in somebody.read
    answer = somebody.read.partition("Interrupted: the complete measurements are kept.")[2]
    assert "Restoring gemma to its profile. Ctrl-C leaves it as it is." in answer
    assert "gemma[0]: Restart complete" in answer
    assert "Error: Interrupted. 0 of 7 repeats are kept. [TPU0130]" in answer
    assert "Continue with: tpudeploy compare gemma.yaml --resume ab-" in answer
