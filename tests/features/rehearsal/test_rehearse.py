"""`tpudeploy rehearse`: every unverified fact is looked at, below a ceiling, and nothing is left."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Killed, Open
from googleapiclient.discovery import build

from tpudeploy.domain.errors import StateLocked
from tpudeploy.features.rehearsal.facts import RehearsalStage, facts_of
from tpudeploy.workspace import Workspace

CANARY = "canary-7f3a91c2"


def verdicts(at: CommandLine, out: str = "rehearsal") -> Mapping[str, str]:
    report = json.loads((at.folder / out / "report.json").read_text("utf-8"))
    return {finding["fact"]: finding["verdict"] for finding in report["findings"]}


def exchanges(folder: Path) -> list[Mapping[str, Any]]:
    return [json.loads(path.read_text("utf-8")) for path in sorted((folder / "exchanges").glob("*.json"))]


def test_without_a_ceiling_it_only_reads(cli: Open) -> None:
    at = cli(nodes="simulated")
    result = at.run("rehearse", "-auto-approve")
    assert result.code == 0, result.all
    assert "It costs at most $0.00 at list price." in result.err
    assert "Spent at list price: $0.00." in result.out
    assert verdicts(at) == {fact.id: "as-believed" for fact in facts_of(RehearsalStage.READ)}
    posts = {r.resource.rpartition(":")[2] for r in at.emulator.requests if r.method != "GET"}
    assert posts == {"testIamPermissions"}
    assert len(exchanges(at.folder / "rehearsal")) == len(at.emulator.requests)


def test_nothing_is_read_before_a_yes(cli: Open) -> None:
    at = cli(nodes="simulated")
    result = at.run("rehearse")
    assert result.code == 1
    assert "pass -auto-approve" in result.err
    assert not at.emulator.requests
    assert not (at.folder / "rehearsal").exists()


# What the emulator says instead; the fact that differs, and words of what was seen.
OTHER_TRUTHS: tuple[tuple[Mapping[str, Any], str, str], ...] = (
    (
        {"trouble": [{"fault": "zone-unsupported", "zone": "-", "method": "queuedResources.list"}]},
        "wildcard-queued-resources",
        "is not supported",
    ),
    ({"project": {"quota_metrics": {"preemptible": "x", "on-demand": "y"}}}, "quota-metrics", "No metric of the"),
    ({"project": {"prices": {"us-east5": {"spot": 9.0}}}}, "prices", "spot in us-east5: $9.00, not $1.40"),
    ({"offers": {"us-east5-a": ["v6e-8"]}}, "types", "Not in us-east5-a."),
)


@pytest.mark.parametrize("row", OTHER_TRUTHS, ids=lambda row: row[1])
def test_a_cloud_that_is_different_is_reported_so(cli: Open, row: tuple[Mapping[str, Any], str, str]) -> None:
    scenario, fact, words = row
    at = cli(nodes="simulated", **scenario)
    result = at.run("rehearse", "-auto-approve")
    assert result.code == 13, result.all
    assert verdicts(at)[fact] == "differs"
    report = (at.folder / "rehearsal" / "report.txt").read_text("utf-8")
    assert words in report
    assert "believed: " in report


def test_what_cannot_be_read_is_not_seen_and_hides_nothing_else(cli: Open) -> None:
    at = cli(nodes="simulated", trouble=[{"fault": "iam-denied", "method": "serviceusage.*"}])
    assert at.run("rehearse", "-auto-approve").code == 0
    seen = verdicts(at)
    not_seen = {fact for fact, verdict in seen.items() if verdict == "not-seen"}
    assert not_seen == {"quota-parent", "quota-metrics", "instance-quota-metrics"}
    assert len(seen) == len(facts_of(RehearsalStage.READ))


def test_no_file_has_a_secret_an_address_or_what_belongs_to_others(cli: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = cli(nodes="simulated")
    monkeypatch.setenv("SOME_API_TOKEN", CANARY)
    monkeypatch.setenv("OTHER_API_TOKEN", "v2-alpha-tpuv6e")  # a text that Google repeats, as it may any value
    where = "projects/emulated/locations/us-east5-a"
    node = {
        "acceleratorType": "v6e-1",
        "runtimeVersion": "v2-alpha-tpuv6e",
        "metadata": {"password": "of-another-team"},
        "labels": {"team": CANARY},
        "networkConfig": {"enableExternalIps": True},
    }
    body = {"tpu": {"nodeSpec": [{"parent": where, "nodeId": "theirs", "node": node}]}, "provisioningModel": "SPOT"}
    endpoint = {"api_endpoint": f"http://{at.emulator.host}"}
    with build("tpu", "v2alpha1", client_options=endpoint, static_discovery=True, developerKey="x") as service:
        calls = service.projects().locations().queuedResources()
        calls.create(parent=where, queuedResourceId="theirs", body=body).execute()
    at.clock.sleep(900)
    assert at.run("rehearse", "-auto-approve").code == 0
    files = [path for path in (at.folder / "rehearsal").rglob("*") if path.is_file()]
    text = "\n".join(path.read_text("utf-8") for path in files)
    assert "<another owner's>" in text
    for secret in (CANARY, "v2-alpha-tpuv6e", "of-another-team", "theirs", "127.0.0.1", "emulated"):
        assert secret not in text, secret


WAITS = {"nodes": "simulated", "timings": {"waiting": 36_000.0}}
# Enough for the two requests that wait, and not for a slice besides.
REQUESTS = ("rehearse", "-auto-approve", "-max-cost", "0.7")


def creates(at: CommandLine) -> list[str]:
    """Return what was created, by the path of its collection, repetitions included."""
    paths = ("/queuedResources", "/instances")
    return [
        r.resource.rpartition("/")[2] for r in at.emulator.requests if r.method == "POST" and r.resource.endswith(paths)
    ]


def strike_once_requested(at: CommandLine, error: BaseException) -> None:
    """Raise an error in the command as soon as something is requested."""

    def strike() -> None:
        if at.slices:
            at.clock.on_advance.remove(strike)
            raise error

    at.clock.on_advance.append(strike)


def test_a_request_of_each_api_is_looked_at_while_it_waits_and_deleted(cli: Open) -> None:
    at = cli(**WAITS)
    result = at.run(*REQUESTS)
    assert result.code == 0, result.all
    stages = (RehearsalStage.READ, RehearsalStage.QUEUE, RehearsalStage.INSERT)
    assert verdicts(at) == {fact.id: "as-believed" for stage in stages for fact in facts_of(stage)}
    assert creates(at) == ["queuedResources"] * 2 + ["instances"] * 2  # each is repeated once
    assert not at.slices
    assert "Spent at list price: $0.00." in result.out
    bodies = [json.dumps(e["body"]) for e in exchanges(at.folder / "rehearsal") if e["method"] == "POST" and e["body"]]
    assert any("startup-script" in body for body in bodies)
    assert not any("#!/" in body for body in bodies)  # the script itself is left out


def test_what_the_ceiling_does_not_allow_is_left_out_and_said_before_it_starts(cli: Open) -> None:
    at = cli(**WAITS)
    result = at.run("rehearse", "-auto-approve", "-max-cost", "0.40")
    assert result.code == 0, result.all
    where = "flex-start in europe-west4-a"
    said = f"a queued resource, deleted before it is granted (5 facts), {where}, at most 10 minutes: at most $0.30"
    assert said in result.err
    left_out = f"an instance of Compute Engine, deleted before it is granted (5 facts), {where}: left out"
    assert left_out in result.err
    assert "It costs at most $0.30 at list price." in result.err
    assert "An hour of the disk and of the external address of each machine is included." in result.err
    assert set(creates(at)) == {"queuedResources"}


@pytest.mark.parametrize(
    ("scenario", "fact"),
    [
        ({"compute_engine": {"shows_pending": False}}, "insert-listed"),
        ({"trouble": [{"fault": "unlisted", "seconds": 600.0}]}, "queue-listed"),
    ],
)
def test_an_api_that_is_different_about_waiting_requests_is_reported_so(
    cli: Open, scenario: Mapping[str, Any], fact: str
) -> None:
    at = cli(**WAITS, **scenario)
    result = at.run(*REQUESTS)
    assert result.code == 13, result.all
    assert verdicts(at)[fact] == "differs"
    assert not at.slices


def test_a_request_that_is_granted_at_once_is_given_back_below_the_ceiling(cli: Open) -> None:
    at = cli(nodes="simulated", timings={"queued": 0.0, "waiting": 0.0, "provisioning": 0.0, "deleting": 600.0})
    result = at.run(*REQUESTS)
    assert result.code == 0, result.all
    assert verdicts(at)["queue-listed"] == "not-seen"
    assert not at.slices
    report = json.loads((at.folder / "rehearsal" / "report.json").read_text("utf-8"))
    assert 0.2 < report["usd"] <= 0.60


def test_a_request_that_is_refused_is_said_and_hides_nothing_else(cli: Open) -> None:
    at = cli(**WAITS, trouble=[{"fault": "quota-zero", "method": "queuedResources.create"}])
    result = at.run(*REQUESTS)
    assert result.code == 0, result.all
    seen = verdicts(at)
    assert {seen[fact.id] for fact in facts_of(RehearsalStage.QUEUE)} == {"not-seen"}
    assert {seen[fact.id] for fact in facts_of(RehearsalStage.INSERT)} == {"as-believed"}


@pytest.mark.parametrize("after", [1.0, 3.0, 30.0, 150.0, 170.0])
def test_killed_anywhere_the_next_rehearsal_deletes_what_was_left_and_continues(cli: Open, after: float) -> None:
    at = cli(**WAITS)
    at.left_or_killed(after, *REQUESTS)
    result = at.run(*REQUESTS)
    assert result.code == 0, result.all
    assert not at.slices
    assert len(verdicts(at)) == sum(
        len(facts_of(stage)) for stage in (RehearsalStage.READ, RehearsalStage.QUEUE, RehearsalStage.INSERT)
    )


def test_killed_while_a_request_waits_the_next_one_begins_by_deleting_it(cli: Open) -> None:
    at = cli(**WAITS)
    strike_once_requested(at, Killed())
    with pytest.raises(Killed):
        at.run(*REQUESTS)
    (name,) = at.slices
    result = at.run("rehearse", "-auto-approve")  # even one that may cost nothing
    assert result.code == 0, result.all
    assert f"Deleting {name}" in result.err
    assert not at.slices


def test_killed_for_good_gc_finds_what_was_left(cli: Open) -> None:
    at = cli(**WAITS)
    strike_once_requested(at, Killed())
    with pytest.raises(Killed):
        at.run(*REQUESTS)
    (name,) = at.slices
    result = at.run("gc")
    assert name in result.out
    assert at.run("gc", "-foreign", "-auto-approve").code == 0
    assert not at.slices


def test_interrupted_it_deletes_what_it_requested(cli: Open) -> None:
    at = cli(**WAITS)
    strike_once_requested(at, KeyboardInterrupt())
    result = at.run(*REQUESTS)
    assert result.code == 130
    assert "The rehearsal has deleted what it requested." in result.err
    assert not at.slices
    assert at.run(*REQUESTS).code == 0
    assert not at.slices


# Boots and deletions take minutes; what is asked for is granted within two.
WHOLE: Mapping[str, Any] = {"nodes": "simulated", "timings": {"boot": 240.0, "deleting": 120.0, "reset": 120.0}}
EVERYTHING = ("rehearse", "-auto-approve", "-max-cost", "2")
# As if the stages before had been seen: a ceiling that allows one slice alone.
SPENT_BEFORE = 0.30 + 0.30


def stage_verdicts(at: CommandLine, *stages: RehearsalStage) -> Mapping[str, str]:
    ids = {fact.id for stage in stages for fact in facts_of(stage)}
    return {fact: verdict for fact, verdict in verdicts(at).items() if fact in ids}


def spent(at: CommandLine) -> float:
    report = json.loads((at.folder / "rehearsal" / "report.json").read_text("utf-8"))
    return float(report["usd"])


def ended_runs(at: CommandLine) -> list[str]:
    """Return what the requests say about their end, as Google got it."""
    ends: list[str] = []
    for exchange in exchanges(at.folder / "rehearsal"):
        body = exchange["body"] or {}
        if "tpu" in body:
            ends.append(body["runDuration"]["maxRunDuration"])
        elif "scheduling" in body:
            scheduling = body["scheduling"]
            ends.append(f"{scheduling['maxRunDuration']['seconds']}s, {scheduling['instanceTerminationAction']}")
    return ends


def test_a_slice_of_each_api_is_used_for_one_run_and_nothing_is_left_below_the_ceiling(cli: Open) -> None:
    at = cli(**WHOLE)
    result = at.run(*EVERYTHING)
    assert result.code == 0, result.all
    stages = (RehearsalStage.INSTANCE, RehearsalStage.SLICE)
    as_believed = {fact.id: "as-believed" for stage in stages for fact in facts_of(stage)}
    # Nothing preempts a slice here.
    expected = {**as_believed, "preemption": "not-seen", "instance-preemption": "not-seen"}
    assert stage_verdicts(at, *stages) == expected, result.out
    words = "one instance of Compute Engine, until the end of its run (13 facts), spot in asia-southeast1-b, "
    assert f"{words}at most 30 minutes: at most $0.23" in result.err
    assert "flex-start in europe-west4-a, at most 30 minutes: at most $0.75" in result.err
    assert not at.slices
    assert 0.3 < spent(at) <= 0.23 + 0.75 + SPENT_BEFORE
    assert set(ended_runs(at)) == {"600s", "600s, DELETE", "1800s, DELETE", "1800s"}
    text = "\n".join(path.read_text("utf-8") for path in (at.folder / "rehearsal" / "exchanges").iterdir())
    assert not re.search(r"\b(?:\d{1,3}\.){3}\d{1,3}\b", text)  # nor the address of the machine
    assert "emulated" not in text


@pytest.mark.parametrize(
    ("behaviour", "fact"),
    [({"guest_attributes": False}, "guest-attributes"), ({"hears_changes": False}, "change-in-place")],
)
def test_machines_that_are_different_are_reported_so(cli: Open, behaviour: Mapping[str, Any], fact: str) -> None:
    at = cli(**WHOLE, trouble=[{"fault": "boot", **behaviour}])
    result = at.run(*EVERYTHING)
    assert result.code == 13, result.all
    seen = verdicts(at)
    assert (seen[fact], seen[f"instance-{fact}"]) == ("differs", "differs"), result.out
    assert not at.slices


@pytest.mark.parametrize("after", [100.0, 400.0])  # while its server starts, and once it serves
def test_a_preemption_that_happens_is_looked_at_and_nothing_else_is_requested(cli: Open, after: float) -> None:
    at = cli(**WHOLE, trouble=[{"fault": "preempt", "after": after, "times": 9}])
    result = at.run(*EVERYTHING)
    assert result.code == 0, result.all
    seen = verdicts(at)
    assert (seen["preemption"], seen["instance-preemption"]) == ("as-believed", "as-believed"), result.out
    # Four stages with one request each. The two that wait are repeated once, under the same name.
    assert sorted(creates(at)) == ["instances"] * 3 + ["queuedResources"] * 3
    assert not at.slices


def test_deletions_that_google_ignores_cost_no_more_than_was_said(cli: Open) -> None:
    at = cli(**WHOLE, trouble=[{"fault": "delete-refused", "until": 5 * 3600.0}])
    result = at.run("rehearse", "-auto-approve", "-max-cost", "0.35")
    assert result.code == 1
    assert "Run `tpudeploy rehearse` again" in result.err
    assert set(at.slices.values()) == {"SUSPENDED"}  # Google ended what it had granted meanwhile
    at.clock.sleep(4 * 3600.0)
    result = at.run("rehearse", "-auto-approve", "-max-cost", "0.35")
    assert result.code in {0, 13}, result.all
    assert not at.slices
    assert 0.0 < spent(at) <= 0.30


def test_an_instance_whose_run_google_does_not_end_is_deleted_and_nothing_further_is_rented(cli: Open) -> None:
    at = cli(**WHOLE, compute_engine={"ends_runs": False})
    result = at.run(*EVERYTHING)
    assert result.code == 13, result.all
    seen = verdicts(at)
    assert (seen["instance-run-end"], seen["slice-run"]) == ("differs", "not-seen")
    assert "Google did not end a run, so that the cost of another one is not bounded." in result.out
    assert not at.slices


def test_an_instance_that_shows_no_end_is_deleted_at_once(cli: Open) -> None:
    at = cli(**WHOLE, compute_engine={"shows_run_end": False})
    began = at.clock.now()
    result = at.run("rehearse", "-auto-approve", "-max-cost", "0.85")
    assert result.code == 13, result.all
    assert verdicts(at)["instance-run"] == "differs"
    assert at.clock.now() - began < 1800.0
    assert not at.slices


@pytest.mark.parametrize("state", ["ACTIVE", "RUNNING"])
def test_killed_with_a_slice_google_ends_it_and_its_whole_run_counts(cli: Open, state: str) -> None:
    at = cli(**WHOLE)

    def strike() -> None:
        if state in at.slices.values():
            at.clock.on_advance.remove(strike)
            raise Killed

    at.clock.on_advance.append(strike)
    with pytest.raises(Killed):
        at.run(*EVERYTHING)
    at.clock.sleep(3600.0)
    assert state not in at.slices.values()  # nobody deleted it
    result = at.run(*EVERYTHING)
    assert result.code == 0, result.all
    assert not at.slices
    assert spent(at) <= 2.0
    assert "above the ceiling" not in result.out


def test_a_clock_that_is_set_back_books_the_whole_run_and_no_negative_money(cli: Open) -> None:
    at = cli(**WHOLE)

    def strike() -> None:
        if "ACTIVE" in at.slices.values():
            at.clock.on_advance.remove(strike)
            raise Killed

    at.clock.on_advance.append(strike)
    with pytest.raises(Killed):
        at.run(*EVERYTHING)
    folder = at.folder / ".tpudeploy" / "rehearsal"
    for path in folder.rglob("*.json"):
        # The same as a clock that is a day behind what the killed run wrote.
        text = path.read_text(encoding="utf-8")
        times = re.compile(r'("(?:granted_at|requested_at|asked_at|provisioning_at)": )(\d+\.\d+)')
        path.write_text(times.sub(lambda m: f"{m[1]}{float(m[2]) + 86_400}", text), encoding="utf-8")
    before = json.loads((folder / "journal.json").read_text(encoding="utf-8"))["usd"]
    at.run(*EVERYTHING)
    assert not at.slices
    assert spent(at) > before
    assert spent(at) <= 2.0


def test_a_second_rehearsal_in_the_same_folder_is_refused(cli: Open) -> None:
    at = cli(nodes="simulated", timings={"waiting": 36_000.0})
    refusals: list[str] = []

    def rehearse_beside() -> None:
        if at.slices:
            at.clock.on_advance.remove(rehearse_beside)
            with pytest.raises(StateLocked) as refusal:
                Workspace(at.folder, clock=at.clock).rehearse()
            refusals.append(refusal.value.message)

    at.clock.on_advance.append(rehearse_beside)
    assert at.run(*REQUESTS).code == 0
    assert refusals
    assert refusals[0].startswith("Another rehearsal runs in this folder: ")
    assert at.run("rehearse", "-auto-approve").code == 0  # the lock is free again
