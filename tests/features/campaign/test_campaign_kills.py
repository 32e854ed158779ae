"""Wherever a campaign is killed, the next run continues it: no cell twice, no slice left, and the ledger is the bill.

It may die before each of its effects: a write of a state, of the campaign or of a run, a line of the ledger, the lock,
and each call that changes something at Google.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest
from command_line import CommandLine, Killed, Open
from features.campaign.outcome import assert_each_cell_is_measured_once, assert_ledger_is_the_bill
from kills import Kill, put_to
from promises.extent import is_whole

from tpudeploy.adapters.state.bucket_locks import LEASE_SECONDS

GRID = """\
version: 1
name: small
base: gemma.yaml
models: [google/gemma-4-E2B-it, google/gemma-4-E4B-it]
slices: [v6e-1, v6e-4]
cells: {concurrency: [1], context: [16], output: [2], window: 1s}
chips: 12
budget: 80
"""
CAMPAIGN = ("campaign", "grid.yaml", "-auto-approve")
SAMPLES = 2


def live(cli: Open, where: tuple[str, ...], patch: pytest.MonkeyPatch, kill: int | None = None) -> int:
    """Run a campaign that is killed before this effect, and then to its end. Return how many effects the first has."""
    at: CommandLine = cli(nodes="simulated", boot={"boot_seconds": 5})
    at.folder /= f"killed at {kill}"
    at.folder.mkdir()
    at.write()
    at.write(GRID, "grid.yaml")
    fuse = Kill(kill)
    with patch.context() as dying:
        put_to(dying, fuse)
        with suppress(Killed):
            at.run(*CAMPAIGN, *where)
    at.clock.sleep(LEASE_SECONDS + 1 if where else 20.0)
    run = at.run(*CAMPAIGN, *where)
    assert run.code == 0, run.all
    assert at.emulator.billed() == ()
    assert_each_cell_is_measured_once(at, 4, *where)
    assert_ledger_is_the_bill(at, *where)
    return fuse.count


@pytest.mark.exhaustive
@pytest.mark.parametrize("where", [(), ("--backend", "gs://states/team")], ids=["a folder", "a bucket"])
def test_killed_before_any_effect_it_resumes_and_leaves_nothing(
    cli: Open, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, where: tuple[str, ...]
) -> None:
    kills = range(live(cli, where, monkeypatch))
    sample = kills if is_whole(request.config.getoption("-m")) else Random(0).sample(kills, SAMPLES)
    for kill in sample:
        live(cli, where, monkeypatch, kill)
