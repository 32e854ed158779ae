"""Many deployments in one run: folders of profiles, one that fails among others, and what a plan of them asks for."""

from __future__ import annotations

import json
import math
import shutil
import threading

import pytest
from command_line import PROFILE, CommandLine, Open

from tpudeploy.loading import Profile
from tpudeploy.workspace import Workspace

QUICK = {"nodes": "simulated", "creates_per_minute": 1000}


def fleet(person: CommandLine, *names: str, folder: str = "fleet", **changed: str) -> None:
    """A profile for each name; `changed` has other text in place of what all have."""
    (person.folder / folder).mkdir(exist_ok=True)
    for name in names:
        text = PROFILE.replace("name: gemma", f"name: {name}")
        for before, after in changed.items():
            text = text.replace(before, after)
        (person.folder / folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def test_a_folder_means_the_profiles_in_it(cli: Open) -> None:
    person = cli(**QUICK)
    fleet(person, "one", "two", "three")
    checked = person.run("validate", "fleet")
    assert checked.code == 0
    assert [line.split("/")[-1] for line in checked.out.splitlines()] == [
        f"{name}.yaml: valid" for name in ("one", "three", "two")
    ]
    applied = person.run("apply", "fleet", "-auto-approve")
    assert applied.code == 0
    assert "Deployments: 3 served." in applied.out
    assert len(person.slices) == 3
    assert "No changes." in person.run("plan", "fleet/").out
    status = json.loads(person.run("status", "fleet", "--json").out)
    assert [d["name"] for d in status["deployments"]] == ["one", "three", "two"]
    removed = person.run("destroy", "fleet", "-auto-approve")
    assert "Deployments: 3 gone." in removed.out
    assert person.slices == {}


def test_a_folder_and_single_profiles_go_together_and_each_file_counts_once(cli: Open) -> None:
    person = cli()
    fleet(person, "one", "two")
    person.write()
    result = person.run("validate", "fleet/two.yaml", "fleet", "gemma.yaml", ".")
    assert result.code == 0
    files = [line.partition(":")[0].removeprefix(f"{person.folder}/") for line in result.out.splitlines()]
    assert files == ["fleet/two.yaml", "fleet/one.yaml", "gemma.yaml"]


def test_what_is_no_profile_in_a_folder_is_passed_over_and_said_so(cli: Open) -> None:
    person = cli()
    fleet(person, "one")
    place = person.folder / "fleet"
    (place / "base.yaml").write_text("version: 1\nmodel: {id: google/gemma-4-E2B-it}\n")
    (place / "canary.yaml").write_text("tpu: {type: v6e-8}\n")
    (place / "workflow.yml").write_text("name: CI\non: push\n")
    (place / "list.yaml").write_text("- a\n- b\n")
    (place / "empty.yaml").write_text("# nothing yet\n")
    (place / ".hidden.yaml").write_text("version: 1\nname: hidden\n")
    (place / "notes.txt").write_text("version: 1\nname: notes\n")
    (place / "older.yaml").mkdir()
    result = person.run("validate", "fleet")
    assert result.code == 0
    assert result.out.splitlines() == ["fleet/one.yaml: valid"]
    assert "fleet: ignoring 5 files that are not profiles." in result.err
    assert "fleet/base.yaml: it has no `name`" in result.err
    assert "fleet/canary.yaml: it has no `version`" in result.err
    assert "fleet/workflow.yml: it has no `version`" in result.err


def test_a_profile_that_takes_its_version_from_what_it_extends_is_one(cli: Open) -> None:
    person = cli()
    fleet(person, "one")
    place = person.folder / "fleet"
    (place / "zwei.yaml").write_text("extends: one.yaml\nname: zwei\n")
    (place / "flow.yaml").write_text(json.dumps({"version": 1, "name": "flow", "extends": "one.yaml"}))
    assert person.run("validate", "fleet").out.count(": valid") == 3


def test_a_file_that_is_no_yaml_is_not_passed_over(cli: Open) -> None:
    person = cli()
    fleet(person, "one")
    (person.folder / "fleet" / "broken.yaml").write_text("version: 1\nname: [\n")
    (person.folder / "fleet" / "worse.yaml").write_text("{")
    result = person.run("validate", "fleet")
    assert result.code == 1
    assert "fleet/broken.yaml:" in result.err
    assert "fleet/worse.yaml:" in result.err
    assert "fleet/one.yaml: valid" in result.out


def test_a_folder_without_a_profile_is_an_error_that_says_what_lies_there(cli: Open) -> None:
    person = cli()
    (person.folder / "fleet").mkdir()
    (person.folder / "fleet" / "canary.yaml").write_text("tpu: {type: v6e-8}\n")
    result = person.run("plan", "fleet")
    assert result.code == 1
    assert "There is no profile in `fleet`." in result.err
    assert "fleet/canary.yaml: it has no `version`" in result.err


def test_one_that_fails_stops_no_other_and_each_has_its_line(cli: Open) -> None:
    person = cli(trouble=[{"fault": "iam-denied", "method": "queuedResources.create", "name": "two-*"}], **QUICK)
    fleet(person, "one", "two", "three")
    result = person.run("apply", "fleet", "-auto-approve")
    assert result.code == 1
    assert "Deployments: 2 served, 1 failed." in result.out
    lines = {line.split()[0]: line for line in result.out.splitlines() if line.startswith("  ") and line.split()}
    assert lines["one"].split() == ["one", "served"]
    assert lines["two"].split()[:2] == ["two", "failed:"]
    assert "PERMISSION" in lines["two"].upper()
    again = person.run("apply", "fleet/one.yaml", "fleet/three.yaml", "-auto-approve")
    assert "No changes." in again.out


def test_the_exit_code_is_that_of_the_worst(cli: Open) -> None:
    """What a person must mend, 1, before what another run goes on with, 12."""
    person = cli(
        trouble=[
            {"fault": "wait-for-ever", "name": "one-*"},
            {"fault": "iam-denied", "method": "queuedResources.create", "name": "two-*"},
        ],
        **QUICK,
    )
    fleet(person, "one", "two", "three")
    result = person.run("apply", "fleet", "-auto-approve", "-timeout", "20m", "--json")
    assert result.code == 1
    report = json.loads(result.out.splitlines()[-1])
    results = {d["name"]: (d["result"], d["error"] and d["error"]["exit_code"]) for d in report["deployments"]}
    assert results == {"one": ("failed", 12), "two": ("failed", 1), "three": ("served", None)}
    (person.folder / "fleet" / "two.yaml").unlink()
    assert person.run("apply", "fleet", "-auto-approve", "-timeout", "20m").code == 12


def test_what_needs_nothing_is_told_as_unchanged(cli: Open) -> None:
    person = cli(**QUICK)
    fleet(person, "one")
    person.run("apply", "fleet", "-auto-approve")
    fleet(person, "two")
    result = person.run("apply", "fleet", "-auto-approve")
    assert "Deployments: 1 served, 1 unchanged." in result.out


def test_one_whose_plan_no_longer_holds_stops_no_other(cli: Open) -> None:
    person = cli(**QUICK)
    fleet(person, "one", "two")
    profiles = [Profile.load(person.folder / "fleet" / f"{name}.yaml") for name in ("one", "two")]
    with Workspace.open(person.folder, clock=person.clock) as workspace:
        plan = workspace.plan(profiles)
        person.run("apply", "fleet/two.yaml", "-auto-approve")
        report = workspace.apply(plan)
    assert [(d.name, d.result) for d in report.deployments] == [("one", "served"), ("two", "failed")]
    assert report.error is not None
    assert report.error.exit_code == 11


def test_a_plan_of_a_fleet_that_stands_takes_a_few_lists(cli: Open) -> None:
    person = cli(**QUICK)
    fleet(person, *(f"d{number:02}" for number in range(24)))
    assert person.run("apply", "fleet", "-auto-approve").code == 0
    before = len(person.emulator.requests)
    assert "No changes." in person.run("plan", "fleet").out
    requests = [f"{r.method} {r.path.partition('?')[0].rpartition('/')[2]}" for r in person.emulator.requests[before:]]
    assert sorted(set(requests)) == ["GET nodes", "GET queuedResources"]
    assert len(requests) <= 6  # two lists in each of three zones


def test_a_plan_of_a_fleet_sees_the_one_that_is_gone(cli: Open) -> None:
    person = cli(**QUICK)
    fleet(person, *(f"d{number:02}" for number in range(12)))
    assert person.run("apply", "fleet", "-auto-approve").code == 0
    preempted = next(name for name in person.slices if name.startswith("d07-"))
    person.delete_by_hand(preempted)
    person.clock.sleep(600)
    result = person.run("plan", "fleet", "-detailed-exitcode")
    assert result.code == 2
    assert "Plan: 1 to add, 0 to change, 0 to destroy." in result.out


@pytest.mark.parametrize("many", ["0", "-3", "some", "1.5"])
def test_a_parallelism_that_does_nothing_is_refused(cli: Open, many: str) -> None:
    person = cli()
    person.write()
    result = person.run("plan", "gemma.yaml", f"-parallelism={many}")
    assert result.code == 1
    assert "is not a positive integer" in result.err


@pytest.mark.parametrize("parallelism", [1, 3])
def test_parallelism_is_how_many_deployments_are_under_way_at_once(cli: Open, parallelism: int) -> None:
    person = cli(**QUICK)
    fleet(person, *(f"d{number}" for number in range(6)))
    profiles = [Profile.load(path) for path in (person.folder / "fleet").iterdir()]
    busy: set[int] = set()
    with Workspace.open(person.folder, clock=person.clock, parallelism=parallelism) as workspace:
        workspace.apply(workspace.plan(profiles), on_event=lambda _: busy.add(threading.get_ident()))
    busy.discard(threading.get_ident())
    assert 0 < len(busy) <= 2 * parallelism  # those that begin, and those that go on


def test_parallelism_has_its_twin_in_the_environment(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    person = cli()
    person.write()
    monkeypatch.setenv("TPUDEPLOY_PARALLELISM", "none")
    assert "is not a positive integer" in person.run("plan", "gemma.yaml").err


def test_one_that_a_check_forbids_stops_no_other(cli: Open) -> None:
    person = cli(**QUICK)
    fleet(person, *SIX)
    fleet(person, "four", **{"max_model_len: 16384": "max_model_len: 900000"})
    result = person.run("apply", "fleet", "-auto-approve")
    assert result.code == 13
    assert "Deployments: 5 served, 1 failed." in result.out
    assert {name.partition("-")[0] for name in person.slices} == set(SIX) - {"four"}
    alone = person.run("apply", "fleet/four.yaml", "-auto-approve")
    assert alone.code == 13
    assert person.run("plan", "fleet").code == 13


def test_one_that_may_not_be_destroyed_stops_no_other(cli: Open) -> None:
    person = cli(**QUICK)
    fleet(person, *SIX)
    fleet(person, "four", **{"placement:": "lifecycle: {prevent_destroy: true}\nplacement:"})
    assert person.run("apply", "fleet", "-auto-approve").code == 0
    result = person.run("destroy", "fleet", "-auto-approve")
    assert result.code == 13
    assert "Deployments: 5 gone, 1 failed." in result.out
    assert {name.partition("-")[0] for name in person.slices} == {"four"}


def test_one_whose_state_cannot_be_read_stops_no_other_and_its_state_is_left_alone(cli: Open) -> None:
    person = cli(**QUICK)
    fleet(person, *SIX)
    path = person.folder / ".tpudeploy" / "state" / "four.json"
    path.parent.mkdir(parents=True)
    path.write_text("{", encoding="utf-8")
    result = person.run("apply", "fleet", "-auto-approve")
    assert result.code == 1
    assert "Deployments: 5 served, 1 failed." in result.out
    assert "four.json" in result.words
    assert path.read_text(encoding="utf-8") == "{"
    assert person.run("apply", "fleet/four.yaml", "-auto-approve").code == 1
    assert len(person.slices) == 5


def test_one_that_has_slices_which_no_state_remembers_stops_no_other(cli: Open) -> None:
    person = cli(**QUICK)
    fleet(person, "four")
    assert person.run("apply", "fleet", "-auto-approve").code == 0
    (person.folder / ".tpudeploy" / "state" / "four.json").unlink()
    fleet(person, *SIX)
    result = person.run("apply", "fleet", "-auto-approve")
    assert result.code == 13
    assert "Deployments: 5 served, 1 failed." in result.out
    assert len(person.slices) == 6


@pytest.mark.parametrize("fault", ["iam-denied", "unavailable"])
@pytest.mark.parametrize("verb", ["plan", "apply", "destroy"])
def test_one_whose_slice_cannot_be_looked_at_stops_no_other(cli: Open, verb: str, fault: str) -> None:
    person = cli(**QUICK)
    fleet(person, "one", "four")
    assert person.run("apply", "fleet", "-auto-approve").code == 0
    fleet(person, *SIX)
    person.emulator.script({"fault": fault, "method": "*.list"})
    person.emulator.script({"fault": fault, "method": "*.get", "name": "four-*"})
    result = person.run(verb, "fleet", *(["-auto-approve"] if verb != "plan" else []))
    assert result.code == 1, result.all
    assert "four" in result.err
    stands = {name.partition("-")[0] for name in person.slices}
    if verb == "plan":
        assert "Plan: 4 to add, 0 to change, 0 to destroy." in result.out
    elif verb == "apply":
        assert "Deployments: 4 served, 1 failed, 1 unchanged." in result.out
        assert stands == set(SIX)
    else:
        assert stands == {"four"}


def test_one_in_a_zone_that_does_not_answer_stops_no_other(cli: Open) -> None:
    """The plan does not wait for each of its deployments there."""
    person = cli(**QUICK)
    fleet(person, "one", "two", "three")
    fleet(person, "four", "five", "six", **{"[us-east5-a, us-east5-b, ": "[us-east5-b, "})
    assert person.run("apply", "fleet", "-auto-approve").code == 0
    zones = {zone: list(slices) for zone, slices in person.emulator.live().items() if slices}
    assert len(zones) > 1, zones
    person.emulator.script({"fault": "unavailable", "zone": "us-east5-b"})
    result = person.run("destroy", "fleet", "-auto-approve")
    assert result.code == 1, result.all
    assert {name for slices in person.emulator.live().values() for name in slices} == set(zones["us-east5-b"])


SIX = ("one", "two", "three", "four", "five", "six")
# Nothing takes long but what the story says, so that a few seconds more are seen.
STEADY = {
    **QUICK,
    "timings": {"queued": 5, "waiting": 5, "provisioning": 5, "node_ready": 0, "neighbour": 0},
    "boot": {"boot_seconds": 5},
}
SLOW = {"fault": "slow", "name": "four-*", "seconds": 15}


def _served_after(person: CommandLine, *words: str) -> dict[str, float]:
    """Apply the fleet; for each deployment that serves, the seconds that this took."""
    began = person.clock.now()
    result = person.run("apply", "fleet", "-auto-approve", "-json", *words)
    rows = [json.loads(line) for line in result.out.splitlines()]
    return {row["address"].partition("[")[0]: row["at"] - began for row in rows if row.get("type") == "serving"}


@pytest.mark.instant("it names each of its durations, and which deployment is slow")
@pytest.mark.parametrize("jitter", [0.0, 0.1])
@pytest.mark.parametrize("parallelism", ["2", "8"])
def test_one_deployment_with_slow_replies_delays_no_other(cli: Open, parallelism: str, jitter: float) -> None:
    """Each other one serves when it does without it; where durations vary, as much later as its own may be longer.

    A look at what takes so much longer may come one pause between two looks later.
    """
    cloud = {**STEADY, "jitter": jitter}
    steady = cli(**cloud)
    fleet(steady, *SIX)
    usual = _served_after(steady, f"-parallelism={parallelism}")
    shutil.rmtree(steady.folder / ".tpudeploy")  # what is learnt of the zones makes the second run quicker
    slow = cli(trouble=[SLOW], **cloud)
    after = _served_after(slow, f"-parallelism={parallelism}")
    assert after.keys() == usual.keys() == set(SIX)
    slowest = max(usual.values())
    latest = slowest if not jitter else slowest * (1 + jitter) / (1 - jitter) + slow.patience.poll_most
    assert all(after[name] <= latest for name in SIX if name != "four"), (usual, after)
    assert after["four"] > max(after[name] for name in SIX if name != "four") + 15


@pytest.mark.parametrize("parallelism", ["2", "8"])
def test_under_a_time_limit_a_slow_deployment_fails_alone(cli: Open, parallelism: str) -> None:
    """The limit is one second more than the others take without it: were one of them to wait for it, it would fail."""
    steady = cli(**STEADY, jitter=0.0)
    fleet(steady, *SIX)
    slowest = max(_served_after(steady, f"-parallelism={parallelism}").values())
    shutil.rmtree(steady.folder / ".tpudeploy")
    person = cli(trouble=[SLOW, {"fault": "wait-for-ever", "name": "four-*"}], **STEADY, jitter=0.0)
    fleet(person, *SIX)
    limit = f"-timeout={math.ceil(slowest) + 1}s"
    result = person.run("apply", "fleet", "-auto-approve", limit, f"-parallelism={parallelism}", "-json")
    assert result.code == 12, result.all
    report = json.loads(result.out.splitlines()[-1])
    assert {d["name"] for d in report["deployments"] if d["result"] == "served"} == set(SIX) - {"four"}


@pytest.mark.long
def test_a_fleet_is_asked_for_as_fast_as_google_lets_a_project_ask_and_no_faster(cli: Open) -> None:
    """Sixty creates a minute, and twenty at once after a rest: sixty deployments take forty seconds."""
    person = cli(
        timings=dict.fromkeys(("queued", "waiting", "provisioning", "node_ready"), 1), boot={"boot_seconds": 5}
    )
    fleet(person, *(f"d{number:02}" for number in range(60)))
    counts: list[tuple[float, int]] = []
    person.clock.on_advance.append(lambda: counts.append((person.clock.now(), len(person.requested_zones()))))
    assert person.run("apply", "fleet", "-auto-approve").code == 0
    assert len(person.requested_zones()) == 60
    # Before the first one, the registry and the hub are asked for digests, which reply after 15 s.
    began = max(at for at, creates in counts if creates == 0)
    assert next(at for at, creates in counts if creates == 60) - began < 45
    # Eight threads may ask at the same moment.
    assert all(creates <= 20 + 8 + at - began for at, creates in counts if creates)
