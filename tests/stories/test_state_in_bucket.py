"""States in a bucket, as people and pipelines share them: found from anywhere, locked, freed, never overwritten."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open
from strict_schema import strict

from tpudeploy import Profile, Workspace
from tpudeploy.adapters.state.bucket_locks import LEASE_SECONDS
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.history import Ending, HistoryEntry
from tpudeploy.domain.lock import Lease
from tpudeploy.domain.names import Zone
from tpudeploy.domain.state import State
from tpudeploy.emulator.http_server import HttpRequest, Reply
from tpudeploy.emulator.storage_objects import Conditions, StoredObject

PLACE = "gs://states/team"
BACKEND = ("--backend", PLACE)
APPLY = ("apply", "-auto-approve", "gemma.yaml")
INSERT = "storage.objects.insert"


def objects(at: CommandLine) -> dict[str, bytes]:
    return {blob.name: blob.content for blob in at.emulator._cloud.objects.under("states", "")}


def neighbour(at: CommandLine, tmp_path: Path) -> CommandLine:
    """Somebody else, in a folder of their own, with the same profile."""
    folder = tmp_path / "elsewhere"
    folder.mkdir(exist_ok=True)
    (folder / "gemma.yaml").write_text(PROFILE, encoding="utf-8")
    return replace(at, folder=folder)


def take_lease(at: CommandLine, name: str = "gemma") -> tuple[Workspace, Lease]:
    """A run of ada's, in the middle of a step."""
    workspace = Workspace.open(at.folder, backend=PLACE, clock=at.clock)
    return workspace, workspace.adapters.states.lock(name, "apply")


def test_what_one_folder_applied_another_one_sees_and_ends(cli: Open, tmp_path: Path) -> None:
    at = cli()
    at.write()
    assert at.run(*APPLY, *BACKEND).code == 0
    assert _without_zone_log(at) == ["team/endpoints/gemma.json", "team/state/gemma.json"]
    assert sorted(path.name for path in at.folder.iterdir()) == [".tpudeploy", "gemma.yaml", "tpudeploy.lock.json"]
    assert not (at.folder / ".tpudeploy" / "state").exists()
    other = neighbour(at, tmp_path)
    assert "No changes" in other.run("plan", "-detailed-exitcode", "gemma.yaml", *BACKEND).out
    assert other.run("plan", "-detailed-exitcode", "gemma.yaml").code == 13  # a slice that no state here tracks
    assert "127." in other.run("output", "gemma", *BACKEND).out
    assert "serving" in other.run("status", *BACKEND, "gemma.yaml").out
    assert "gemma" in other.run("status", *BACKEND).out
    assert other.run("query", "gemma.yaml", "Say hello.", *BACKEND).code == 0
    assert other.run("destroy", "-auto-approve", "gemma.yaml", *BACKEND).code == 0
    assert not at.slices
    assert _without_zone_log(at) == ["team/state/gemma.json"]


def _without_zone_log(at: CommandLine) -> list[str]:
    return sorted(name for name in objects(at) if not name.startswith(("team/zones/", "team/ledger/", "team/boots/")))


