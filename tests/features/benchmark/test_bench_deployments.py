"""A deployment is measured with all that it is known by; a run that is cut short goes on where it was."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open
from real_time import DEADLINE

from tpudeploy.cli.main import main
from tpudeploy.emulator import Emulator, VirtualClock, running

SMALL = PROFILE.replace("max_model_len: 16384", "max_model_len: 4096\n  max_num_seqs: 4\n  max_num_batched_tokens: 512")
SWEEP = ("--concurrency", "1,2,8", "--context", "16,4096", "--output", "2", "--window", "50ms")


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, VirtualClock, Emulator]]:
    """A server that runs four requests at once, on a machine that runs its startup script."""
    folder, clock = tmp_path_factory.mktemp("project"), VirtualClock()
    (folder / "gemma.yaml").write_text(SMALL, encoding="utf-8")
    scenario = {"nodes": "real", "boot": {"boot_seconds": 60}}
    with pytest.MonkeyPatch.context() as patch, running(clock=clock, scenario=scenario) as emulator:
        patch.setenv("TPU_EMULATOR_HOST", emulator.host)
        for variable in ("STORAGE_EMULATOR_HOST", "GOOGLE_CLOUD_PROJECT", "TPUDEPLOY_BACKEND"):
            patch.delenv(variable, raising=False)
        assert main(["apply", "-auto-approve", "gemma.yaml", "--chdir", str(folder)], clock=clock) == 0
        yield folder, clock, emulator


@pytest.fixture
def serving(
    applied: tuple[Path, VirtualClock, Emulator],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> CommandLine:
    """The same server for all, and no run of it yet."""
    folder, clock, emulator = applied
    monkeypatch.setenv("TPU_EMULATOR_HOST", emulator.host)
    shutil.rmtree(folder / ".tpudeploy" / "runs", ignore_errors=True)
    return CommandLine(folder=folder, clock=clock, emulator=emulator, capture=capfd)


def stored_run(at: CommandLine) -> Mapping[str, Any]:
    """The only run there is."""
    (file,) = (at.folder / ".tpudeploy" / "runs").glob("*.json")
    tree: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return tree


def test_a_run_knows_what_it_measured_and_asks_for_nothing_that_cannot_be(serving: CommandLine) -> None:
    result = serving.run("bench", "gemma.yaml", *SWEEP)
    assert result.code == 0, result.all
    run = stored_run(serving)
    (attempt,) = serving.state()["records"][0]["attempts"]
    subject = run["subject"]
    assert (subject["deployment"], subject["model"], subject["image"]) == (
        "gemma",
        "google/gemma-4-E2B-it",
        "vllm/vllm-tpu:v0.32.0",
    )
    assert re.fullmatch("sha256:[0-9a-f]{64}", subject["image_digest"])
    assert re.fullmatch("[0-9a-f]{40}", subject["model_revision"])
    assert (subject["accelerator_type"], subject["chips"], subject["zone"], subject["provisioning"]) == (
        "v6e-1",
        1,
        "us-east5-a",
        "spot",
    )
    assert subject["usd_per_hour"] == pytest.approx(1.4033)
    assert subject["spec_fingerprint"] == attempt["boot"]["server"]
    assert len(subject["profile_fingerprint"]) == 16
    assert (subject["engine"]["version"], subject["engine"]["max_model_len"]) == ("0.32.0", "4096")
    cells = {(c["point"]["context_tokens"], c["point"]["concurrency"]): c for c in run["cells"]}
    assert {cells[4096, streams]["status"] for streams in (1, 2, 8)} == {"skipped_len"}
    queued = cells[16, 8]
    assert queued["at_once"] == 4
    assert "4 of 8 run at once, by max_num_seqs 4; the rest queue" in queued["reasons"]
    assert queued["status"] in {"oversubscribed", "roofline_suspect", "client_bound"}
    assert queued["figures"]["requests"] > 0
    assert subject["is_emulated"] is True
    assert "On the emulator: no figure here says anything about a TPU." in result.out


def test_what_would_only_queue_can_be_left_out_and_is_named(serving: CommandLine) -> None:
    result = serving.run("bench", "gemma.yaml", *SWEEP, "--skip-oversubscribed")
    assert result.code == 0, result.all
    (queued,) = (c for c in stored_run(serving)["cells"] if c["status"] == "oversubscribed")
    assert (queued["point"]["concurrency"], queued["figures"]) == (8, None)
    assert queued["reasons"] == ["4 of 8 run at once, by max_num_seqs 4; the rest queue"]


def test_a_profile_that_was_changed_since_is_not_what_would_be_measured(serving: CommandLine) -> None:
    result = serving.run("bench", "gemma.yaml", "--set", "serving.max_num_seqs=8", *SWEEP)
    assert result.code == 1
    assert "The server of gemma is not the one that its profile declares." in result.err
    assert "Run `tpudeploy apply` first" in result.err
    assert not (serving.folder / ".tpudeploy" / "runs").exists()


def test_a_deployment_without_an_endpoint_cannot_be_measured(cli: Open) -> None:
    at = cli()
    result = at.run("bench", at.write())
    assert result.code == 1
    assert "gemma has no endpoint yet." in result.err


@pytest.mark.parametrize(
    ("bound", "ended"), [(("--duration", "1ms"), "duration"), (("--max-cost", "0.000001"), "cost")]
)
def test_a_bounded_run_keeps_what_it_has_and_goes_on_later(
    serving: CommandLine, bound: tuple[str, str], ended: str
) -> None:
    result = serving.run("bench", "gemma.yaml", *SWEEP, *bound)
    assert result.code == 0, result.all
    run = stored_run(serving)
    assert run["ended"] == ended
    assert len(run["cells"]) < 6
    assert f"cells are left: --resume {run['id']} continues." in result.out
    again = serving.run("bench", "gemma.yaml", "--resume", run["id"][:15])
    assert again.code == 0, again.all
    whole = stored_run(serving)
    assert (whole["id"], whole["ended"], len(whole["cells"])) == (run["id"], "complete", 6)
    assert whole["cells"][: len(run["cells"])] == run["cells"]


def test_a_run_goes_on_with_nothing_else_than_what_it_began_with(serving: CommandLine) -> None:
    assert serving.run("bench", "gemma.yaml", *SWEEP, "--duration", "1ms").code == 0
    run = stored_run(serving)
    url = run["subject"]["url"]
    result = serving.run("bench", "--url", url, "--resume", run["id"])
    assert result.code == 1
    assert f"Run {run['id']} measured something else: deployment was gemma, is unknown;" in result.err


def test_ctrl_c_keeps_what_ran_and_says_how_to_go_on(serving: CommandLine) -> None:
    ended = _ended_by(serving, signal.SIGINT)
    assert ended.returncode == 130, ended.stderr
    run = stored_run(serving)
    assert run["ended"] == "interrupted"
    assert f"Interrupted. {len(run['cells'])} of 12 cells are kept. [TPU0130]" in ended.stderr
    assert f"--resume {run['id']}" in ended.stderr
    assert serving.run("bench", "show", run["id"]).code == 0


def test_a_killed_run_keeps_every_cell_that_had_ended_and_runs_the_others_later(serving: CommandLine) -> None:
    ended = _ended_by(serving, signal.SIGKILL)
    assert ended.returncode == -signal.SIGKILL
    run = stored_run(serving)
    assert run["ended"] == "not yet"
    answer = [line for line in ended.stderr.splitlines() if re.match(r" +\d+/12 ", line)]
    assert len(answer) <= len(run["cells"]) <= len(answer) + 1
    result = serving.run("bench", "show", run["id"])
    assert "Under way, or killed" in result.out
    assert serving.run("bench", "gemma.yaml", "--resume", run["id"]).code == 0
    whole = stored_run(serving)
    assert (whole["ended"], len(whole["cells"])) == ("complete", 12)
    assert whole["cells"][: len(run["cells"])] == run["cells"]


def _ended_by(at: CommandLine, number: signal.Signals) -> subprocess.CompletedProcess[str]:
    """`bench` in a process of its own, after its third cell."""
    program = str(Path(sys.executable).with_name("tpudeploy"))
    words = ("--concurrency", "1,2,3,4", "--context", "1,2,3", "--output", "1", "--window", "100ms")
    process = subprocess.Popen(
        [program, "bench", "gemma.yaml", *words],
        cwd=at.folder,
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    heard = []
    for line in process.stderr:
        heard.append(line)
        if " 3/12 " in line:
            break
    process.send_signal(number)
    out, err = process.communicate(timeout=DEADLINE)
    return subprocess.CompletedProcess(process.args, process.returncode, out, "".join(heard) + err)
