"""With several replicas each one is asked, and told apart: what it does, what it printed, how fast it is."""

from __future__ import annotations

import json

import pytest
from command_line import PROFILE, CommandLine, Open
from strict_schema import strict

from tpudeploy.domain.slices import ServerLoad
from tpudeploy.views.status import load

TWO = PROFILE + "replicas: 2\n"
LOAD = {"num_requests_running": 12, "num_requests_waiting": 3, "kv_cache_usage_perc": 0.41}
SWEEP = ("-concurrency", "1", "-context", "8", "-output", "1", "-window", "50ms")


@pytest.fixture
def at(cli: Open) -> CommandLine:
    at: CommandLine = cli(boot={"boot_seconds": 5, "load": LOAD})
    assert at.run("apply", "-auto-approve", at.write(TWO)).code == 0
    return at


def test_status_shows_the_load_of_each_replica(at: CommandLine) -> None:
    result = at.run("status", "gemma.yaml")
    assert result.words.count("load 12 running, 3 waiting, KV cache 41%") == 2
    tree = json.loads(at.run("status", "gemma.yaml", "-json").out)
    strict(at, "status").validate(tree)
    loads = [replica["load"] for replica in tree["deployments"][0]["replicas"]]
    assert loads == [{"running": 12, "waiting": 3, "kv_cache_used": 0.41}] * 2
    without_profile = json.loads(at.run("status", "-json").out)
    assert [replica["load"] for replica in without_profile["deployments"][0]["replicas"]] == [None, None]


def test_a_load_that_cannot_be_read_is_unknown_and_a_single_replica_is_not_asked(cli: Open) -> None:
    at = cli(boot={"boot_seconds": 5, "load": LOAD})
    silent = PROFILE.replace("max_model_len: 16384", "args: {disable_log_stats: true}")
    assert at.run("apply", "-auto-approve", at.write(silent)).code == 0
    assert "load" not in at.run("status", "gemma.yaml").words
    assert at.run("apply", "-auto-approve", at.write(silent + "replicas: 2\n")).code == 0
    assert at.run("status", "gemma.yaml").words.count("load unknown: its metrics cannot be read") == 2


@pytest.mark.parametrize(
    ("measured", "text"),
    [
        (ServerLoad(running=0, waiting=0, kv_cache_used=0.0), "0 running, 0 waiting, KV cache 0%"),
        (ServerLoad(running=1200, waiting=None, kv_cache_used=0.996), "1,200 running, unknown waiting, KV cache 100%"),
        (ServerLoad(running=1, waiting=2), "1 running, 2 waiting, KV cache unknown"),
    ],
)
def test_a_load_in_words(measured: ServerLoad, text: str) -> None:
    assert load(measured) == text


def test_the_endpoint_file_lists_the_replicas_that_take_requests(at: CommandLine) -> None:
    endpoint = json.loads((at.folder / "endpoints" / "gemma.json").read_text(encoding="utf-8"))
    assert [(row["replica"], row["slice"]) for row in endpoint["replicas"]] == sorted(
        (int(name.split("-")[2]), name) for name in at.slices
    )
    assert endpoint["url"] == endpoint["replicas"][0]["url"] != endpoint["replicas"][1]["url"]
    tree = json.loads(at.run("output", "gemma", "-json").out)
    strict(at, "output").validate(tree)
    assert tree["confirmed"] is True
    assert tree["replicas"] == [{**row, "confirmed": True} for row in endpoint["replicas"]]
    assert f"[1] {endpoint['replicas'][1]['url']}" in at.run("output", "gemma").out


def test_logs_name_the_replica_that_printed_each(at: CommandLine) -> None:
    result = at.run("logs", "gemma.yaml")
    assert result.code == 0, result.all
    slices = {f"gemma[{index}]": name for index, name in enumerate(sorted(at.slices, key=lambda n: n.split("-")[2]))}
    for address, name in slices.items():
        assert f"{address} = {name}:" in result.out
    tree = json.loads(at.run("logs", "gemma.yaml", "-json").out)
    strict(at, "logs").validate(tree)
    assert {log["replica"]: log["log"] for log in tree["logs"]} == slices


def test_a_replica_without_a_machine_is_named_beside_those_that_were_verified(at: CommandLine) -> None:
    result = at.run("verify", "gemma.yaml", "-set", "replicas=3")
    assert result.code == 0, result.all
    assert "gemma[0] = " in result.out
    assert "gemma[1] = " in result.out
    assert "gemma[2] was not verified: it has no machine." in result.out
    tree = json.loads(at.run("verify", "gemma.yaml", "-set", "replicas=3", "-json").out)
    strict(at, "verify").validate(tree)
    assert tree["absent"] == ["gemma[2]"]


def test_bench_measures_each_replica_in_a_run_of_its_own(at: CommandLine) -> None:
    result = at.run("bench", "gemma.yaml", *SWEEP)
    assert result.code == 0, result.all
    listed = at.run("bench", "list").out
    assert "gemma[0]" in listed
    assert "gemma[1]" in listed
    runs = [json.loads(file.read_text()) for file in sorted((at.folder / ".tpudeploy" / "runs").glob("2*.json"))]
    subjects = {run["subject"]["replica"]: run["subject"]["url"] for run in runs}
    assert set(subjects) == {"gemma[0]", "gemma[1]"}
    assert len(set(subjects.values())) == 2, "each at its own address"


def test_bench_as_json_is_one_document_of_all_replicas(at: CommandLine) -> None:
    tree = json.loads(at.run("bench", "gemma.yaml", *SWEEP, "-json").out)
    strict(at, "replica-runs").validate(tree)
    assert [run["subject"]["replica"] for run in tree["runs"]] == ["gemma[0]", "gemma[1]"]


def test_bench_measures_the_one_that_is_named_and_no_other(at: CommandLine) -> None:
    run = json.loads(at.run("bench", "gemma.yaml", *SWEEP, "-replica", "1", "-json").out)
    assert (run["format"], run["subject"]["replica"]) == ("tpudeploy.run/1", "gemma[1]")
    result = at.run("bench", "gemma.yaml", *SWEEP, "-replica", "2")
    assert result.code == 1
    assert "gemma has no replica 2." in result.err
    assert "There are: gemma[0], gemma[1]." in result.err
