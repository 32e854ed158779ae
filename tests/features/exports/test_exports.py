"""The same deployment for another tool: what that tool reads is what tpudeploy would send, and what is missing is said."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

import tpudeploy as td

PROFILES = Path(__file__).parents[3] / "profiles"
SHIPPED = sorted(PROFILES.glob("*.yaml"))
KUBERNETES = "1.35"
PROFILE = """\
version: 1
name: gemma
model: {id: google/gemma-4-E2B-it}
tpu: {type: v6e-1}
serving:
  image: vllm/vllm-tpu:v0.32.0
  shm_size: 10gb
  env: {PROMPT: "$$(HOME) costs $$$$5"}
secrets: {HF_TOKEN: hf-token}
placement:
  project: my-project
  zones: [us-east5-a, us-east5-b]
  provisioning: [spot]
  reservation: null
  service_account: serve@my-project.iam.gserviceaccount.com
  network: {external_ip: false, tags: [serve, test]}
  labels: {team: search}
"""
INSTANCE = PROFILE.replace("provisioning: [spot]", "provisioning: [flex-start]\n  max_run_duration: 4h").replace(
    "placement:\n", "placement:\n  backend: gce-instance\n"
)
# A `gcloud` that writes down its arguments, and keeps the file that it was given.
GCLOUD = """\
#!/bin/bash
printf '%s\\n' "$@" >"$RECORD/arguments"
for word; do
  case $word in --metadata-from-file=startup-script=*) cp "${word#*=*=}" "$RECORD/script" ;; esac
