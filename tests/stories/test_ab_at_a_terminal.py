"""An A/B at a terminal: a person says yes, presses Ctrl-C in the middle, and has the deployment back."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from desk import PROFILE
from pseudo_terminal import INTERRUPT, person

from tpudeploy.cli.main import main
from tpudeploy.emulator import RealClock, running

QUICK = {"queued": 0, "waiting": 0, "provisioning": 0, "patch": 0, "boot": 0}
HASTE = {"TPUDEPLOY_PATIENCE_POLL_FIRST": "0.05", "TPUDEPLOY_PATIENCE_POLL_MOST": "0.1"}
HANGS = "#!{python} -IS\nimport time\ntime.sleep(600)\n"


def test_ctrl_c_while_an_arm_is_measured_brings_back_the_server_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TPUDEPLOY_BACKEND", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vllm").write_text(HANGS.format(python=sys.executable), encoding="utf-8")
    (tmp_path / "vllm").chmod(0o755)
    (tmp_path / "gemma.yaml").write_text(PROFILE, encoding="utf-8")
    with running(clock=RealClock(), scenario={"nodes": "simulated", "timings": QUICK}) as cloud:
        for name, value in {"TPU_EMULATOR_HOST": cloud.host, "NO_COLOR": "1", **HASTE}.items():
            monkeypatch.setenv(name, value)
        assert main(["apply", "-auto-approve", "gemma.yaml"]) == 0
        capfd.readouterr()
        words = ("compare", "gemma.yaml", "-ab", "serving.block_size=32,64", "-driver", "vllm")
        with person(*words, folder=tmp_path, environment={"PATH": str(tmp_path)}) as somebody:
            somebody.waits_for("Enter a value: ").types("yes\n").waits_for("measuring").types(INTERRUPT)
            assert somebody.stays_to_the_end() == 130
        assert main(["plan", "gemma.yaml", "-detailed-exitcode"]) == 0
    assert "8 restarts: nothing serves for about" in somebody.read
    assert "1/7  A  serving.block_size=32" in somebody.read
    told = somebody.read.partition("Interrupted: what was measured is kept.")[2]
    assert "Bringing gemma back to what its profile says. Ctrl-C leaves it as it is." in told
    assert "gemma[0]: Restart complete" in told
    assert "Error: Interrupted. 0 of 7 repeats are kept. [TPU0130]" in told
    assert "Go on with: tpudeploy compare gemma.yaml --resume ab-" in told
