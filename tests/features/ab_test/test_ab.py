"""One flag, two values: deployed in turns, measured, and said to differ only where they do."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open
from strict_schema import strict

from tpudeploy import Profile, Workspace, errors
from tpudeploy.features.ab_test.service import AbTests, Arms, Listener
from tpudeploy.features.benchmark.bench_operation import SweepOptions
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.run import Cell, Driver, Run, Side, Sweep

pytestmark = pytest.mark.polls_every_second("starts are measured to the second")

# A load client as vLLM's own is called. The engine's own word tells it how fast it is: blocks of 32 tokens make it 20 %
# faster. All servers drift by half a percent from cell to cell, and scatter by as much.
CLIENT = """#!{python} -IS
import json, pathlib, socket, sys, zlib
words = sys.argv[1:]
of = lambda name: words[words.index(name) + 1]
log = pathlib.Path({log!r})
count = len(log.read_text().splitlines()) if log.exists() else 0
with log.open("a") as file:
    file.write(json.dumps(words) + "\\n")
host, _, port = of("--base-url").removeprefix("http://").partition(":")
with socket.create_connection((host, int(port))) as engine:
    engine.sendall(b"GET /metrics HTTP/1.0\\r\\n\\r\\n")
    metrics = engine.makefile().read()
pace = 1.2 if {faster!r} in metrics else 1.0
scatter = zlib.crc32(f"cell {{count * 7}}".encode()) / 2**32 - 0.5
rate = 2.0 * pace * 1.005 ** count * (1 + 0.02 * scatter)
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
POINT = Point(concurrency=8, context_tokens=1024, output_tokens=128)  # what LOAD asks for
SAME = ("-ab", "serving.padding_gap=0,512")
FASTER = ("-ab", "serving.block_size=64,32")


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """On PATH; the file that says how it was called."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return installed(tmp_path, 'block_size="32"')


def installed(folder: Path, faster: str) -> Path:
    """What an engine must say of itself to be faster; the file that will say how the client was called."""
    program, log = folder / "bin" / "vllm", folder / "called"
    program.write_text(CLIENT.format(python=sys.executable, log=str(log), faster=faster), encoding="utf-8")
    program.chmod(0o755)
    return log


@pytest.fixture
def at(cli: Open, client: Path) -> CommandLine:
    at: CommandLine = cli(boot={"boot_seconds": 5})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    return at


def experiment(at: CommandLine) -> Mapping[str, Any]:
    """The only one there is."""
    (file,) = (at.folder / ".tpudeploy" / "runs" / "ab").glob("*.json")
    tree: Mapping[str, Any] = json.loads(file.read_text("utf-8"))
    return tree


def turns(at: CommandLine) -> list[tuple[int, str]]:
    """The place and the arm of every run that is kept and counts."""
    runs = [json.loads(file.read_text("utf-8")) for file in (at.folder / ".tpudeploy" / "runs").glob("2*.json")]
    return sorted((run["turn"]["place"], run["turn"]["side"]) for run in runs if run["turn"] is not None)


def is_as_written(at: CommandLine) -> bool:
    return at.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0


def flags(at: CommandLine) -> Mapping[str, Any]:
    """What its machine was last given."""
    (attempt,) = at.state()["records"][0]["attempts"]
    spec: Mapping[str, Any] = attempt["spec"]
    return spec


def test_a_flag_that_does_nothing_makes_no_difference(at: CommandLine) -> None:
    result = at.run("compare", "gemma.yaml", *SAME, *LOAD, "-auto-approve")
    assert result.code == 0, result.all
    assert "7 repeats (A B A B A B A) of 1 cell, 1m 0s each at most" in result.out
    assert "8 restarts: nothing serves for about" in result.out
    assert "the start time decides: this value changes how the server starts" in result.out
    assert re.search(r"^(The same within 2%|No difference): start time 0\.0%", result.out, re.MULTILINE)
    assert re.search(r"^Keep \S+gemma.yaml as it is: it sets neither value\.$", result.out, re.MULTILINE)
    assert re.findall(r"^  (\d)  ([AB])  \d+ s; compile cache: ", result.out, re.MULTILINE) == [
        (str(place + 1), side) for place, side in enumerate("ABABABA")
    ], "each repeat says how its server started"
    assert " better" not in result.out.replace("better and worse", "")
    assert "No source shows whether serving.padding_gap is in effect" in result.out
    assert "On the emulator: no figure here" in result.out
    assert turns(at) == list(enumerate("ABABABA"))
    assert is_as_written(at)


def test_a_flag_that_helps_is_found_with_an_interval_that_holds_the_truth(at: CommandLine) -> None:
    at.write(PROFILE.replace("max_model_len", "block_size: 64\n  max_model_len"))
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    result = at.run("compare", "gemma.yaml", *FASTER, *LOAD, "-repeats", "2", "-auto-approve", "-json")
    assert result.code == 0, result.all
    tree = json.loads(result.out)
    strict(at, "ab").validate(tree)
    assert (tree["format"], tree["keep"], tree["reason"], tree["left"]) == ("tpudeploy.ab/1", "B", "better", 0)
    assert tree["overall"]["low"] <= 0.2 <= tree["overall"]["high"]
    rows = {row["measure"]: row for row in tree["rows"]}
    assert {name: row["finding"] for name, row in rows.items()} == dict.fromkeys(
        ("requests", "output", "ttft", "ttft-p99", "tpot", "tokens-per-usd"), "better"
    )
    assert rows["ttft"]["effect"]["change"] == pytest.approx(1 / 1.2 - 1)
    assert result.err.count("gemma[0]: Restart complete") == 4, "the first and the last turn are what the profile says"
    assert is_as_written(at)

    again = at.run("compare", experiment(at)["id"])
    assert again.code == 0, again.all
    assert re.search(r"^B is better: requests/s \+\d+\.\d% \(\+1\d\.\d% … \+2\d\.\d%\)$", again.out, re.MULTILINE)
    assert re.search(r"^Keep B: write at \S+gemma.yaml:9\n  block_size: 32$", again.out, re.MULTILINE)
    assert "block_size: 64 -> 32" in again.out
    listed = at.run("bench", "list").out
    assert listed.count(f"B of {experiment(at)['id']}") == 2


def test_where_nothing_differs_what_the_profile_says_is_kept_whichever_arm_that_is(at: CommandLine) -> None:
    at.write(PROFILE.replace("max_model_len", "max_num_batched_tokens: 4096\n  max_model_len"))
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    words = ("-ab", "serving.max_num_batched_tokens=2048,4096", *LOAD, "-repeats", "2", "-auto-approve", "-json")
    result = at.run("compare", "gemma.yaml", *words)
    assert result.code == 0, result.all
    tree = json.loads(result.out)
    assert tree["reason"] in {"same", "no difference"}
    assert (tree["experiment"]["written"], tree["keep"]) == ("B", "B")
    assert [repeat["cache"] for repeat in tree["repeats"]] == ["unknown"] * 5
    assert all(repeat["start"]["seconds"] > 0 for repeat in tree["repeats"])
    assert "gemma.yaml:9 has this value." in at.run("compare", experiment(at)["id"]).out


@pytest.mark.instant("it is stopped at a moment that is counted from its start")
@pytest.mark.parametrize("ab", [FASTER[1], "serving.image=vllm/vllm-tpu:v0.32.0,vllm/vllm-tpu:v0.31.0"])
def test_killed_between_repeats_it_goes_on_with_those_that_are_missing(at: CommandLine, client: Path, ab: str) -> None:
    words = ("-ab", ab, *LOAD, "-repeats", "2", "-auto-approve")
    at.killed(72 if ab == FASTER[1] else 40, "compare", "gemma.yaml", *words)
    assert turns(at) == [(0, "A"), (1, "B")]
    assert not is_as_written(at), "nobody was there to bring it back, and the plan says so"
    result = at.run("compare", "gemma.yaml", "-resume", experiment(at)["id"], "-auto-approve")
    assert result.code == 0, result.all
    assert "3 repeats (A B A) of 1 cell" in result.out
    assert turns(at) == list(enumerate("ABABA"))
    assert len(client.read_text("utf-8").splitlines()) == 5 * 2, "each once, after its warm-up"
    assert ("B is better" in result.out) is (ab == FASTER[1])
    assert is_as_written(at)
    again = at.run("compare", "gemma.yaml", "-resume", experiment(at)["id"])
    assert (again.code, again.err) == (0, result.err[:0]), "nothing is left, and nothing is asked"


@pytest.mark.instant("it is stopped at a moment that is counted from its start")
def test_ctrl_c_keeps_what_was_measured_and_brings_the_deployment_back(
    at: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient(at, monkeypatch, after=72)
    result = at.run("compare", "gemma.yaml", *FASTER, *LOAD, "-repeats", "2", "-auto-approve")
    assert result.code == 130, result.all
    assert "Restoring gemma to its profile." in result.err
    assert "Interrupted. 2 of 5 repeats are kept." in result.err
    assert f"gemma.yaml --resume {experiment(at)['id']}" in result.err
    assert is_as_written(at)


def impatient(at: CommandLine, monkeypatch: pytest.MonkeyPatch, *, after: float) -> None:
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
    ("placement.labels.team=a,b", 1, "placement.labels.team does not change how a server starts"),
    ("serving.padding_gap=0", 1, "has one value; an A/B compares two."),
    ("serving.padding_gap=0,256,512", 1, "has 3 values; an A/B compares two."),
    ("serving.padding_gap", 1, "does not name a path with two values."),
    ("serving.paddding_gap=0,512", 1, "paddding_gap"),
    ("serving.padding_gap=0,much", 1, "--set"),
)


def test_what_cannot_be_compared_is_refused_before_anything_is_touched(at: CommandLine) -> None:
    for ab, code, why in REFUSED:
        result = at.run("compare", "gemma.yaml", "-ab", ab, *LOAD, "-auto-approve")
        assert result.code == code, result.all
        assert why in result.all
        assert "restart" not in result.all
    assert is_as_written(at)
    assert not (at.folder / ".tpudeploy" / "runs").exists()


def test_nothing_is_compared_that_does_not_serve(cli: Open) -> None:
    at = cli()
    result = at.run("compare", at.write(), *SAME, "-auto-approve")
    assert result.code == 1
    assert "gemma has no endpoint yet." in result.err


def test_a_second_slice_is_no_place_for_an_arm(at: CommandLine) -> None:
    at.write(PROFILE + "lifecycle: {update: blue-green}\n")
    result = at.run("compare", "gemma.yaml", *SAME, "-auto-approve")
    assert result.code == 1
    assert "would be handed over to a second slice" in result.err
    assert "--set lifecycle.update=in-place" in result.err


def test_without_a_yes_nothing_is_changed(at: CommandLine) -> None:
    before = at.state()
    result = at.run("compare", "gemma.yaml", *SAME, *LOAD)
    assert result.code == 1
    assert "8 restarts: nothing serves for about" in result.out
    assert "Approval needs an interactive terminal." in result.err
    assert at.state() == before
    assert not (at.folder / ".tpudeploy" / "runs").exists()


def test_a_flag_that_the_engine_does_not_take_is_named_and_nothing_is_measured_of_it(cli: Open, client: Path) -> None:
    at = cli(boot={"boot_seconds": 5, "instead": {"block-size": "64"}})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    result = at.run("compare", "gemma.yaml", *FASTER, *LOAD, "-auto-approve")
    assert result.code == 13, result.all
    assert "serving.block_size=32 is not in effect: the engine of arm B does otherwise." in result.out
    assert "Keep A" in result.out
    assert "No difference" not in result.out
    assert turns(at) == [(0, "A")]
    assert len(client.read_text("utf-8").splitlines()) == 2
    assert is_as_written(at)


@pytest.mark.instant("the slice is taken away at a moment that is counted from its grant, after three repeats")
def test_a_slice_that_is_taken_away_ends_it_and_what_was_measured_stays(cli: Open, client: Path) -> None:
    at = cli(boot={"boot_seconds": 5}, trouble=[{"fault": "preempt", "zone": "*", "after": 145, "times": 1}])
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    result = at.run("compare", "gemma.yaml", *FASTER, *LOAD, "-repeats", "2", "-auto-approve")
    assert result.code == 11, result.all
    assert "3 of 5 repeats are kept. Continue with tpudeploy compare " in result.err
    assert "gemma does not match its profile yet: `tpudeploy plan` shows the rest" in result.err
    assert client.exists()
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    again = at.run("compare", "gemma.yaml", "-resume", experiment(at)["id"], "-auto-approve")
    assert again.code == 0, again.all
    assert turns(at) == list(enumerate("ABABA"))


@pytest.mark.instant("its bounds have room for three repeats, to the second")
@pytest.mark.parametrize("bound", [("-duration", "76s"), ("-max-cost", "0.0296")])
def test_a_bound_counts_restarts_and_what_is_there_by_then_is_told(at: CommandLine, bound: tuple[str, str]) -> None:
    result = at.run("compare", "gemma.yaml", *FASTER, *LOAD, *bound, "-auto-approve")
    assert result.code == 0, result.all
    assert turns(at) == [(0, "A"), (1, "B"), (2, "A")]
    assert "Too few repeats to tell a difference from noise." in result.out
    assert "5 repeats are missing: tpudeploy compare " in result.out, "the third began, and had no time left"
    assert f"gemma.yaml --resume {experiment(at)['id']}" in result.out
    assert "Keep" not in result.out
    assert is_as_written(at)


def block_sizes(at: CommandLine) -> Arms:
    """Two values of one flag, each as the profile with it."""
    base = Profile.load(at.folder / "gemma.yaml")
    a, b = (Profile.load(at.folder / "gemma.yaml", set={"serving.block_size": size}) for size in (64, 32))
    return Arms(base=base, a=a, b=b, path="serving.block_size", values=("64", "32"))


def test_a_program_runs_and_resumes_an_ab_with_the_options_of_the_command(at: CommandLine, client: Path) -> None:
    assert not client.exists()
    options = SweepOptions(concurrency=[8], context=[1024], output=[128], driver="vllm")
    profile = at.folder / "gemma.yaml"
    with Workspace.open(at.folder, clock=at.clock) as workspace:
        proposal = workspace.ab_propose(profile, FASTER[1], options, repeats=2, by="output")
        bounded = workspace.ab(proposal, max_cost=0.0296)
        id_ = bounded.effects.experiment.id
        for message, more in (
            ("--repeats cannot be changed when resuming", {"repeats": 3}),
            ("--concurrency cannot be changed when resuming", {"options": SweepOptions(concurrency=[1])}),
            ("An A/B takes no seed", {"options": SweepOptions(seed="a")}),
        ):
            with pytest.raises(errors.UsageError, match=message):
                workspace.ab_propose(profile, resume=id_, **more)
        whole = workspace.ab(workspace.ab_propose(profile, resume=id_))
    assert 0 < bounded.to_dict()["left"] < 5
    assert (whole.to_dict()["left"], whole.effects.experiment.by, whole.effects.keep) == (0, "output", Side.B)
    assert is_as_written(at)


@pytest.mark.parametrize("moment", ["before a cell", "after the last cell"])
def test_a_slice_that_is_taken_away_while_it_is_measured_is_to_be_resumed(
    at: CommandLine, client: Path, moment: str
) -> None:
    assert not client.exists()
    arms = block_sizes(at)

    def take_away(run: Run, _: object) -> None:
        if run.turn is not None and run.turn.place == 1:
            at.emulator.preempt(next(iter(at.slices)))
            at.clock.sleep(600)

    hear = Listener(on_point=take_away) if moment == "before a cell" else Listener(on_cell=take_away)
    with Workspace.open(at.folder, clock=at.clock) as workspace:
        ab_tests = AbTests(workspace)
        begun = ab_tests.experiment(arms, Sweep(points=(POINT,)), repeats=2, driver=Driver.VLLM)
        with pytest.raises(errors.StalePlan, match="was taken away while arm B was measured") as raised:
            ab_tests.run(begun, arms, listener=hear)
    assert raised.value.exit_code == 11
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    again = at.run("compare", "gemma.yaml", "-resume", begun.id, "-auto-approve")
    assert again.code == 0, again.all
    assert turns(at) == list(enumerate("ABABA"))


def test_a_repeat_during_which_somebody_else_applied_does_not_count(at: CommandLine, client: Path) -> None:
    assert not client.exists()
    arms = block_sizes(at)

    def colleague(run: Run, _cell: Cell) -> None:
        if run.turn is not None and run.turn.place == 1:
            assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0

    with Workspace.open(at.folder, clock=at.clock) as workspace:
        ab_tests = AbTests(workspace)
        begun = ab_tests.experiment(arms, Sweep(points=(POINT,)), repeats=2, driver=Driver.VLLM)
        with pytest.raises(errors.StalePlan, match="gemma was changed while arm B was measured"):
            ab_tests.run(begun, arms, listener=Listener(on_cell=colleague))
        assert [place for place, _ in ab_tests.remaining_turns(begun)] == [1, 2, 3, 4]
        result = ab_tests.run(ab_tests.experiments.find(begun.id), arms)
        assert ab_tests.remaining_turns(result) == ()
        assert ab_tests.bring_back(arms)
        assert not ab_tests.bring_back(arms), "it is what its profile says"
        assert ab_tests.result(result).keep is Side.B


SHARES = {"": 0.95, "kv-cache-dtype=fp8": 0.8}


def knowing(cli: Open, shares: Mapping[str, float]) -> CommandLine:
    """A deployment that can reckon, as well as its flags let it."""
    at = cli(boot={"boot_seconds": 5, "knows": dict(shares)})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    return at


RISKY = ("-ab", "serving.kv_cache_dtype=auto,fp8")


def test_a_risky_flag_that_makes_answers_worse_is_never_kept_whatever_it_brings(cli: Open, client: Path) -> None:
    at = knowing(cli, SHARES)
    result = at.run("compare", "gemma.yaml", *RISKY, *LOAD, "-questions", "150", "-auto-approve")
    assert result.code == 13, result.all
    assert "each arm also answers the questions of arithmetic (the first 150) once" in result.out
    assert re.search(r"A has 9\d\.\d% right, B [78]\d\.\d%: \d+ lost, 0 gained of 150", result.out)
    assert "Quality fell with B, and no figure outweighs that." in result.out
    assert "Keep A" in result.out
    assert "Keep B" not in result.out
    assert turns(at) == [(0, "A"), (1, "B")], "more repeats would change nothing"
    assert is_as_written(at)
    assert client.exists()
    tree = json.loads(at.run("compare", experiment(at)["id"], "-json").out)
    assert (tree["keep"], tree["reason"], tree["quality"]["judgement"]) == ("A", "quality fell", "fell")


def test_a_risky_flag_that_keeps_answers_right_is_judged_by_its_speed(cli: Open, client: Path) -> None:
    at = knowing(cli, {"": 0.95})
    assert not client.exists()
    client.parent.joinpath("bin", "vllm").write_text(
        client.parent.joinpath("bin", "vllm").read_text("utf-8").replace('block_size="32"', 'cache_dtype="fp8"'),
        "utf-8",
    )
    result = at.run("compare", "gemma.yaml", *RISKY, *LOAD, "-repeats", "2", "-questions", "40", "-auto-approve")
    assert result.code == 0, result.all
    assert "No quality regression was detected." in result.out
    assert "0 lost, 0 gained of 40" in result.out
    assert re.search(r"^B is better: requests/s", result.out, re.MULTILINE)
    assert re.search(
        r"^Keep B: write in \S+gemma.yaml, under serving\n  kv_cache_dtype: fp8$", result.out, re.MULTILINE
    )
    assert result.err.count("Asking http://") == 2


def test_a_risky_flag_is_not_kept_where_quality_cannot_be_told(cli: Open, client: Path) -> None:
    at = knowing(cli, {"": 0.3})
    assert not client.exists()
    result = at.run("compare", "gemma.yaml", *RISKY, *LOAD, "-repeats", "2", "-questions", "40", "-auto-approve")
    assert result.code == 0, result.all
    assert "It is not known whether quality fell" in result.out
    assert "Keep A" in result.out


def test_that_quality_is_not_going_to_be_asked_for_is_said_before(at: CommandLine) -> None:
    result = at.run("compare", "gemma.yaml", *RISKY, *LOAD, "-no-accuracy")
    assert result.code == 1, "nobody said yes"
    assert "quality is not measured, and serving.kv_cache_dtype may change it" in result.out
    assert "each arm answers" not in result.out


def test_what_belongs_to_an_ab_is_refused_without_one(at: CommandLine) -> None:
    for words, why in (
        (("one", "two", "-repeats", "3"), "--repeats needs --ab."),
        (("one", "two", "-accuracy", "arithmetic"), "--accuracy needs --ab."),
        (("gemma.yaml", "other.yaml", *SAME), "An A/B takes exactly one profile."),
        (("gemma.yaml", *SAME, "-repeats", "1"), "1 repeat cannot separate a difference from noise."),
        (("gemma.yaml", *SAME, "-questions", "5"), "--questions needs --accuracy."),
        (("gemma.yaml", *SAME, "-accuracy", "none.jsonl"), "none.jsonl cannot be read"),
        (("gemma.yaml", *SAME, "-accuracy", "arithmetic", "-no-accuracy"), "cannot be used together"),
        (("gemma.yaml", "-resume", "ab-1"), "There is no A/B `ab-1`."),
        (("ab-1",), "There is no A/B `ab-1`."),
    ):
        result = at.run("compare", *words)
        assert result.code == 1, result.all
        assert why in result.err
    assert is_as_written(at)