done
"""


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_kubernetes_would_accept_every_shipped_profile(path: Path) -> None:
    for manifest in _manifests(path):
        if manifest["kind"] == "LeaderWorkerSet":  # a kind of its own, whose pods are Kubernetes' own
            for pod in _pods_of_group(manifest):
                kubernetes_validate.validate(
                    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": pod},
                    KUBERNETES,
                    strict=True,
                )
        elif manifest["apiVersion"] != "cloud.google.com/v1":  # Google's own kind has no published schema
            kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_pod_runs_the_process_of_the_profile_with_its_environment(path: Path) -> None:
    container = _pod(path)["containers"][0]
    argv = json.loads(td.Workspace().render(path, "argv").text)
    assert [_expand(word) for word in container["command"]][-len(argv) :] == argv
    deployment = td.Workspace().deployment(td.Profile.load(path), offline=True)
    plain = {entry["name"]: _expand(entry["value"]) for entry in container["env"] if "value" in entry}
    assert plain == deployment.container.environment
    secret = [entry["name"] for entry in container["env"] if "secretKeyRef" in entry.get("valueFrom", ())]
    assert secret == [ref.variable for ref in deployment.container.secrets]


def test_several_hosts_are_a_leader_with_the_server_and_workers_that_join_it() -> None:
    compute_class, group, service = _manifests(PROFILES / "qwen3-235b-v6e32.yaml")
    assert compute_class["spec"]["priorities"][0]["tpu"] == {"type": "tpu-v6e-slice", "count": 4, "topology": "4x8"}
    assert group["spec"]["leaderWorkerTemplate"]["size"] == 8
    leader, worker = (pod["containers"][0] for pod in _pods_of_group(group))
    labels = group["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert leader["readinessProbe"]
    assert "ray start --head" in leader["command"][2]
    assert "$LWS_LEADER_ADDRESS:6379" in worker["command"][2]
    assert "vllm" not in worker["command"]
    assert not {"startupProbe", "readinessProbe", "ports"} & worker.keys()
    for pod in (leader, worker):
        assert pod["resources"]["limits"] == {"google.com/tpu": "4"}
        assert {"name": "TPU_MULTIHOST_BACKEND", "value": "ray"} in pod["env"]


def test_kubernetes_replaces_nothing_in_the_words_of_a_profile(tmp_path: Path) -> None:
    environment = {entry["name"]: entry.get("value", "") for entry in _pod(_write(tmp_path))["containers"][0]["env"]}
    assert _expand(environment["PROMPT"]) == "$(HOME) costs $$5"


def test_a_pod_waits_for_the_slice_of_the_profile(tmp_path: Path) -> None:
    compute_class, workload, _ = _manifests(_write(tmp_path))
    tpu = {"type": "tpu-v6e-slice", "count": 1, "topology": "1x1"}
    assert compute_class["spec"]["priorities"] == [
        {"tpu": tpu, "location": {"zones": [zone]}, "spot": True} for zone in ("us-east5-a", "us-east5-b")
    ]
    pod = workload["spec"]["template"]["spec"]
    assert pod["nodeSelector"]["cloud.google.com/compute-class"] == compute_class["metadata"]["name"]
    assert pod["containers"][0]["resources"]["limits"] == {"google.com/tpu": "1"}


def test_nodes_are_tried_in_the_order_of_zones_and_models_and_those_of_another_region_are_named(tmp_path: Path) -> None:
    text = PROFILE.replace("us-east5-b", "europe-west4-a, us-east5-b").replace("[spot]", "[spot, on-demand]")
    path = _write(tmp_path, text)
    priorities = _manifests(path)[0]["spec"]["priorities"]
    deployment = td.Workspace().deployment(td.Profile.load(path), offline=True)
    order = [(str(place.zone), place.provisioning == "spot") for place in deployment.candidates]
    assert [(row["location"]["zones"][0], row.get("spot", False)) for row in priorities] == [
        place for place in order if place[0].startswith("us-east5")
    ]
    assert "The zones europe-west4-a: a cluster is in one region" in _render(path, "gke")


@pytest.mark.parametrize("hosts", [1, 2])
def test_several_replicas_have_the_pool_and_the_route_of_the_inference_gateway(tmp_path: Path, hosts: int) -> None:
    text = f"{PROFILE}replicas: 3\nlifecycle: {{max_unavailable: 2}}\n"
    path = _write(tmp_path, text if hosts == 1 else text.replace("v6e-1", "v5p-16"))
    _, workload, service, pool, route = _manifests(path)
    assert workload["spec"]["replicas"] == 3
    if hosts == 1:
        assert workload["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 2}
        labels = workload["spec"]["template"]["metadata"]["labels"]
    else:
        labels = workload["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["metadata"]["labels"]
    assert pool["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert pool["spec"]["targetPorts"] == [{"number": service["spec"]["ports"][0]["targetPort"]}]
    (backend,) = route["spec"]["rules"][0]["backendRefs"]
    group, _, _ = pool["apiVersion"].partition("/")
    assert (backend["group"], backend["kind"], backend["name"]) == (group, pool["kind"], pool["metadata"]["name"])
    assert pool["spec"]["endpointPickerRef"]["name"] in _render(path, "gke").partition("---")[0]


def test_what_kubernetes_cannot_express_is_named(tmp_path: Path) -> None:
    text = _render(_write(tmp_path), "gke")
    head = " ".join(line.removeprefix("#").strip() for line in text.splitlines() if line.startswith("#"))
    assert "gcloud secrets versions access latest --secret=hf-token" in head
    assert "placement.valid_until" in head
    assert "An external address" not in head


@pytest.mark.parametrize("tool", ["gke", "gcloud"])
def test_rules_about_the_number_of_replicas_are_named(tool: str, tmp_path: Path) -> None:
    text = PROFILE.replace("[spot]", "[spot]\n  on_demand_floor: 1") + "scale: {max: 2}\n"
    head = " ".join(line.lstrip("# ") for line in _render(_write(tmp_path, text), tool).splitlines())
    assert "placement.on_demand_floor: every replica is requested in the same way here." in head
    assert "scale: the number of replicas is fixed here;" in head


def test_gcloud_sends_the_request_of_an_apply(tmp_path: Path) -> None:
    path = _write(tmp_path)
    arguments, script = _run_gcloud(tmp_path, _render(path, "gcloud"))
    body = json.loads(_render(path, "request"))
    node = body["tpu"]["nodeSpec"][0]
    metadata = node["node"]["metadata"]
    assert script.rstrip("\n") == metadata.pop("startup-script").rstrip("\n")
    assert arguments[:6] == ["alpha", "compute", "tpus", "queued-resources", "create", node["nodeId"]]
    flags = {name: value for name, _, value in (word.removeprefix("--").partition("=") for word in arguments[6:])}
    del flags["metadata-from-file"]
    assert flags == {
        "project": "my-project",
        "zone": "us-east5-a",
        "node-id": node["nodeId"],
        "accelerator-type": node["node"]["acceleratorType"],
        "runtime-version": node["node"]["runtimeVersion"],
        "valid-until-duration": body["queueingPolicy"]["validUntilDuration"],
        "provisioning-model": body["provisioningModel"].lower(),
        "network": node["node"]["networkConfig"]["network"],
        "internal-ips": "",
        "tags": ",".join(node["node"]["tags"]),
        "service-account": node["node"]["serviceAccount"]["email"],
        "scopes": "cloud-platform",
        "labels": ",".join(f"{key}={value}" for key, value in node["node"]["labels"].items()),
        "metadata": ",".join(f"{key}={value}" for key, value in metadata.items()),
        "async": "",
    }


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_script_for_gcloud_is_clean_shell(path: Path, tmp_path: Path) -> None:
    script = tmp_path / "create.sh"
    script.write_text(_render(path, "gcloud"), encoding="utf-8")
    result = subprocess.run(["shellcheck", str(script)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_a_startup_script_cannot_end_the_document_that_holds_it(tmp_path: Path) -> None:
    path = _write(tmp_path, PROFILE.replace('"$$(HOME) costs $$$$5"', '"a\\nSTARTUP_SCRIPT\\ntouch injected\\n"'))
    _, script = _run_gcloud(tmp_path, _render(path, "gcloud"))
    assert "touch injected" in script
    assert not (tmp_path / "injected").exists()


def test_gcloud_sends_the_instance_of_an_apply(tmp_path: Path) -> None:
    path = _write(tmp_path, INSTANCE)
    arguments, script = _run_gcloud(tmp_path, _render(path, "gcloud"))
    body = json.loads(_render(path, "request"))
    metadata = {item["key"]: item["value"] for item in body["metadata"]["items"]}
    assert script.rstrip("\n") == metadata.pop("startup-script").rstrip("\n")
    assert arguments[:5] == ["beta", "compute", "instances", "create", body["name"]]
    flags = {name: value for name, _, value in (word.removeprefix("--").partition("=") for word in arguments[5:])}
    assert flags.pop("machine-type") == body["machineType"].rpartition("/")[2]
    assert flags.pop("boot-disk-size") == f"{body['disks'][0]['initializeParams']['diskSizeGb']}GB"
    assert flags.pop("max-run-duration") == f"{body['scheduling']['maxRunDuration']['seconds']}s"
    assert flags.pop("request-valid-for-duration") == f"{body['params']['requestValidForDuration']['seconds']}s"
    assert flags.pop("provisioning-model") == "FLEX_START"
    assert {"no-address", "no-restart-on-failure", "async"} <= set(flags)


def test_terraform_describes_the_instance_of_an_apply(tmp_path: Path) -> None:
    path = _write(tmp_path, INSTANCE)
    body = json.loads(_render(path, "request"))
    document = json.loads(_render(path, "terraform"))
    (instance,) = document["resource"]["google_compute_instance"].values()
    metadata = {key: _evaluate(value) for key, value in instance["metadata"].items()}
    assert metadata == {item["key"]: item["value"] for item in body["metadata"]["items"]}
    assert instance["boot_disk"]["initialize_params"]["size"] == 200
    assert instance["scheduling"] == {
        "provisioning_model": "FLEX_START",
        "preemptible": False,
        "automatic_restart": False,
        "on_host_maintenance": "TERMINATE",
        "instance_termination_action": "DELETE",
        "max_run_duration": {"seconds": 14400},
    }
    assert any("requestValidForDuration" in sentence for sentence in document["//"])


def test_terraform_cannot_express_a_queued_resource_and_says_what_can(tmp_path: Path) -> None:
    with pytest.raises(td.errors.ConfigError, match=r"placement\.backend: gce-instance"):
        _render(_write(tmp_path), "terraform")


def _evaluate(text: str) -> str:
    """Return what Terraform makes of a text without templates: `$${` is `${`, and `%%{` is `%{`."""
    assert not re.search(r"(?<!\$)\$\{|(?<!%)%\{", text), text
    return text.replace("$${", "${").replace("%%{", "%{")


def _run_gcloud(folder: Path, text: str) -> tuple[list[str], str]:
    gcloud = folder / "bin" / "gcloud"
    gcloud.parent.mkdir()
    gcloud.write_text(GCLOUD, encoding="utf-8")
    gcloud.chmod(0o755)
    environment = {**os.environ, "PATH": f"{gcloud.parent}:{os.environ['PATH']}", "RECORD": str(folder)}
    subprocess.run(["bash", "-c", text], cwd=folder, env=environment, check=True)
    arguments = (folder / "arguments").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return arguments, (folder / "script").read_text(encoding="utf-8")


def _write(folder: Path, text: str = PROFILE) -> Path:
    path = folder / "gemma.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def _render(path: Path, what: str) -> str:
    return str(td.Workspace().render(path, what))


def _manifests(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(_render(path, "gke")))


def _pod(path: Path) -> dict[str, Any]:
    workload = _manifests(path)[1]
    pod: dict[str, Any] = (
        _pods_of_group(workload)[0] if workload["kind"] == "LeaderWorkerSet" else workload["spec"]["template"]["spec"]
    )
    return pod


def _pods_of_group(group: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the pods of a LeaderWorkerSet: that of the leader, and that of each worker."""
    template = group["spec"]["leaderWorkerTemplate"]
    return template["leaderTemplate"]["spec"], template["workerTemplate"]["spec"]


def _expand(word: str) -> str:
    """Return what a container gets for a word without references to variables: `$$` is `$` (Kubernetes' rule)."""
    assert not re.search(r"(?<!\$)(\$\$)*\$\(", word), word
    return word.replace("$$", "$")
