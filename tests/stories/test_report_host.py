"""report-host: a machine whose chips fail is reported to Google with a person's yes, and its place is left alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Open

from tpudeploy import Workspace

A, B = "us-east5-a", "us-east5-b"
WORDS = "TPU initialization failed: GRPC_ERROR error message: START_SESSION failed"
BAD_CHIP = {"fault": "boot", "crash": WORDS, "call": 1}
BOTH = pytest.mark.parametrize("text", [PROFILE, INSTANCE], ids=["queued-resource", "gce-instance"])


def with_bad_chip(cli: Open, text: str, *trouble: dict[str, Any], **scenario: Any) -> CommandLine:
    """Return a deployment whose first machine cannot use its chips."""
    at = cli(trouble=[BAD_CHIP, *trouble], **scenario)
    stopped = at.run("apply", "-auto-approve", at.write(text))
    assert stopped.code == 1, stopped.all
    assert at.requested_zones() == [A]
    return at


def reports(at: CommandLine) -> list[str]:
    return [r.verdict for r in at.emulator.requests if r.resource.endswith("/reportHostAsFaulty")]


def test_google_is_told_of_a_bad_chip_and_the_next_apply_asks_another_zone(cli: Open) -> None:
    at = with_bad_chip(cli, INSTANCE)
    explained = at.run("logs", "gemma.yaml", "-explain")
    assert "tpudeploy report-host" in explained.words, explained.all
    unapproved = at.run("report-host", "gemma[0]")
    assert unapproved.code == 1
    assert WORDS in unapproved.out
    assert "Google is told that its host has a fault (chip-error)" in unapproved.out
    assert "us-east5-a, spot, gce-instance is not asked again for 2h" in unapproved.out
    assert "pass -auto-approve" in unapproved.err
    assert reports(at) == []
    reported = at.run("report-host", "gemma[0]", "-auto-approve")
    assert reported.code == 0, reported.all
    assert "Reported the host of" in reported.out
    assert f"Failed landing in {A}, spot, gce-instance (host-fault); next attempt there in 2h" in reported.err
    again = at.run("report-host", "gemma[0]", "-auto-approve")
    assert again.code == 0, again.all  # a repeated report is the same one: neither Google nor the place hears it twice
    assert [row["times"] for row in at.state()["records"][0]["refusals"]] == [1]
    at.clock.sleep(900)
    applied = at.run("apply", "-auto-approve", "gemma.yaml")
    assert applied.code == 0, applied.all
    assert at.requested_zones() == [A, B]
    assert list(at.slices.values()) == ["RUNNING"]


@pytest.mark.parametrize(
    ("text", "scenario", "words"),
    [
        (PROFILE, {}, ""),
        (INSTANCE, {"compute_engine": {"takes_host_reports": False}}, "The machine type does not support"),
    ],
    ids=["queued-resource", "gce-instance that Google does not take reports of"],
)
def test_a_slice_that_cannot_be_reported_is_deleted_and_its_place_is_left_alone(
    cli: Open, text: str, scenario: dict[str, Any], words: str
) -> None:
    at = with_bad_chip(cli, text, **scenario)
    (name,) = at.slices
    reported = at.run("report-host", "gemma", "-auto-approve")
    assert reported.code == 0, reported.all
    assert words in reported.out
    assert f"Deleted {name}. `tpudeploy apply` requests another slice." in reported.out
    assert f"Deleting {name} in {A} (its host is faulty)" in reported.err
    applied = at.run("apply", "-auto-approve", "gemma.yaml")
    assert applied.code == 0, applied.all
    assert at.requested_zones() == [A, B]
    assert name not in at.slices
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    assert not at.slices


@BOTH
def test_a_machine_without_a_fault_in_its_log_is_reported_only_in_a_persons_words(cli: Open, text: str) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write(text)).code == 0
    unknown = at.run("report-host", "gemma[0]", "-auto-approve")
    assert unknown.code == 1
    assert "names no fault of the machine" in unknown.err
    assert at.run("report-host", "gemma[1]", "-dry-run").code == 1
    arguments = ("-behavior", "silent-data-corruption", "-description", "Sums differ from run to run.")
    preview = at.run("report-host", "gemma[0]", *arguments, "-dry-run", "--json")
    assert preview.code == 0, preview.all
    document = json.loads(preview.out)
    assert (document["behavior"], document["is_accepted"], document["is_deleted"]) == (arguments[1], False, False)
    assert document["description"] == arguments[3]
    assert (
        document
        == Workspace.open(at.folder, clock=at.clock)
        .report_host("gemma[0]", behavior=arguments[1], description=arguments[3], dry_run=True)
        .to_dict()
    )
    assert len(at.slices) == 1
    assert reports(at) == []


def test_who_may_not_report_a_host_keeps_the_slice(cli: Open) -> None:
    denied = {"fault": "iam-denied", "method": "compute.instances.reportHostAsFaulty", "times": 1}
    at = with_bad_chip(cli, INSTANCE, denied)
    stopped = at.run("report-host", "gemma[0]", "-auto-approve")
    assert stopped.code == 1
    assert "roles/compute.instanceAdmin.v1" in stopped.err
    assert list(at.slices.values()) == ["RUNNING"]
    assert at.run("report-host", "gemma[0]", "-auto-approve").code == 0
    assert [verdict.split()[0] for verdict in reports(at)] == ["403", "200"]
