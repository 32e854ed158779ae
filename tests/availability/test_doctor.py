"""`tpudeploy doctor`: every precondition, one line each, with what to do; and nothing is created by looking."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from availability.test_zones import no_credentials
from command_line import PROFILE, CommandLine, Open, Result
from goldens import assert_golden
from other_process import holding
from pseudo_terminal import person

VLLM = "vllm@emulated.iam.gserviceaccount.com"
KEYED = PROFILE.replace("  HF_TOKEN: hf-token\n", "  HF_TOKEN: hf-token\n  VLLM_API_KEY: vllm-key\n")
READY = KEYED + f"  service_account: {VLLM}\n  network: {{tags: [vllm]}}\n"
PRIVATE = KEYED + "  network: {external_ip: false}\n"
GROUP = KEYED.replace("type: v6e-1", "type: v5p-16").replace("placement:\n", "placement:\n  backend: gce-instance\n")
RULE = {
    "name": "allow-vllm",
    "allowed": [{"IPProtocol": "tcp", "ports": ["8000-8001"]}],
    "sourceRanges": ["203.0.113.7/32"],
    "targetTags": ["vllm"],
}
OPEN = {"firewalls": [RULE]}
ALL = {"allowed": [{"IPProtocol": "tcp", "ports": ["0-65535"]}]}
GRADES = ("ok", "warn", "fail", "unknown")


def findings(result: Result) -> dict[str, tuple[str, str]]:
    """Grade and text by check, hints included; of several lines of one check the worst."""
    findings_by_check: dict[str, tuple[str, str]] = {}
    check = ""
    for line in result.out.splitlines():
        words = line.split(None, 2)
        if line.startswith("  ") and not line.startswith("   ") and words and words[0] in GRADES:
            grade, check, text = words
            if check not in findings_by_check or findings_by_check[check][0] == "ok":
                findings_by_check[check] = (grade, text)
        elif line.startswith("   ") and check:
            findings_by_check[check] = (findings_by_check[check][0], f"{findings_by_check[check][1]} {line.strip()}")
    return findings_by_check


def examined(at: CommandLine, profile: str = READY) -> tuple[Result, dict[str, tuple[str, str]]]:
    result = at.run("doctor", at.write(profile))
    assert "Traceback" not in result.all
    return result, findings(result)


def test_the_screen_reads_well(cli: Open) -> None:
    project = {
        "apis_off": ["cloudbilling.googleapis.com"],
        "denied_permissions": ["tpu.nodes.create"],
        "secret_readers": [],
        "networks": {"default": {"us-east5": {}}},
        "images": [],
    }
    at = cli(project=project, quota=[{"class": "preemptible", "region": "*", "limit": 0}])
    profile = at.write(READY)
    result = at.run("doctor", profile)
    assert result.code == 13
    assert_golden(
        "screens/doctor", f"$ tpudeploy doctor {profile}\n{result.out}[exit {result.code}]\n", folder=at.folder
    )


def test_where_everything_is_there_nothing_stands_in_the_way(cli: Open) -> None:
    at = cli(project=OPEN)
    result, findings_by_check = examined(at)
    assert result.code == 0
    # The engine's own warning: its key leaves paths open.
    assert {check: grade for check, (grade, _) in findings_by_check.items() if grade != "ok"} == {"profile": "warn"}
    assert "(TPU2010)" in result.out
    assert f"The machine runs as {VLLM}" in result.out
    assert "tcp:8000 is open to 203.0.113.7/32 (allow-vllm)" in result.out
    assert "$1.40 to $1.78 a chip and hour" in result.out
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0  # and so it is


def test_it_only_reads(cli: Open) -> None:
    at = cli()
    examined(at)
    posts = {r.path.partition("?")[0].rpartition(":")[2] for r in at.emulator.requests if r.method == "POST"}
    assert posts == {"testIamPermissions", "getIamPolicy"}
    assert {r.method for r in at.emulator.requests} == {"GET", "POST", "HEAD"}
    assert not any(":access" in r.path for r in at.emulator.requests)  # no secret's value leaves its place
    assert not at.slices
    assert not (at.folder / ".tpudeploy" / "state").exists()


# What is missing in the project: the check that says so, how, words of what is said or of what to do, the exit code.
MISSING: tuple[tuple[Mapping[str, Any], str, str, str, int], ...] = (
    ({"apis_off": ["tpu.googleapis.com"]}, "apis", "fail", "gcloud services enable tpu.googleapis.com", 13),
    ({"apis_off": ["secretmanager.googleapis.com"]}, "apis", "fail", "Not enabled: secretmanager", 13),
    ({"apis_off": ["cloudbilling.googleapis.com"]}, "apis", "warn", "some checks are not possible without it", 0),
    ({"apis_off": ["serviceusage.googleapis.com"]}, "apis", "unknown", "serviceusage.googleapis.com is not enabled", 0),
    ({"denied_permissions": ["tpu.nodes.create"]}, "roles", "fail", "--role=roles/tpu.admin", 13),
    ({"denied_permissions": ["tpu.nodes.delete"]}, "roles", "fail", "You may not delete one (tpu.nodes.delete)", 13),
    ({"denied_permissions": ["tpu.locations.list"]}, "roles", "warn", "You may not list zones", 0),
    ({"service_accounts": []}, "account", "fail", "gcloud iam service-accounts create vllm", 13),
    ({"denied_permissions": ["iam.serviceAccounts.actAs"]}, "account", "fail", "roles/iam.serviceAccountUser", 13),
    ({"secret_readers": []}, "secret", "warn", f"--member=serviceAccount:{VLLM}", 0),
    ({"denied_permissions": ["secretmanager.versions.access"]}, "secret", "fail", "vllm-key is not yours to read", 13),
    ({"networks": {"other": {"us-east5": {}}}}, "network", "fail", "gcloud compute networks create default", 13),
    ({"networks": {"default": {"us-east5": {}}}}, "subnetwork", "warn", "No subnetwork in europe-west4", 0),
    ({"networks": {"default": {}}}, "subnetwork", "fail", "No subnetwork in europe-west4, us-east5", 13),
    ({"firewalls": []}, "firewall", "warn", "--allow=tcp:8000 --source-ranges=YOUR_RANGE --target-tags=vllm", 0),
    ({"firewalls": [{**RULE, "disabled": True}]}, "firewall", "warn", "No rule opens tcp:8000", 0),
    ({"firewalls": [{**RULE, "targetTags": ["other"]}]}, "firewall", "warn", "No rule opens tcp:8000", 0),
    ({"firewalls": [{**RULE, "sourceRanges": ["10.0.0.0/8"]}]}, "firewall", "warn", "No rule opens tcp:8000", 0),
    ({"firewalls": [{**RULE, "direction": "EGRESS"}]}, "firewall", "warn", "No rule opens tcp:8000", 0),
    ({"addresses": {"us-east5": 0}}, "addresses", "warn", "available in us-east5: 1 needed", 0),
    ({"images": ["vllm/vllm-tpu:v0.31.0"]}, "image", "fail", "vllm/vllm-tpu:v0.32.0 does not exist", 13),
)


def test_whether_a_machine_may_delete_itself_at_its_end_is_said_with_the_role_that_it_needs(cli: Open) -> None:
    ending = f"{READY}lifecycle: {{end: 24h}}\n"
    result, findings = examined(cli(project=OPEN), ending)
    assert findings["end"][0] == "ok", result.out
    denied = {**OPEN, "denied_machine_permissions": ["tpu.nodes.delete"]}
    result, findings = examined(cli(project=denied), ending)
    assert findings["end"][0] == "warn", result.out
    assert "delete its own request (tpu.nodes.delete)" in findings["end"][1]
    assert "`tpudeploy render PROFILE role`" in findings["end"][1]
    assert "end" not in examined(cli(project=denied))[1]


@pytest.mark.parametrize("row", MISSING, ids=lambda row: f"{row[1]}-{next(iter(row[0]))}-{row[2]}")
def test_whatever_is_missing_is_named_with_what_to_do_and_the_rest_is_told(
    cli: Open, row: tuple[Mapping[str, Any], str, str, str, int]
) -> None:
    project, check, grade, words, code = row
    result, findings_by_check = examined(cli(project={**OPEN, **project}))
    assert findings_by_check[check][0] == grade, result.out
    assert words in findings_by_check[check][1]
    assert result.code == code
    assert {"credentials", "roles", "image", "disk", "hardware", "quota", "price", "places", "lock"} <= set(
        findings_by_check
    )


# The scenario beside the project; the check, how it stands, words of it, the exit code.
GATES: tuple[tuple[Mapping[str, Any], str, str, str, int], ...] = (
    ({"secrets": {"vllm-key": "x"}}, "secret", "fail", "gcloud secrets create hf-token", 13),
    (
        {"offers": {zone: ["v6e-8"] for zone in ("us-east5-a", "us-east5-b", "europe-west4-a")}},
        "hardware",
        "fail",
        "No zone of 3 has v6e-1",
        13,
    ),
    ({"offers": {"us-east5-a": ["v6e-8"]}}, "hardware", "ok", "2 of 3 zones list v6e-1", 0),
    (
        {"trouble": [{"fault": "unavailable", "method": "runtimeVersions.*"}]},
        "runtime",
        "unknown",
        "Could not list the runtime versions of",
        0,
    ),
    (
        {"trouble": [{"fault": "location-denied", "method": "runtimeVersions.*", "zone": "us-east5-a"}]},
        "runtime",
        "ok",
        "2 of 3 zones list v2-alpha-tpuv6e",
        0,
    ),
    (
        {"quota": [{"class": "preemptible", "region": "*", "limit": 0}]},
        "quota",
        "warn",
        "No pair has 1 chip of quota left",
        0,
    ),
    ({"quota": [{"class": "preemptible", "zone": "us-east5-a", "limit": 0}]}, "quota", "ok", "2 of 3 pairs have", 0),
    (
        {"project": {"quota_metrics": {"preemptible": "x", "on-demand": "y"}}},
        "quota",
        "unknown",
        "names no metric like",
        0,
    ),
    (
        {"trouble": [{"fault": "unavailable", "method": "cloudbilling.*"}]},
        "price",
        "ok",
        "at list prices of 2026-08",
        0,
    ),
    (
        {"trouble": [{"fault": "unavailable", "method": "locations.*"}]},
        "hardware",
        "ok",
        "by the catalogue of 2026-08",
        0,
    ),
)


@pytest.mark.parametrize("row", GATES, ids=lambda row: f"{row[1]}-{row[2]}")
def test_the_gates_are_summed_up(cli: Open, row: tuple[Mapping[str, Any], str, str, str, int]) -> None:
    scenario, check, grade, words, code = row
    result, findings_by_check = examined(cli(**scenario))
    assert findings_by_check[check][0] == grade, result.out
    assert words in findings_by_check[check][1]
    assert result.code == code


def test_a_runtime_version_that_no_zone_lists_fails(cli: Open) -> None:
    said, found = examined(
        cli(project=OPEN), READY.replace("  type: v6e-1\n", "  type: v6e-1\n  runtime_version: v9\n")
    )
    grade, message = found["runtime"]
    assert grade == "fail"
    assert "europe-west4-a" in message
    assert "do not list v9. Leave tpu.runtime_version out" in message
    assert said.code == 13


def test_a_price_that_nobody_offers_fails(cli: Open) -> None:
    at = cli(project={"prices": {"us-east5": {"spot": 1.6}, "europe-west4": {"spot": 1.7}}})
    result, findings_by_check = examined(at, READY + "  max_price_per_chip_hour: 1.5\n")
    assert findings_by_check["price"][0] == "fail"
    assert findings_by_check["places"][0] == "fail"
    assert result.code == 13


SERVICES = ("serviceusage", "cloudresourcemanager", "iam", "secretmanager", "compute", "registry", "cloudbilling")


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("fault", ["unavailable", "iam-denied", "connection-refused"])
def test_a_service_that_does_not_tell_makes_its_lines_unknown_and_hides_no_other(
    cli: Open, service: str, fault: str
) -> None:
    at = cli(project=OPEN, trouble=[{"fault": fault, "method": f"{service}.*"}])
    result, findings_by_check = examined(at)
    assert result.code == 0, result.out
    assert "fail" not in {grade for grade, _ in findings_by_check.values()}
    assert set(findings_by_check) >= {
        "credentials",
        "apis",
        "roles",
        "account",
        "secret",
        "network",
        "image",
        "quota",
        "places",
    }
    graded = {check for check, (grade, _) in findings_by_check.items() if grade == "unknown"}
    unknown = {
        "serviceusage": {"apis", "quota"},
        "cloudresourcemanager": {"roles", "secret"},
        "iam": {"account", "secret"},
        "secretmanager": {"secret"},
        "compute": {"network", "addresses"},
        "registry": {"image"},
        "cloudbilling": set(),  # its table stands in
    }
    assert graded == unknown[service], result.out


def test_without_credentials_it_says_so_once_and_tells_what_can_be_told(
    cli: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = cli()
    profile = at.write()
    no_credentials(at, monkeypatch)
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # no registry either
    result = at.run("doctor", profile)
    findings_by_check = findings(result)
    assert result.code == 13
    assert findings_by_check["credentials"][0] == "fail"
    assert result.all.count("gcloud auth application-default login") == 1
    assert (findings_by_check["disk"][0], findings_by_check["hardware"][0], findings_by_check["lock"][0]) == (
        "ok",
        "ok",
        "ok",
    )
    assert {check for check, (grade, _) in findings_by_check.items() if grade == "unknown"} >= {
        "apis",
        "roles",
        "image",
        "quota",
    }


def test_a_machine_without_an_address_needs_its_ways_out(cli: Open) -> None:
    closed = {"private_access": False}
    at = cli(project={"networks": {"default": {"us-east5": closed, "europe-west4": {"nat": True}}}})
    result, findings_by_check = examined(at, PRIVATE)
    assert result.code == 0
    assert findings_by_check["private-access"][0] == "warn"
    assert (
        "subnets update default --region=us-east5 --enable-private-ip-google-access"
        in findings_by_check["private-access"][1]
    )
    assert findings_by_check["nat"][0] == "warn"
    assert "No Cloud NAT in us-east5" in findings_by_check["nat"][1]
    assert "gcloud compute routers nats create nat --router=nat --region=us-east5" in findings_by_check["nat"][1]
    assert "addresses" not in findings_by_check
    assert "tcp:22 is open to 35.235.240.0/20 (default-allow-ssh)" in findings_by_check["firewall"][1]
    nowhere = cli(project={"networks": {"default": {"us-east5": closed, "europe-west4": closed}}})
    result, findings_by_check = examined(nowhere, PRIVATE)
    assert (findings_by_check["private-access"][0], findings_by_check["nat"][0], result.code) == ("fail", "fail", 13)


def test_the_vm_of_a_router_needs_its_ways_to_packages_replicas_and_clients(cli: Open) -> None:
    on_vm = "replicas: 2\nrouter: {kind: haproxy, host: vm}\n"
    _, findings_by_check = examined(cli(project={"addresses": {"*": 2}}), READY + on_vm)
    grade, text = findings_by_check["router"]
    assert grade == "warn"
    assert "No rule opens tcp:8080: clients outside the network cannot reach the router's VM." in text
    assert "firewall-rules create gemma-router --network=default --allow=tcp:8080" in text
    assert "3 needed" in findings_by_check["addresses"][1]
    inside = {**RULE, "sourceRanges": ["10.128.0.0/9"], "allowed": [{"IPProtocol": "tcp", "ports": ["8080"]}]}
    closed = {"networks": {"default": {"us-east5": {}, "europe-west4": {}}}, "firewalls": [inside]}
    result, findings_by_check = examined(cli(project=closed), PRIVATE + on_vm)
    assert findings_by_check["router"][0] == "fail"
    assert "No Cloud NAT in europe-west4, us-east5: the router's VM could not install its router." in result.words
    assert "No rule opens tcp:8000 inside the network: the router's VM cannot reach the replicas." in result.words
    ready = {"firewalls": [RULE, {**RULE, "allowed": [{"IPProtocol": "tcp", "ports": ["8080"]}]}, {**inside, **ALL}]}
    _, findings_by_check = examined(cli(project=ready), READY + on_vm)
    assert findings_by_check["router"] == (
        "ok",
        "The router's VM (e2-small) reaches the replicas, and clients reach it.",
    )
    assert "router" not in examined(cli(project=OPEN))[1]


def test_what_google_itself_holds_needs_no_nat(cli: Open) -> None:
    own = PRIVATE.replace("vllm/vllm-tpu:v0.32.0", "us-docker.pkg.dev/my-project/vllm/vllm-tpu:v0.32.0")
    _, findings_by_check = examined(cli(), own.replace("google/gemma-4-E2B-it", "gs://bucket/gemma-4-E2B-it"))
    assert "nat" not in findings_by_check


def test_an_image_of_compute_engine_lacks_docker_which_needs_nat_too(cli: Open) -> None:
    own = PRIVATE.replace("vllm/vllm-tpu:v0.32.0", "us-docker.pkg.dev/my-project/vllm/vllm-tpu:v0.32.0")
    own = own.replace("google/gemma-4-E2B-it", "gs://bucket/gemma-4-E2B-it").replace("spot]", "spot]\n  backend: auto")
    _, findings_by_check = examined(cli(), own)
    assert findings_by_check["nat"][0] == "fail"
    assert "cannot install docker, which its image lacks" in findings_by_check["nat"][1]


def test_what_an_instance_and_a_group_need_is_not_what_a_queued_resource_needs(cli: Open) -> None:
    denied = ["tpu.nodes.create", "compute.instanceTemplates.create"]
    at = cli(project={**OPEN, "denied_permissions": denied, "apis_off": ["tpu.googleapis.com"]})
    _, of_instance = examined(at, READY.replace("placement:\n", "placement:\n  backend: gce-instance\n"))
    assert (of_instance["roles"][0], of_instance["apis"][0]) == ("ok", "ok")
    _, of_group = examined(at, f"{GROUP}  service_account: {VLLM}\n")
    assert of_group["roles"][0] == "fail"
    assert "create an instance template (compute.instanceTemplates.create)" in of_group["roles"][1]
    assert "--role=roles/compute.instanceAdmin.v1" in of_group["roles"][1]
    assert "tpu.nodes" not in of_group["roles"][1]


def test_a_router_on_a_vm_needs_permissions_of_compute_engine_beside_slices_of_the_tpu_api(cli: Open) -> None:
    at = cli(project={**OPEN, "denied_permissions": ["compute.instances.setMetadata"]})
    assert examined(at)[1]["roles"][0] == "ok"
    result, beside = examined(at, f"{READY}replicas: 2\nrouter: {{kind: haproxy, host: vm}}\n")
    assert result.code != 0
    assert beside["roles"][0] == "fail"
    assert "You may not give the router the list of replicas (compute.instances.setMetadata)" in beside["roles"][1]
    assert "--role=roles/compute.instanceAdmin.v1" in beside["roles"][1]
    assert "roles/tpu.admin" not in beside["roles"][1]


def test_workers_that_may_not_reach_one_another_are_told_before_anything_is_asked(cli: Open) -> None:
    inside = {"name": "inside", "allowed": [{"IPProtocol": "tcp"}], "sourceRanges": ["10.128.0.0/9"]}
    _, closed = examined(cli(project=OPEN), GROUP)
    assert closed["workers"][0] == "warn"
    assert "--allow=tcp,udp,icmp --source-ranges=10.128.0.0/20" in closed["workers"][1]
    _, opened = examined(cli(project={"firewalls": [RULE, inside]}), GROUP)
    assert opened["workers"] == ("ok", "The workers of a slice may reach one another.")
    _, of_one_host = examined(cli(project=OPEN))
    assert "workers" not in of_one_host


def test_a_rule_that_denies_is_heard_before_one_that_allows_later(cli: Open) -> None:
    deny = {
        "name": "deny-all",
        "denied": [{"IPProtocol": "all"}],
        "sourceRanges": ["0.0.0.0/0"],
        "priority": 900,
    }
    _, findings_by_check = examined(cli(project={"firewalls": [{**RULE, "priority": 1000}, deny]}))
    assert findings_by_check["firewall"][0] == "warn"
    _, findings_by_check = examined(cli(project={"firewalls": [{**RULE, "priority": 800}, deny]}))
    assert findings_by_check["firewall"][0] == "ok"


def test_a_subnetwork_by_name_must_be_in_each_region(cli: Open) -> None:
    at = cli(project={**OPEN, "networks": {"default": {"us-east5": {}}, "own": {"europe-west4": {}}}})
    _, findings_by_check = examined(at, READY.replace("tags: [vllm]", "subnetwork: own, tags: [vllm]"))
    assert findings_by_check["subnetwork"] == (
        "warn",
        "No own in us-east5: requests there are refused. Create one, or leave the zones of these regions out of placement.zones.",
    )


def test_a_disk_that_is_too_small_and_whatever_validate_says_are_told(cli: Open) -> None:
    small = READY.replace("type: v6e-1", "type: v6e-1\n  boot_disk_size: 20GiB")
    _, findings_by_check = examined(cli(), small)
    assert findings_by_check["disk"][0] == "warn"
    assert "20 GiB" in findings_by_check["disk"][1]
    _, findings_by_check = examined(cli(), PROFILE)
    assert findings_by_check["profile"][0] == "warn"
    assert "TPU2001" in findings_by_check["profile"][1]


def test_whoever_holds_the_lock_is_named(cli: Open) -> None:
    at = cli()
    at.write()
    with holding(at.folder / ".tpudeploy", "gemma", who="alice@laptop") as process:
        _, findings_by_check = examined(at)
    assert findings_by_check["lock"][0] == "warn"
    assert f"alice@laptop holds the lock (process {process.pid}, `apply`)" in findings_by_check["lock"][1]
    _, findings_by_check = examined(at)
    assert findings_by_check["lock"][0] == "ok"


def test_requests_that_wait_are_named_and_a_slice_that_is_held_is_not_in_the_way(cli: Open) -> None:
    at = cli(trouble=[{"fault": "wait-for-ever", "times": 1}])
    assert at.run("apply", "-auto-approve", "-timeout", "10m", at.write()).code == 12
    _, findings_by_check = examined(at)
    (name,) = at.slices
    assert findings_by_check["requests"][0] == "warn"
    assert f"{name} (us-east5-a, spot)" in findings_by_check["requests"][1]
    assert "`tpudeploy destroy` deletes it" in findings_by_check["requests"][1]
    other = cli()
    other.write()
    assert other.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    assert other.run("apply", "-auto-approve", "gemma.yaml").code == 0
    _, findings_by_check = examined(other)
    assert findings_by_check["requests"][0] == "ok"
    assert "Granted: gemma-" in findings_by_check["requests"][1]


def test_a_state_that_cannot_be_read_fails(cli: Open) -> None:
    at = cli()
    states = at.folder / ".tpudeploy" / "state"
    states.mkdir(parents=True)
    (states / "gemma.json").write_text("{", encoding="utf-8")
    result, findings_by_check = examined(at)
    assert findings_by_check["requests"][0] == "fail"
    assert "cannot be read as a state" in findings_by_check["requests"][1]
    assert result.code == 13


@pytest.mark.parametrize("columns", [72, 100])
def test_a_narrow_terminal_breaks_lines_between_words_and_never_a_command(cli: Open, columns: int) -> None:
    at = cli(project={"secret_readers": [], "apis_off": ["cloudbilling.googleapis.com"]})
    environment = {**at.emulator.environment, "COLUMNS": str(columns), "NO_COLOR": "1"}
    with person("doctor", at.write(READY), folder=at.folder, environment=environment) as somebody:
        assert somebody.stays_to_the_end() == 0
    shown = somebody.read.splitlines()
    commands = [line for line in shown if "Run: " in line]
    assert max(len(line) for line in shown if line not in commands) <= columns
    assert all(
        line.split(" --role=")[-1] == "roles/secretmanager.secretAccessor" for line in commands if "secrets" in line
    )
    assert len(commands) == 4


def test_json_says_all_of_it(cli: Open) -> None:
    at = cli(project={"images": []})
    result = at.run("doctor", "-json", at.write())
    assert result.code == 13
    tree = json.loads(result.out)
    assert (tree["format"], tree["emulated"], tree["project"]) == ("tpudeploy.doctor/1", True, "emulated")
    assert tree["counts"]["fail"] == 1
    (failed,) = (f for f in tree["findings"] if f["grade"] == "fail")
    assert failed["check"] == "image"
    assert set(failed) == {"check", "grade", "message", "hint"}


def test_a_profile_that_is_wrong_is_told_as_everywhere(cli: Open) -> None:
    at = cli()
    result = at.run("doctor", at.write(PROFILE.replace("16384", "many")))
    assert result.code == 1
    assert "Expected a whole number" in result.err
    assert not at.emulator.requests
