"""Each capability through the library: its result prints as its command does, and is the document of `--json`."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import PROFILE, Open, Result
from stories.serving_folder import PROFILE_FILE, serving_folder

import tpudeploy as td
from tpudeploy.cli.main import main
from tpudeploy.emulator import VirtualClock
from tpudeploy.operations import OPERATIONS, operation
from tpudeploy.operations.arguments import arguments

RUNS = ("agent-e2b-v6e-1", "agent-e2b-v6e-4")
G = PROFILE_FILE


@dataclass(frozen=True, kw_only=True)
class Row:
    """How a capability is called. `part`: the command prints more than this result; `moves`: its figures vary."""

    words: tuple[str, ...]
    args: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    part: bool = False
    moves: bool = False


ROWS: Mapping[str, Row] = {
    "validate": Row(words=("validate", G), args=(G,), part=True),
    "size": Row(words=("size", G, "-sweep"), args=(G,), options={"sweep": True}),
    "render": Row(words=("render", G, "request"), args=(G, "request")),
    "doctor": Row(words=("doctor", G), args=(G,)),
    "zones": Row(words=("zones", "-type", "v6e-4"), options={"type": "v6e-4"}),
    "plan": Row(words=("plan", G, "-set", "serving.max_model_len=8192"), args=("shorter.yaml",), moves=True),
    "gc": Row(words=("gc",), part=True),
    "drift": Row(words=("drift", G), args=(G,)),
    "status": Row(words=("status", G, "-details", "-timeline"), args=(G,), options={"details": True, "timeline": True}),
    "details": Row(words=("status", G, "-details"), args=(G,), part=True),
    "show": Row(words=("show",)),
    "output": Row(words=("output", "gemma"), args=("gemma",)),
    "logs": Row(words=("logs", G, "-explain"), args=(G,)),
    "diagnose": Row(words=("diagnose", G), args=(G,), moves=True),
    "verify": Row(words=("verify", G), args=(G,)),
    "accuracy": Row(
        words=("verify", G, "-accuracy", "arithmetic", "-questions", "2"),
        args=(G,),
        options={"questions": "arithmetic", "count": 2},
        moves=True,
    ),
    "metrics": Row(words=("metrics", G), args=(G,), moves=True),
    "query": Row(words=("query", G, "Hello"), args=(G, "Hello"), moves=True),
    "bench_import": Row(words=("bench", "import", "run.json"), args=("run.json",), moves=True),
    "benchmark_runs": Row(words=("bench", "list")),
    "benchmark_run": Row(words=("bench", "show", "RUN"), args=("RUN",)),
    "benchmark_trend": Row(words=("bench", "trend", "RUN"), args=("RUN",)),
    "compare": Row(words=("compare", *RUNS), args=(RUNS,)),
    "operating_points": Row(words=("recommend", "-run", RUNS[0]), args=(RUNS[0],)),
    "recommend": Row(
        words=("recommend", G, "-users", "4", "-context", "1024", "-output", "128"),
        args=(G,),
        options={"users": 4, "context": 1024, "output": 128},
        part=True,
    ),
    "recommend_models": Row(
        words=("recommend", G, "-model", "Qwen/Qwen3-8B", "-users", "4", "-context", "1024", "-output", "128"),
        args=(G, "Qwen/Qwen3-8B"),
        options={"users": 4, "context": 1024, "output": 128},
    ),
    "alerts": Row(words=("alerts", G), args=(G,)),
    "cost": Row(words=("cost",)),
    "rehearse": Row(words=("rehearse", "-dry-run", "-max-cost", "5"), options={"max_cost": 5.0, "dry_run": True}),
    "state_list": Row(words=("state", "list")),
    "state_show": Row(words=("state", "show", "gemma"), args=("gemma",)),
    "state_history": Row(words=("state", "history", "gemma"), args=("gemma",)),
    "state_pull": Row(words=("state", "pull", "gemma"), args=("gemma",)),
    "state_push": Row(words=("state", "push", "state.json"), args=("STATE",)),
    "state_rm": Row(words=("state", "rm", "gemma", "-dry-run"), args=("gemma",), options={"dry_run": True}),
    "explain": Row(words=("explain", "TPU1201"), args=("TPU1201",)),
    "version": Row(words=("version",)),
}
TAKES_SEVERAL = {"validate", "drift", "status", "alerts"}
ELSEWHERE = {"apply", "destroy"}  # below: each call needs a deployment of its own
# Each has stories of its own, about what it changes.
IN_OTHER_STORIES = {
    "bench",
    "bench_report",
    "import_benchmarks",
    "ab",
    "ab_propose",
    "compile",
    "draft_profile",
    "support_bundle",
    "ab_result",
    "tune",
    "tune_result",
    "campaign",
    "campaign_propose",
    "campaign_report",
    "campaign_result",
    "state_mv",
    "state_migrate",
    "force_unlock",
    "import_slice",
    "report_host",
}


@dataclass(frozen=True)
class Place:
    """A folder in which gemma serves, and one benchmark result was imported."""

    folder: Path
    clock: VirtualClock

    def workspace(self) -> td.Workspace:
        return td.Workspace.open(self.folder, clock=self.clock)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("library")
    with serving_folder(folder, {"shorter.yaml": PROFILE.replace("16384", "8192")}) as clock:
        yield Place(folder, clock)


def command(place: Place, capture: pytest.CaptureFixture[str], *words: str) -> Result:
    capture.readouterr()
    code = main(words, clock=place.clock)
    output = capture.readouterr()
    return Result(code=code, out=output.out, err=output.err)


def test_every_capability_has_its_row_here() -> None:
    assert ROWS.keys() | ELSEWHERE | IN_OTHER_STORIES == set(OPERATIONS)


@pytest.mark.parametrize("name", ROWS)
def test_a_result_prints_as_its_command_and_is_the_document_of_json(
    name: str, place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    row = ROWS[name]
    with place.workspace() as workspace:
        state = str(workspace.state_pull("gemma"))
        (place.folder / "state.json").write_text(state, encoding="utf-8")
        ids = {"RUN": workspace.benchmark_runs().runs[0].id, "STATE": state}
        words, args = ([ids.get(each, each) for each in some] for some in (row.words, row.args))
        result = getattr(workspace, name)(*args, **row.options)
    printed = command(place, capfd, *words)
    document = json.loads(command(place, capfd, *words, "--json").out)
    if row.moves:
        assert len(str(result).strip("\n").splitlines()) == len(printed.out.strip("\n").splitlines())
        assert result.to_dict().keys() == document.keys()
    elif row.part:
        assert " ".join(str(result).split()) in " ".join((printed.err + printed.out).split())
        assert result.to_dict().items() <= document.items()
    else:
        assert str(result).strip("\n") == printed.out.strip("\n")
        assert result.to_dict() == document
    assert result.exit_code == printed.code
    assert len(repr(result)) < 200
    assert len(repr(result).splitlines()) == 1
    assert result._repr_html_().startswith("<")


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.args == (G,)])
def test_a_profile_is_taken_in_any_form(name: str, place: Place) -> None:
    profile = td.Profile.load(place.folder / G)
    mapping = td.Profile.from_mapping(yaml.safe_load(PROFILE))
    forms: list[Any] = [G, place.folder / G, profile, td.Profile.from_text(PROFILE), mapping]
    if name in TAKES_SEVERAL:
        forms += [[G], (profile,)]
    with place.workspace() as workspace:
        for form in forms:
            assert str(getattr(workspace, name)(form, **ROWS[name].options)), form


SEVERAL_TEXTS = [
    (name, argument.name)
    for name in OPERATIONS
    for argument in arguments(operation(name).run)
    if argument.is_repeatable
]
REQUIRED: Mapping[str, Mapping[str, Any]] = {
    "plan": {"profiles": G},
    "drift": {"profiles": G},
    "bench_report": {"out": "page.html"},
    "tune": {"profile": G},
    "recommend_models": {"users": 4, "context": 1024, "output": 128},
}


@pytest.mark.parametrize(("name", "argument"), SEVERAL_TEXTS)
def test_one_text_is_taken_where_several_are(name: str, argument: str, place: Place) -> None:
    answers = []
    with place.workspace() as workspace:
        for value in ("none-1", ["none-1"]):
            with pytest.raises(td.errors.TpudeployError) as error:
                getattr(workspace, name)(**REQUIRED.get(name, {}), **{argument: value})
            answers.append(str(error.value))
    assert answers[0] == answers[1]


def test_a_deployment_is_destroyed_by_its_name_without_its_profile(cli: Open) -> None:
    at = cli(nodes="simulated")
    profile = at.folder / at.write()
    with td.Workspace.open(at.folder, clock=at.clock) as workspace:
        workspace.apply(workspace.plan(profile))
        profile.unlink()
        destroyed = workspace.destroy("gemma")
        with pytest.raises(
            td.errors.UsageError, match="`nope` is neither a profile nor a deployment with a state here"
        ):
            workspace.destroy("nope")
    assert str(destroyed) == "Done! Resources: 0 added, 0 changed, 1 destroyed."
    assert not at.slices


def test_a_run_prints_its_summary_as_apply_and_destroy_do(cli: Open) -> None:
    at = cli()
    profile = at.folder / at.write()
    printed = at.run("apply", G, "-auto-approve").out
    assert at.run("destroy", G, "-auto-approve").code == 0
    with td.Workspace.open(at.folder, clock=at.clock) as workspace:
        report = workspace.apply(workspace.plan(profile))
        destroyed = workspace.destroy(profile)
    summary, output = str(report).splitlines()
    assert summary == "Done! Resources: 1 added, 0 changed, 0 destroyed."
    assert summary in printed
    assert output.partition(" = ")[0] == "gemma[0] endpoint"
    assert "\ngemma[0] endpoint = " in printed
    assert repr(report) == f"<Report: {summary}>"
    assert summary in report._repr_html_()
    assert str(destroyed) == "Done! Resources: 0 added, 0 changed, 1 destroyed."


@pytest.mark.parametrize("name", [*ROWS, "a profile"])
def test_what_the_library_returns_is_pickled_and_copied(name: str, place: Place) -> None:
    with place.workspace() as workspace:
        profile = td.Profile.load(place.folder / "gemma.yaml")
        row = ROWS.get(name, Row(words=()))
        state = str(workspace.state_pull("gemma"))
        ids = {"RUN": workspace.benchmark_runs().runs[0].id, "STATE": state}
        args = [ids.get(each, each) for each in row.args]
        result = getattr(workspace, name)(*args, **row.options) if name in ROWS else profile
    for again in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
        assert type(again) is type(result)
        assert str(again) == str(result)


def test_a_second_run_reports_the_endpoints_of_deployments_without_a_change(cli: Open) -> None:
    at = cli()
    at.write()
    at.write(PROFILE.replace("name: gemma", "name: other"), "other.yaml")
    profiles = [td.Profile.load(at.folder / each) for each in ("gemma.yaml", "other.yaml")]
    with td.Workspace.open(at.folder, clock=at.clock) as workspace:
        first = workspace.apply(workspace.plan(profiles), timeout="1h")
        again = workspace.apply(workspace.plan(profiles))
        alone = workspace.apply(workspace.plan(profiles[:1]))
    assert [each.url for each in again.endpoints] == [each.url for each in first.endpoints]
    assert [each.address for each in again.endpoints] == ["gemma[0]", "other[0]"]
    assert [each.slice_name for each in alone.endpoints] == [first.endpoints[0].slice_name]
    text = at.run("apply", "-auto-approve", "gemma.yaml", "other.yaml")
    assert f'other[0] endpoint = "{first.endpoints[1].url}"' in text.out
    *_, report = at.run("apply", "-auto-approve", "-json", "gemma.yaml", "other.yaml").out.splitlines()
    assert [each["url"] for each in json.loads(report)["endpoints"]] == [each.url for each in first.endpoints]


@pytest.mark.parametrize(
    ("plan", "timeout", "sentence"),
    [
        ("a profile", None, "`apply` takes a plan, and got a Profile."),
        ("a list", None, "`apply` takes a plan, and got a list."),
        ("a plan", "5 minutes", "timeout: `5 minutes` is not a duration."),
    ],
)
def test_a_wrong_argument_of_apply_is_a_sentence(plan: str, timeout: str | None, sentence: str, place: Place) -> None:
    profile = td.Profile.load(place.folder / "gemma.yaml")
    with place.workspace() as workspace:
        wrong: Any = {"a profile": profile, "a list": [profile], "a plan": workspace.plan([profile])}[plan]
        with pytest.raises(td.errors.UsageError) as caught:
            workspace.apply(wrong, timeout=timeout)
    assert caught.value.message == sentence


def test_a_workspace_that_was_stopped_runs_its_next_calls(cli: Open) -> None:
    """The real clock, for virtual time never waits."""
    at = cli(timings={"waiting": 7200.0})
    at.write()
    profile = td.Profile.load(at.folder / "gemma.yaml")
    with td.Workspace.open(at.folder) as workspace:
        workspace.stop()  # nothing runs
        plan = workspace.plan([profile])

        def hear(event: td.events.Event) -> None:
            if isinstance(event, td.events.Requested):
                workspace.stop()

        with pytest.raises(td.errors.Interrupted):
            workspace.apply(plan, on_event=hear)
        report = workspace.apply(workspace.plan([profile]), wait=td.Wait.ACCEPTED)
    assert report.error is None, report.error


def test_an_error_prints_as_the_command_prints_it(place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    (place.folder / "broken.yaml").write_text("version: 1\nnmae: x\n", encoding="utf-8")
    with place.workspace() as workspace:
        with pytest.raises(td.errors.TpudeployError) as invalid:
            workspace.plan("broken.yaml")
        with pytest.raises(td.errors.TpudeployError) as unknown:
            workspace.explain("TPU9999")
    assert command(place, capfd, "plan", "broken.yaml").err == f"{invalid.value}\n"
    assert "   2 | nmae: x\n" in str(invalid.value)
    assert command(place, capfd, "explain", "TPU9999").err == f"{unknown.value}\n"
