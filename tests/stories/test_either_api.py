"""Slices from either API: `placement.backend: auto`, and the way from one API to the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Open

AUTO = INSTANCE.replace("gce-instance", "auto").replace("max_parallel_requests: 1", "max_parallel_requests: 2")
BY_API = {"queued-resource": "queuedResources.create", "gce-instance": "compute.instances.insert"}
STATES = {"queued-resource": "ACTIVE", "gce-instance": "RUNNING"}
OTHER = {"queued-resource": "gce-instance", "gce-instance": "queued-resource"}


def applied(at: CommandLine, text: str) -> str:
    profile = at.write(text)
    result = at.run("apply", "-auto-approve", profile)
    assert result.code == 0, result.all
    return profile


def apis_asked(at: CommandLine) -> set[str]:
    """Return the APIs that slices were requested from."""
    posts = [r.resource for r in at.emulator.requests if r.method == "POST"]
    names = {"queuedResources": "queued-resource", "instances": "gce-instance"}
    return {names[last] for path in posts if (last := path.rpartition("/")[2]) in names}


def history(at: CommandLine) -> Path:
    return at.folder / ".tpudeploy" / "zones-emulated.jsonl"


def current_slice(at: CommandLine) -> str:
    """Return the name of the slice that clients are sent to."""
    return str(at.state()["published"])


@pytest.mark.parametrize("fault", ["stockout", "quota-zero", "iam-denied"])
@pytest.mark.parametrize("api", BY_API)
def test_what_one_api_refuses_the_other_grants(cli: Open, api: str, fault: str) -> None:
    at = cli(trouble=[{"fault": fault, "method": BY_API[OTHER[api]]}])
    profile = applied(at, AUTO)
    assert apis_asked(at) == set(BY_API)
    assert list(at.slices.values()) == [STATES[api]]
    assert at.run("plan", profile, "-detailed-exitcode").code == 0
    destroyed = at.run("destroy", "-auto-approve", profile)
    assert destroyed.code == 0, destroyed.all
    assert not at.slices


def test_of_two_grants_one_is_kept_and_the_other_is_gone(cli: Open) -> None:
    at = cli()
    profile = applied(at, AUTO)
    assert apis_asked(at) == set(BY_API)
    (slice_,) = at.slices
    assert current_slice(at) == slice_
    assert len(at.state()["records"][0]["attempts"]) == 1
    drift = at.run("drift", profile)
    assert drift.code == 0, drift.all


def test_where_both_apis_refuse_what_only_a_person_can_lift_the_run_ends_with_both_texts(cli: Open) -> None:
    at = cli(trouble=[{"fault": "iam-denied"}])
    result = at.run("apply", "-auto-approve", at.write(AUTO))
    assert result.code != 0
    assert "tpudeploy explain" in result.all
    assert apis_asked(at) == set(BY_API)
    assert not at.slices


def test_every_view_names_the_api(cli: Open) -> None:
    at = cli(trouble=[{"fault": "stockout", "method": "queuedResources.create"}])
    profile = at.write(AUTO)
    planned = at.run("plan", profile)
    assert "requested from queued-resource and gce-instance: spot in us-east5-a, us-east5-b" in planned.words
    assert "up to 2 slices may be billed at once" in planned.words
    result = at.run("apply", "-auto-approve", profile)
    assert "Requesting v6e-1 in us-east5-a, spot [" in result.words, result.all
    assert "Requesting v6e-1 in us-east5-b, spot, gce-instance [" in result.words
    assert "(v6e-1, us-east5-b, spot, gce-instance)" in at.run("status", profile).words
    zones = at.run("zones", profile).words
    assert "us-east5-b spot gce-instance" in zones, zones
    assert "us-east5-b spot queued-resource" in zones
    assert "12 of 12" not in zones
    doctor = at.run("doctor", profile)
    assert "6 of 6 pairs can be requested" in doctor.words, doctor.all
    rows = [json.loads(line) for line in history(at).read_text("utf-8").splitlines()]
    assert {(row["outcome"], row["backend"]) for row in rows} >= {
        ("refused", "queued-resource"),
        ("granted", "gce-instance"),
    }


def test_exports_name_the_request_of_the_first_place_and_terraform_that_of_an_instance(cli: Open) -> None:
    at = cli()
    profile = at.write(AUTO)
    script = at.run("render", profile, "gcloud")
    assert "gcloud alpha compute tpus queued-resources create" in script.out, script.all
    assert "The 5 other zones, provisioning models and APIs" in script.words.replace("# ", ""), script.out
    assert '"google_compute_instance"' in at.run("render", profile, "terraform").out
    assert json.loads(at.run("render", profile, "request").out)["tpu"]


def test_a_generation_of_one_api_is_never_asked_of_the_other(cli: Open) -> None:
    at = cli()
    v5e = AUTO.replace("v6e-1", "v5litepod-4").replace("us-east5-a, us-east5-b, europe-west4-a", "us-central1-a")
    validated = at.run("validate", at.write(v5e))
    assert validated.code == 0, validated.all
    at.run("apply", "-auto-approve", "gemma.yaml", "-timeout", "10m")
    assert apis_asked(at) == {"queued-resource"}


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (
            AUTO.replace("type: v6e-1", "type: v6e-1\n  runtime_version: v2-alpha-tpuv6e"),
            "TPU1303",
            "is the runtime of one API, and auto requests from queued-resource and gce-instance",
        ),
        (AUTO + "  max_run_duration: 20s\n", "TPU1327", "at least 30s, or backend: queued-resource"),
    ],
)
def test_what_fits_one_api_alone_is_an_error(cli: Open, text: str, code: str, words: str) -> None:
    at = cli()
    result = at.run("validate", at.write(text))
    assert result.code == 1
    assert code in result.all
    assert words in result.words, result.all


def test_an_api_that_does_not_answer_hides_nothing_at_the_other(cli: Open) -> None:
    """The request at Compute Engine is the earlier one, in the same zone, and its API is silent from then on."""
    at = cli(
        trouble=[
            {"fault": "stockout", "method": "queuedResources.create", "attempt": 1},
            {"fault": "wait-for-ever", "method": "compute.instances.insert"},
            {"fault": "unavailable", "method": "compute.instances.get", "call": "22-"},
        ]
    )
    flex = AUTO.replace("us-east5-a, us-east5-b, europe-west4-a", "us-east5-a").replace("[spot]", "[flex-start]")
    profile = at.write(f"{flex}  max_run_duration: 4h\n")
    at.left_or_killed(2400.0, "apply", "-auto-approve", profile)
    assert apis_asked(at) == set(BY_API)
    assert at.slices.get(current_slice(at)) == "ACTIVE", at.state()


@pytest.mark.polls_every_second("a wait of two minutes is told")
def test_a_lone_request_at_a_silent_api_does_not_end_the_search_at_the_other(cli: Open) -> None:
    """The TPU API answers nothing after the first request, and Compute Engine has no capacity for half an hour."""
    at = cli(
        nodes="simulated",
        trouble=[
            {"fault": "wait-for-ever", "method": "queuedResources.create"},
            {"fault": "unavailable", "method": "queuedResources.get|queuedResources.delete", "until": 9000},
            {"fault": "stockout", "method": "compute.instances.insert", "until": 1800},
        ],
    )
    profile = at.write(AUTO.replace("us-east5-a, us-east5-b, europe-west4-a", "us-east5-a"))
    result = at.run("apply", "-auto-approve", profile, "-timeout", "2h")
    assert at.slices.get(current_slice(at)) == "RUNNING", result.all
    assert result.all.count("us-east5-a does not answer at the TPU API: ") == 1
    assert "Still waiting: us-east5-a does not answer; refused in 1 place (stockout)" in result.words
    assert "No answer, retrying" not in result.all
    # The request at the silent API is named at the end, and deleted by a run that finds the API answering.
    assert len(at.state()["records"][0]["attempts"]) == 2
    assert "the slices that it replaced are not deleted yet" in result.err, result.err
    at.clock.sleep(9000)
    again = at.run("apply", "-auto-approve", profile)
    assert again.code == 0, again.all
    assert list(at.slices.values()) == ["RUNNING"]


def test_an_outage_of_both_apis_is_no_reason_for_more_requests(cli: Open) -> None:
    at = cli(nodes="simulated", trouble=[{"fault": "unavailable", "method": "*.get"}])
    result = at.run("apply", "-auto-approve", at.write(AUTO), "-timeout", "2h")
    assert result.code == 1, result.all
    assert "No answer, retrying" in result.all
    # What may still be granted is named, with what to do.
    assert "Still outstanding: gemma-" in result.words
    assert "Run `tpudeploy apply` again to continue from here, or `tpudeploy destroy` to delete them." in result.words
    posts = [r for r in at.emulator.requests if r.method == "POST"]
    assert len(posts) == 2


def test_orphans_at_either_api_are_found_and_removed(cli: Open) -> None:
    at = cli()
    for text in (PROFILE, INSTANCE):
        applied(at, text)
        (at.folder / ".tpudeploy" / "state" / "gemma.json").unlink()
    assert sorted(at.slices.values()) == ["ACTIVE", "RUNNING"]
    removed = at.run("gc", "-foreign", "-auto-approve", at.write(AUTO))
    assert removed.code == 0, removed.all
    assert not at.slices


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (PROFILE, INSTANCE, '"queued-resource" -> "gce-instance"'),
        (INSTANCE, PROFILE, '"gce-instance" -> "queued-resource"'),
        (AUTO, INSTANCE, '"queued-resource" -> "gce-instance"'),
    ],
    ids=["to Compute Engine", "to the TPU API", "from either to Compute Engine"],
)
@pytest.mark.parametrize("replace", ["create-before-destroy", "destroy-before-create"])
def test_a_deployment_moves_to_the_other_api_as_a_replacement(
    cli: Open, before: str, after: str, change: str, replace: str
) -> None:
    at = cli(trouble=[{"fault": "wait-for-ever", "method": "compute.instances.insert"}] if before is AUTO else [])
    applied(at, before)
    (first,) = at.slices
    at.emulator._cloud.troubles.clear()
    profile = at.write(f"{after}lifecycle: {{replace: {replace}}}\n")
    planned = at.run("plan", profile)
    assert f"placement.backend = {change} # forces replacement" in planned.words, planned.all
    assert "1 to add, 0 to change, 1 to destroy" in planned.words
    result = at.run("apply", "-auto-approve", profile)
    assert result.code == 0, result.all
    (second,) = at.slices
    assert current_slice(at) == second != first
    assert "No changes" in at.run("plan", profile).out


def test_a_slice_that_the_profile_still_allows_stays_where_it_is(cli: Open) -> None:
    at = cli()
    for text in (PROFILE, AUTO, PROFILE):
        applied(at, text)
        assert "No changes" in at.run("plan", at.write(text)).out
    assert len(at.requested_zones()) == 1


def test_a_history_without_an_api_is_that_of_queued_resources(cli: Open) -> None:
    at = cli()
    profile = applied(at, PROFILE)
    rows = [json.loads(line) for line in history(at).read_text("utf-8").splitlines()]
    texts = [json.dumps({key: value for key, value in row.items() if key != "backend"}) for row in rows]
    history(at).write_text("".join(f"{text}\n" for text in texts), "utf-8")
    zones = at.run("zones", profile, "--json")
    (table,) = json.loads(zones.out)["tables"]
    counts = {pair["zone"]: pair["luck"]["counts"] for pair in table["pairs"]}
    assert counts["us-east5-a"] == {"granted": 1}, zones.all
