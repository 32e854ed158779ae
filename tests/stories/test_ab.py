"""One flag, two values: deployed in turns, measured, and said to differ only where they do."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from desk import PROFILE, Desk, Open

# A load client as vLLM's own is called. The engine's own word tells it how fast it is: blocks of 32 tokens make it 20 %
# faster. All servers drift by half a percent from cell to cell, and scatter by as much.
CLIENT = """#!{python}
import json, pathlib, random, sys, urllib.request
words = sys.argv[1:]
of = lambda name: words[words.index(name) + 1]
log = pathlib.Path({log!r})
count = len(log.read_text().splitlines()) if log.exists() else 0
with log.open("a") as file:
    file.write(json.dumps(words) + "\\n")
told = urllib.request.urlopen(of("--base-url") + "/metrics").read().decode()
pace = 1.2 if 'block_size="32"' in told else 1.0
rate = 2.0 * pace * 1.005 ** count * random.Random(count).gauss(1, 0.005)
streams, given, made = (int(of(n)) for n in ("--max-concurrency", "--random-input-len", "--random-output-len"))
spread = lambda mean, what: {{f"{{m}}_{{what}}_ms": mean for m in ("mean", "median", "std", "p90", "p95", "p99")}}
pathlib.Path(of("--result-dir"), "result.json").write_text(json.dumps({{
    "model_id": of("--model"), "max_concurrency": streams, "completed": 100, "failed": 0, "duration": 100 / rate,
    "total_input_tokens": 100 * given, "total_output_tokens": 100 * made, "request_throughput": rate,
    "output_throughput": rate * made,
    **spread(500 / pace, "ttft"), **spread(10 / pace, "tpot"), **spread(10 / pace, "itl"),
    **spread(1000 * streams / rate, "e2el"),
}}))
"""
LOAD = ("-driver", "vllm", "-concurrency", "8", "-context", "1024", "-output", "128")
SAME = ("-ab", "serving.padding_gap=0,512")
FASTER = ("-ab", "serving.block_size=64,32")


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """On PATH; the file that says how it was called."""
    program, log = tmp_path / "bin" / "vllm", tmp_path / "called"
    program.parent.mkdir()
    program.write_text(CLIENT.format(python=sys.executable, log=str(log)), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    return log


@pytest.fixture
def at(desk: Open, client: Path) -> Desk:
    at: Desk = desk(boot={"boot_seconds": 60})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    return at


def experiment(at: Desk) -> Mapping[str, Any]:
    """The only one there is."""
    (file,) = (at.folder / ".tpudeploy" / "runs" / "ab").glob("*.json")
    tree: Mapping[str, Any] = json.loads(file.read_text("utf-8"))
    return tree


def turns(at: Desk) -> list[tuple[int, str]]:
    """The place and the arm of every run that is kept."""
    runs = [json.loads(file.read_text("utf-8")) for file in (at.folder / ".tpudeploy" / "runs").glob("2*.json")]
    return sorted((run["turn"]["place"], run["turn"]["side"]) for run in runs)


def is_as_written(at: Desk) -> bool:
    return at.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0


def flags(at: Desk) -> Mapping[str, Any]:
    """What its machine was last given."""
    (attempt,) = at.state()["records"][0]["attempts"]
    spec: Mapping[str, Any] = attempt["spec"]
    return spec


def test_a_flag_that_does_nothing_makes_no_difference(at: Desk) -> None:
    said = at.run("compare", "gemma.yaml", *SAME, *LOAD, "-auto-approve")
    assert said.code == 0, said.all
    assert "7 repeats (A B A B A B A) of 1 cell, 1m 0s each at most" in said.out
    assert "8 restarts: nothing serves for about" in said.out
    assert re.search(r"^(The same within 2%|No difference): requests/s [-+]0\.\d%", said.out, re.MULTILINE)
    assert re.search(r"^Keep A: write in \S+gemma.yaml, under serving\n  padding_gap: 0$", said.out, re.MULTILINE)
    assert " better" not in said.out.replace("better and worse", "")
    assert "Nobody tells whether serving.padding_gap is in effect" in said.out
    assert "On the emulator: no model ran" in said.out
    assert turns(at) == list(enumerate("ABABABA"))
    assert is_as_written(at)


def test_a_flag_that_helps_is_found_with_an_interval_that_holds_the_truth(at: Desk) -> None:
    at.write(PROFILE.replace("max_model_len", "block_size: 64\n  max_model_len"))
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    said = at.run("compare", "gemma.yaml", *FASTER, *LOAD, "-repeats", "2", "-auto-approve", "-json")
    assert said.code == 0, said.all
    tree = json.loads(said.out)
    assert (tree["format"], tree["keep"], tree["reason"], tree["left"]) == ("tpudeploy.ab/1", "B", "better", 0)
    assert tree["overall"]["low"] <= 0.2 <= tree["overall"]["high"]
    rows = {row["measure"]: row for row in tree["rows"]}
    assert {name: row["finding"] for name, row in rows.items()} == dict.fromkeys(
        ("requests", "output", "ttft", "ttft-p99", "tpot", "tokens-per-usd"), "better"
    )
    assert rows["ttft"]["effect"]["change"] == pytest.approx(1 / 1.2 - 1)
    assert said.err.count("gemma[0]: Restart complete") == 4, "the first and the last turn are what the profile says"
    assert is_as_written(at)

    again = at.run("compare", experiment(at)["id"])
    assert again.code == 0, again.all
    assert re.search(r"^B is better: requests/s \+\d+\.\d% \(\+1\d\.\d% … \+2\d\.\d%\)$", again.out, re.MULTILINE)
    assert re.search(r"^Keep B: write at \S+gemma.yaml:9\n  block_size: 32$", again.out, re.MULTILINE)
    assert "block_size: 64 -> 32" in again.out
    listed = at.run("bench", "list").out
    assert listed.count(f"B of {experiment(at)['id']}") == 2


def test_killed_between_repeats_it_goes_on_with_those_that_are_missing(at: Desk, client: Path) -> None:
    words = (*FASTER, *LOAD, "-repeats", "2", "-auto-approve")
    at.killed(200, "compare", "gemma.yaml", *words)
    done = turns(at)
    assert done == [(0, "A"), (1, "B")]
    assert not is_as_written(at), "nobody was there to bring it back, and the plan says so"
    said = at.run("compare", "gemma.yaml", "-resume", experiment(at)["id"], "-auto-approve")
    assert said.code == 0, said.all
    assert "3 repeats (A B A) of 1 cell" in said.out
    assert turns(at) == list(enumerate("ABABA"))
    assert len(client.read_text("utf-8").splitlines()) == 5 * 2, "each once, after its warm-up"
    assert "B is better" in said.out
    assert is_as_written(at)


def test_ctrl_c_keeps_what_was_measured_and_brings_the_deployment_back(
    at: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient(at, monkeypatch, after=200)
    said = at.run("compare", "gemma.yaml", *FASTER, *LOAD, "-repeats", "2", "-auto-approve")
    assert said.code == 130, said.all
    assert "Bringing gemma back to what its profile says." in said.err
    assert "Interrupted. 2 of 5 repeats are kept." in said.err
    assert f"gemma.yaml --resume {experiment(at)['id']}" in said.err
    assert is_as_written(at)


def impatient(at: Desk, monkeypatch: pytest.MonkeyPatch, *, after: float) -> None:
    """A person who presses Ctrl-C once, so many seconds from now, while something is waited for."""
    sleep, end = at.clock.sleep, at.clock.now() + after
    pressed: list[bool] = []

    def interrupted(seconds: float) -> None:
        sleep(seconds)
        if at.clock.now() >= end and not pressed:
            pressed.append(True)
            raise KeyboardInterrupt

    monkeypatch.setattr(at.clock, "sleep", interrupted)


REFUSED = (
    ("serving.max_model_len=16384,9000000", 13, "Arm B (serving.max_model_len=9000000) cannot be deployed: "),
    ("tpu.type=v6e-1,v6e-4", 1, "tpu.type cannot be changed in place: another value needs another slice."),
    ("serving.max_num_seqs=64,64", 1, "Both arms are the same deployment: serving.max_num_seqs is the same."),
    ("placement.labels.team=a,b", 1, "placement.labels.team is nothing that a server is started with"),
    ("serving.padding_gap=0", 1, "has one value; an A/B holds two against each other."),
    ("serving.padding_gap=0,256,512", 1, "has 3 values; an A/B holds two against each other."),
    ("serving.padding_gap", 1, "names no path with two values."),
    ("serving.paddding_gap=0,512", 1, "paddding_gap"),
    ("serving.padding_gap=0,much", 1, "--set"),
)


def test_what_cannot_be_compared_is_refused_before_anything_is_touched(at: Desk) -> None:
    for ab, code, why in REFUSED:
        said = at.run("compare", "gemma.yaml", "-ab", ab, *LOAD, "-auto-approve")
        assert said.code == code, said.all
        assert why in said.all
        assert "restart" not in said.all
    assert is_as_written(at)
    assert not (at.folder / ".tpudeploy" / "runs").exists()


def test_nothing_is_compared_that_does_not_serve(desk: Open) -> None:
    at = desk()
    said = at.run("compare", at.write(), *SAME, "-auto-approve")
    assert said.code == 1
    assert "gemma has no endpoint yet." in said.err


def test_a_second_slice_is_no_place_for_an_arm(at: Desk) -> None:
    at.write(PROFILE + "lifecycle: {update: blue-green}\n")
    said = at.run("compare", "gemma.yaml", *SAME, "-auto-approve")
    assert said.code == 1
    assert "would be handed over to a second slice" in said.err
    assert "--set lifecycle.update=in-place" in said.err


def test_without_a_yes_nothing_is_changed(at: Desk) -> None:
    before = at.state()
    said = at.run("compare", "gemma.yaml", *SAME, *LOAD)
    assert said.code == 1
    assert "8 restarts: nothing serves for about" in said.out
    assert "There is no terminal to ask for approval." in said.err
    assert at.state() == before
    assert not (at.folder / ".tpudeploy" / "runs").exists()


def test_a_flag_that_the_engine_does_not_take_is_named_and_nothing_is_measured_of_it(desk: Open, client: Path) -> None:
    at = desk(boot={"boot_seconds": 60, "instead": {"block-size": "64"}})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    said = at.run("compare", "gemma.yaml", *FASTER, *LOAD, "-auto-approve")
    assert said.code == 13, said.all
    assert "serving.block_size=32 is not in effect: the engine of arm B does otherwise." in said.out
    assert "Keep A" in said.out
    assert "No difference" not in said.out
    assert turns(at) == [(0, "A")]
    assert len(client.read_text("utf-8").splitlines()) == 2
    assert is_as_written(at)


def test_a_slice_that_is_taken_away_ends_it_and_what_was_measured_stays(desk: Open, client: Path) -> None:
    at = desk(boot={"boot_seconds": 60}, trouble=[{"fault": "preempt", "zone": "*", "after": 500, "times": 1}])
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    said = at.run("compare", "gemma.yaml", *FASTER, *LOAD, "-repeats", "3", "-auto-approve")
    assert said.code == 11, said.all
    assert "4 of 7 repeats are kept: go on with tpudeploy compare " in said.err
    assert "gemma is not yet what its profile says: `tpudeploy plan` shows what is left" in said.err
    assert client.exists()
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    again = at.run("compare", "gemma.yaml", "-resume", experiment(at)["id"], "-auto-approve")
    assert again.code == 0, again.all
    assert turns(at) == list(enumerate("ABABABA"))


@pytest.mark.parametrize("bound", [("-duration", "4m"), ("-max-cost", "0.09")])
def test_a_bound_counts_restarts_and_what_is_there_by_then_is_told(at: Desk, bound: tuple[str, str]) -> None:
    said = at.run("compare", "gemma.yaml", *FASTER, *LOAD, *bound, "-auto-approve")
    assert said.code == 0, said.all
    assert turns(at) == [(0, "A"), (1, "B"), (2, "A")]
    assert "Too few repeats to tell a difference from noise." in said.out
    assert "5 repeats are missing: tpudeploy compare " in said.out, "the third began, and had no time left"
    assert f"gemma.yaml --resume {experiment(at)['id']}" in said.out
    assert "Keep" not in said.out
    assert is_as_written(at)
