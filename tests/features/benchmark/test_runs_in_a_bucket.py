"""Runs are kept where the states are: in a bucket, every computer of a team reads them."""

from __future__ import annotations

from pathlib import Path

from command_line import CommandLine, Open

BUCKET = ("--backend", "gs://states/team")
GRID = b"concurrency,context_len,throughput_req_sec,avg_latency_s,status\n1,8,5.4,0.18,success\n8,8,21.5,0.37,success\n"


def imported(at: CommandLine, *words: str) -> str:
    """Import a file of another client, and return the id of its run."""
    (at.folder / "grid.csv").write_bytes(GRID)
    result = at.run("bench", "import", "grid.csv", "--model", "gemma", *words)
    assert result.code == 0, result.all
    return result.out.rpartition("Run ")[2].partition(",")[0]


def test_a_run_is_kept_in_the_bucket_and_read_from_another_computer(cli: Open, tmp_path: Path) -> None:
    at = cli()
    run = imported(at, *BUCKET)
    assert not (at.folder / ".tpudeploy" / "runs").exists()
    (elsewhere := tmp_path / "elsewhere").mkdir()
    at.folder = elsewhere
    listed = at.run("bench", "list", *BUCKET)
    assert (listed.code, run in listed.out) == (0, True), listed.all
    output = at.run("bench", "show", run, *BUCKET)
    assert f"kept in gs://states/team/runs/{run}.json" in output.words


def test_runs_that_an_earlier_version_kept_on_this_machine_are_read_too(cli: Open) -> None:
    at = cli()
    old, new = imported(at), imported(at, *BUCKET)
    listed = at.run("bench", "list", *BUCKET)
    assert old in listed.out
    assert new in listed.out
    assert at.run("compare", old, new, *BUCKET).code == 0
