"""A campaign that is stopped (SIGSTOP) for longer than its lock lasts, and goes on after another computer took it over."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from random import Random

import pytest
from command_line import PROFILE, CommandLine
from features.campaign.outcome import assert_each_cell_is_measured_once, assert_ledger_is_the_bill
from freezer import Freezer, cloud, process
from promises.extent import is_whole
from real_time import DEADLINE

from tpudeploy.adapters.state.bucket_locks import LEASE_SECONDS
from tpudeploy.domain.exits import SUCCESS

GRID = """\
version: 1
name: small
base: gemma.yaml
models: [google/gemma-4-E2B-it, google/gemma-4-E4B-it]
cells: {concurrency: [1, 2], context: [16], output: [2], window: 1s}
chips: 12
budget: 80
"""
BUCKET = ("--backend", "gs://states/team")
CAMPAIGN = ("campaign", "grid.yaml", "-auto-approve", *BUCKET)
SAMPLES = 2


def computer(folder: Path, name: str) -> Path:
    """The folder of one computer: only the bucket is common to two of them."""
    own = folder / name
    own.mkdir()
    (own / "gemma.yaml").write_text(PROFILE, encoding="utf-8")
    (own / "grid.yaml").write_text(GRID, encoding="utf-8")
    return own


@pytest.mark.exhaustive
def test_a_campaign_that_wakes_up_after_another_one_took_over_measures_and_deletes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    usual, folder = Freezer(at=None), tmp_path / "usual"
    folder.mkdir()
    with (
        cloud(folder, usual, monkeypatch),
        process(folder, usual, *CAMPAIGN, "--chdir", str(computer(folder, "a"))) as run,
    ):
        output = run.communicate(timeout=DEADLINE)[0]
        assert run.returncode == 0, output
    begun = next(number for number, path in enumerate(usual.paths) if "queuedResourceId" in path)
    places = range(begun, len(usual.paths))
    for at in places[::8] if is_whole(request.config.getoption("-m")) else Random(1).sample(places, SAMPLES):
        freezer, folder = Freezer(at=at), tmp_path / f"stopped-{at}"
        folder.mkdir()
        words = (*CAMPAIGN, "--chdir", str(computer(folder, "a")))
        with cloud(folder, freezer, monkeypatch) as (emulator, clock), process(folder, freezer, *words) as zombie:
            assert freezer.is_stopped.wait(DEADLINE), usual.paths[at]
            clock.sleep(LEASE_SECONDS + 1)
            other = CommandLine(
                folder=computer(folder, "b"),
                clock=clock,  # type: ignore[arg-type]  # time that two processes share; nothing hangs on it here
                emulator=emulator,
                capture=capfd,
            )
            taken_over = other.run(*CAMPAIGN)
            assert taken_over.code == SUCCESS, (at, usual.paths[at], taken_over.all)
            os.kill(zombie.pid, signal.SIGCONT)
            output = zombie.communicate(timeout=DEADLINE)[0]
            assert "Traceback" not in output, output
            assert emulator.billed() == (), (at, usual.paths[at], output)
            assert_each_cell_is_measured_once(other, 4, *BUCKET)
            assert_ledger_is_the_bill(other, *BUCKET, late=LEASE_SECONDS)