@pytest.mark.parametrize("way", ["variable", "settings", "library"])
def test_a_bucket_can_be_named_by_every_way_in(cli: Open, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    at = cli()
    at.write()
    if way == "variable":
        monkeypatch.setenv("TPUDEPLOY_BACKEND", PLACE)
    if way == "settings":
        (at.folder / "tpudeploy.toml").write_text(f'backend = "{PLACE}"\n', encoding="utf-8")
    if way == "library":
        with Workspace.open(at.folder, backend=PLACE, clock=at.clock) as workspace:
            assert workspace.apply(workspace.plan([Profile.load(at.folder / "gemma.yaml")])).error is None
    else:
        assert at.run(*APPLY).code == 0
    assert "team/state/gemma.json" in objects(at)
    assert not (at.folder / ".tpudeploy" / "state").exists()


def test_storage_of_its_own_is_where_googles_variable_says(
    cli: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tpus, storage = cli(), cli()
    monkeypatch.setenv("TPU_EMULATOR_HOST", tpus.emulator.host)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://{storage.emulator.host}")
    storage.write()
    assert replace(storage, clock=tpus.clock).run(*APPLY, "--wait", "accepted", *BACKEND).code == 0
    assert "team/state/gemma.json" in objects(storage)
    assert not objects(tpus)
    assert len(tpus.slices) == 1


def test_who_finds_the_lock_is_told_who_holds_it_and_nothing_happens(
    cli: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = cli(timings={"neighbour": 0})  # the lock's age is shown to the second
    at.write()
    monkeypatch.setenv("USER", "ada")
    monkeypatch.setenv("CI_JOB_URL", "https://gitlab.example/jobs/7")
    workspace, lease = take_lease(at)
    at.clock.sleep(90)
    result = at.run(*APPLY, *BACKEND)
    assert result.code == 10
    assert "The state of gemma is locked by ada@" in result.words
    assert "`apply`, https://gitlab.example/jobs/7) for 0:01:30" in result.words
    assert "Try again" in result.words
    assert f"tpudeploy force-unlock {lease.info.id}" in result.words
    assert not at.requested_zones()
    assert at.run("plan", "gemma.yaml", *BACKEND).code == 0
    workspace.adapters.states.unlock(lease)
    assert at.run(*APPLY, *BACKEND).code == 0
    workspace.close()


def test_the_lock_of_a_run_that_died_is_freed_by_who_cannot_wait(cli: Open) -> None:
    at = cli()
    at.write()
    _, lease = take_lease(at)
    at.clock.sleep(60)
    result = at.run(*APPLY, *BACKEND)
    assert result.code == 10
    assert "its lock is taken over 15 min after its last heartbeat" in result.words
    assert at.run("force-unlock", lease.info.id, *BACKEND).code == 1
    wrong = at.run("force-unlock", "-force", "0123", *BACKEND)
    assert wrong.code == 1
    assert "There is no lock with the id 0123" in wrong.words
    assert at.run(*APPLY, *BACKEND).code == 10
    unlocked = at.run("force-unlock", "-force", lease.info.id, *BACKEND)
    assert (unlocked.code, unlocked.out) == (0, "Released the lock of gemma.\n")
    assert at.run(*APPLY, *BACKEND).code == 0


def test_a_lock_that_is_released_is_a_document(cli: Open) -> None:
    at = cli()
    at.write()
    _, lease = take_lease(at)
    strict(at, "unlock").validate(json.loads(at.run("force-unlock", "-force", lease.info.id, "-json", *BACKEND).out))


def test_a_lock_that_was_left_behind_is_named_by_plan_and_status_with_the_command_that_frees_it(cli: Open) -> None:
    at = cli()
    at.write()
    assert at.run(*APPLY, *BACKEND).code == 0
    _, lease = take_lease(at)
    for words in (("plan", "gemma.yaml"), ("status", "gemma.yaml"), ("status",)):
        result = at.run(*words, *BACKEND)
        assert result.code == 0
        assert "The state of gemma is locked by" in result.words
        assert f"tpudeploy force-unlock {lease.info.id}" in result.words
    document = json.loads(at.run("status", "gemma.yaml", "--json", *BACKEND).out)
    assert lease.info.id in document["deployments"][0]["lock"]
    assert at.run("force-unlock", "-force", lease.info.id, *BACKEND).code == 0
    for command in ("plan", "status"):
        assert "locked" not in at.run(command, "gemma.yaml", *BACKEND).words


def test_the_lock_of_a_run_that_died_keeps_nobody_out_for_longer_than_its_lease(
    cli: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = cli()
    at.write()
    monkeypatch.setenv("USER", "ada")
    take_lease(at)
    at.clock.sleep(1800)  # the next run of a schedule
    result = at.run(*APPLY, *BACKEND)
    assert result.code == 0, result.all
    assert "Took over the lock of gemma from ada@" in result.words
    assert "If it still runs, it stops before its next write" in result.words
    assert _without_zone_log(at) == ["team/endpoints/gemma.json", "team/state/gemma.json"]


def test_whoever_lost_the_lock_in_the_middle_of_a_step_stops_there(cli: Open) -> None:
    slow = {"fault": "slow", "method": "queuedResources.create", "call": 1, "seconds": 30}
    at = cli(trouble=[slow])
    at.write()
    workspace = Workspace.open(at.folder, backend=PLACE, clock=at.clock)
    leases: list[Lease] = []

    def steal() -> None:
        """While the first request is under way."""
        if at.requested_zones() and not leases:
            holder = workspace.adapters.states.holder("gemma")
            assert holder is not None
            workspace.adapters.states.force_unlock(holder.id)
            leases.append(workspace.adapters.states.lock("gemma", "destroy"))

    at.clock.on_advance.append(steal)
    zombie = at.run(*APPLY, *BACKEND)
    assert zombie.code == 1
    assert "lost the lock" in zombie.words
    assert at.requested_zones() == ["us-east5-a"]
    (lease,) = leases
    assert workspace.adapters.states.holder("gemma") == lease.info
    (name,) = at.slices
    state = workspace.adapters.states.read("gemma").state
    assert state is not None
    assert [a.name for a in state.attempts] == [name]
    workspace.adapters.states.unlock(lease)
    workspace.close()
    assert at.run(*APPLY, *BACKEND).code == 0
    assert list(at.slices) == [name]


def test_a_state_that_cannot_be_uploaded_stops_the_run_and_is_kept_here(cli: Open) -> None:
    at = cli(trouble=[{"fault": "unavailable", "method": INSERT, "name": "gemma.json", "call": "4-"}])
    at.write()
    result = at.run(*APPLY, *BACKEND)
    assert result.code == 1
    errored = at.folder / ".tpudeploy" / "errored" / "gemma.json"
    assert f"tpudeploy state push {errored}" in result.err.replace("\n", " ")
    assert json.loads(errored.read_text(encoding="utf-8"))["deployment"] == "gemma"
    assert not at.requested_zones()
    at.emulator._cloud.troubles.clear()
    assert at.run(*APPLY, *BACKEND).code == 0
    assert len(at.slices) == 1


def test_what_was_kept_here_is_pushed_with_the_words_that_were_said_and_a_later_state_stays(cli: Open) -> None:
    """The upload fails after the slice was asked for: only this machine knows that it was seen."""
    at = cli(trouble=[{"fault": "unavailable", "method": INSERT, "name": "gemma.json", "call": "7-"}])
    at.write()
    result = at.run(*APPLY, *BACKEND)
    assert result.code == 1
    errored = json.loads((at.folder / ".tpudeploy/errored/gemma.json").read_text(encoding="utf-8"))
    there = json.loads(objects(at)["team/state/gemma.json"])
    assert errored["serial"] == there["serial"] + 1
    command = result.words.partition("To write it to the backend, run: tpudeploy ")[2].split()[:5]
    assert command[:2] == ["state", "push"]
    assert command[3:] == list(BACKEND)
    still = at.run(*command)
    assert (still.code, "state push" in still.err) == (1, True)
    at.emulator._cloud.troubles.clear()
    assert at.run(*command).code == 0
    assert json.loads(objects(at)["team/state/gemma.json"]) == errored
    assert at.run(*APPLY, *BACKEND).code == 0
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml", *BACKEND).code == 0
    assert len(at.slices) == 1
    late = at.run(*command)
    assert (late.code, "which is older than the one here" in late.words) == (1, True)


def test_a_bucket_in_trouble_is_waited_for_and_the_person_is_told(cli: Open) -> None:
    at = cli(trouble=[{"fault": "unavailable", "method": "storage.objects.get", "call": "10-29"}])
    at.write()
    result = at.run(*APPLY, *BACKEND)
    assert result.code == 0, result.all
    assert "Could not read gs://states/team/state/gemma.json" in result.words
    assert len(at.slices) == 1


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no such bucket": ({"buckets": ["other"]}, "There is no bucket gs://states"),
    "no permission": (
        {"trouble": [{"fault": "iam-denied", "method": "storage.*"}]},
        "roles/storage.objectUser",
    ),
    "out of order": (
        {"trouble": [{"fault": "unavailable", "method": "storage.*"}]},
        "The service is currently unavailable",
    ),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("command", [("plan", "gemma.yaml"), APPLY, ("status",), ("output", "gemma")])
def test_what_keeps_us_from_the_bucket_is_said_before_anything_is_asked(
    cli: Open, name: str, command: tuple[str, ...]
) -> None:
    scenario, words = BAD[name]
    at = cli(**scenario)
    at.write()
    result = at.run(*command, *BACKEND)
    assert result.code == 1
    assert words in result.words
    assert "Traceback" not in result.all
    assert not at.requested_zones()


def test_a_backend_that_cannot_be_is_a_plain_error(cli: Open) -> None:
    at = cli()
    at.write()
    result = at.run("plan", "gemma.yaml", "--backend", "s3://states")
    assert result.code == 1
    assert "The backend `s3://states` is not supported" in result.words
    assert "gs://BUCKET/PREFIX" in result.words


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"format": "tpudeploy.state/2"}', b"\xff"],
    ids=["empty", "cut off", "too new", "not text"],
)
@pytest.mark.parametrize("command", [("plan", "gemma.yaml"), APPLY, ("destroy", "-auto-approve", "gemma.yaml")])
def test_a_state_that_cannot_be_read_is_left_as_it_is(cli: Open, content: bytes, command: tuple[str, ...]) -> None:
    at = cli()
    at.write()
    insert = at.emulator._cloud.objects.insert
    insert("states", StoredObject(name="team/state/gemma.json", content=content), Conditions())
    result = at.run(*command, *BACKEND)
    assert result.code == 1
    assert "gs://states/team/state/gemma.json" in result.words
    assert objects(at) == {"team/state/gemma.json": content}


def test_the_zone_log_and_the_lock_are_read_from_the_bucket(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = cli()
    at.write()
    monkeypatch.setenv("USER", "ada")
    workspace, lease = take_lease(at)
    workspace.adapters.states.record(
        HistoryEntry(
            at=at.clock.now() - 60,
            zone=Zone("us-east5-b"),
            provisioning=Provisioning.SPOT,
            type="v6e-1",
            chips=1,
            outcome=Ending.REFUSED,
            waited=0.0,
            kind="stockout",
        )
    )
    zones = at.run("zones", "gemma.yaml", "--json", *BACKEND)
    assert zones.code == 0, zones.all
    assert '"stockout"' in zones.out
    assert '"stockout"' not in at.run("zones", "gemma.yaml", "--json").out
    assert "ada@" in at.run("doctor", "gemma.yaml", *BACKEND).words
    workspace.adapters.states.unlock(lease)
    assert "ada@" not in at.run("doctor", "gemma.yaml", *BACKEND).words
    workspace.close()


def test_the_zone_history_is_read_once_a_run_however_many_deployments_it_has(cli: Open) -> None:
    at = cli(boot={"boot_seconds": 60}, creates_per_minute=1000)
    (at.folder / "fleet").mkdir()
    for name in ("one", "two", "three"):
        renewed = PROFILE.replace("[spot]", "[flex-start]\n  max_run_duration: 6h").replace("gemma", name, 1)
        at.write(f"{renewed}lifecycle: {{on_run_end: renew}}\n", f"fleet/{name}.yaml")
    assert at.run("plan", "-out", "plan.json", "fleet", *BACKEND).code == 0
    assert _reads_of_zone_history(at) == 1
    applied = at.run("apply", "plan.json", *BACKEND)
    assert applied.code == 0, applied.all
    assert _reads_of_zone_history(at) == 2
    assert at.run("status", "fleet", *BACKEND).code == 0
    assert at.run("destroy", "-auto-approve", "fleet", *BACKEND).code == 0
    assert _reads_of_zone_history(at) == 2


def _reads_of_zone_history(at: CommandLine) -> int:
    return sum(r.method == "GET" and "zones%2F" in r.path for r in at.emulator.requests)


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("command", ["zones", "doctor"])
def test_a_bucket_that_cannot_be_read_keeps_nobody_from_the_gates(cli: Open, name: str, command: str) -> None:
    scenario, _ = BAD[name]
    at = cli(**scenario)
    at.write()
    result = at.run(command, "gemma.yaml", *BACKEND)
    assert result.code in {0, 13}, result.all
    assert "gs://states" in result.words
    assert "Traceback" not in result.all


def test_the_first_state_of_a_run_that_was_thought_dead_is_no_riddle_and_the_next_run_continues(
    cli: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was written when its lock had been taken over: there was no earlier version that could have ended it."""
    at = cli()
    at.write()
    late, _ = take_lease(at)
    at.clock.sleep(LEASE_SECONDS + 1)
    answer, is_written = at.emulator._server.answer, False

    def answer_after_the_late_write(request: HttpRequest) -> Reply:
        nonlocal is_written
        if request.method == "POST" and b"tpudeploy.state/2" in request.body and not is_written:
            is_written = True
            with Workspace.open(at.folder, backend=PLACE, clock=at.clock) as workspace:
                workspace.adapters.states.write("gemma", State(deployment="gemma", lineage="0" * 32, serial=1), over="")
        return answer(request)

    monkeypatch.setattr(at.emulator._server, "answer", answer_after_the_late_write)
    result = at.run(*APPLY, *BACKEND)
    assert result.code == 1, result.all
    assert "Took over the lock of gemma" in result.err
    assert "the first state that the other run wrote arrived after that. This run requested nothing." in result.err
    assert "Run the command again: it continues from that state." in result.err
    assert not at.slices
    assert at.run(*APPLY, *BACKEND).code == 0
    assert list(at.slices.values()) == ["ACTIVE"]
    assert json.loads(objects(at)["team/state/gemma.json"])["lineage"] == "0" * 32
    late.adapters.states.close()


def test_a_boot_that_a_colleague_verified_tells_how_far_off_size_is(cli: Open, tmp_path: Path) -> None:
    at = cli()
    at.write()
    assert at.run(*APPLY, *BACKEND).code == 0
    (line,) = [content for name, content in objects(at).items() if name.startswith("team/boots/")]
    record = json.loads(line)
    assert record["model"] == "google/gemma-4-E2B-it"
    assert "127." not in line.decode(), "no address"
    there = neighbour(at, tmp_path)
    (boot,) = json.loads(there.run("size", "gemma.yaml", "--json", *BACKEND).out)["boots"]
    assert boot == record
    assert json.loads(there.run("size", "gemma.yaml", "--json").out)["boots"] == []


def test_a_bucket_that_takes_no_boot_stops_no_run_and_the_boot_is_kept_here(cli: Open) -> None:
    at = cli(trouble=[{"fault": "iam-denied", "method": "storage.objects.list"}])
    at.write()
    result = at.run("size", "gemma.yaml", "--json", *BACKEND)
    assert json.loads(result.out)["boots"] == []
