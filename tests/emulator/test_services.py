"""The other services of a project, through Google's discovery clients; each reply held against its document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import googleapiclient
import pytest
from emulator.cloud_world import World, new_client, refused, world
from emulator.test_cloud_any_body import TREES
from hypothesis import HealthCheck, given, settings
from real_time import DEADLINE

from tpudeploy.domain.errors import ScenarioInvalid
from tpudeploy.emulator.scenario_file import load_scenario
from tpudeploy.emulator.timings import Timings

DOCUMENTS = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
PERMISSIONS = {"permissions": ["tpu.nodes.create", "tpu.nodes.get"]}
SECRET = "projects/p/secrets/hf-token"
ACCOUNT = "projects/p/serviceAccounts/vllm@p.iam.gserviceaccount.com"
BATCH = {"parent": "projects/p", "names": ["projects/p/services/tpu.googleapis.com"]}
TPU = "projects/p/services/tpu.googleapis.com"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method: where it is, what it is asked, the schema of its reply, and a scenario in which it says no."""

    document: str
    path: str
    arguments: Mapping[str, Any]
    reply: str
    no: Mapping[str, Any] = field(default_factory=dict)

    @property
    def service(self) -> str:
        return self.document.partition(".")[0]

    def call(self, w: World) -> dict[str, Any]:
        name, version = self.document.split(".")
        path = "/compute/v1/" if name == "compute" else ""
        *collections, method = self.path.split(".")
        with new_client(w.emulator, name, version, path) as client:
            resource = client
            for collection in collections:
                resource = getattr(resource, collection)()
            answer: dict[str, Any] = getattr(resource, method)(**self.arguments).execute(num_retries=0)
        return answer


ROWS = (
    Row(
        document="serviceusage.v1beta1",
        path="services.consumerQuotaMetrics.list",
        arguments={"parent": TPU, "view": "FULL"},
        reply="ListConsumerQuotaMetricsResponse",
    ),
    Row(
        document="serviceusage.v1beta1",
        path="services.consumerQuotaMetrics.list",
        arguments={"parent": "projects/p/services/compute.googleapis.com", "view": "FULL"},
        reply="ListConsumerQuotaMetricsResponse",
    ),
    Row(document="serviceusage.v1", path="services.batchGet", arguments=BATCH, reply="BatchGetServicesResponse"),
    Row(
        document="cloudbilling.v1",
        path="services.skus.list",
        arguments={"parent": "services/6F81-5844-456A"},
        reply="ListSkusResponse",
    ),
    Row(
        document="compute.v1",
        path="regions.get",
        arguments={"project": "p", "region": "us-east5"},
        reply="Region",
        no={},
    ),
    Row(
        document="compute.v1",
        path="networks.get",
        arguments={"project": "p", "network": "default"},
        reply="Network",
        no={"networks": {"other": {}}},
    ),
    Row(
        document="compute.v1",
        path="subnetworks.get",
        arguments={"project": "p", "region": "us-east5", "subnetwork": "default"},
        reply="Subnetwork",
        no={"networks": {"default": {"us-east1": {}}}},
    ),
    Row(
        document="compute.v1",
        path="routers.list",
        arguments={"project": "p", "region": "us-east5"},
        reply="RouterList",
    ),
    Row(document="compute.v1", path="firewalls.list", arguments={"project": "p"}, reply="FirewallList"),
    Row(document="cloudresourcemanager.v3", path="projects.get", arguments={"name": "projects/p"}, reply="Project"),
    Row(
        document="cloudresourcemanager.v3",
        path="projects.getIamPolicy",
        arguments={"resource": "projects/p", "body": {}},
        reply="Policy",
    ),
    Row(
        document="cloudresourcemanager.v3",
        path="projects.testIamPermissions",
        arguments={"resource": "projects/p", "body": PERMISSIONS},
        reply="TestIamPermissionsResponse",
    ),
    Row(
        document="iam.v1",
        path="projects.serviceAccounts.get",
        arguments={"name": ACCOUNT},
        reply="ServiceAccount",
        no={"service_accounts": []},
    ),
    Row(
        document="iam.v1",
        path="projects.serviceAccounts.testIamPermissions",
        arguments={"resource": ACCOUNT, "body": {"permissions": ["iam.serviceAccounts.actAs"]}},
        reply="TestIamPermissionsResponse",
        no={"service_accounts": []},
    ),
    Row(
        document="secretmanager.v1",
        path="projects.secrets.versions.get",
        arguments={"name": f"{SECRET}/versions/latest"},
        reply="SecretVersion",
    ),
    Row(
        document="secretmanager.v1",
        path="projects.secrets.getIamPolicy",
        arguments={"resource": SECRET},
        reply="Policy",
    ),
    Row(
        document="secretmanager.v1",
        path="projects.secrets.testIamPermissions",
        arguments={"resource": SECRET, "body": {"permissions": ["secretmanager.versions.access"]}},
        reply="TestIamPermissionsResponse",
    ),
)
HEALTHY = {
    "quota": [
        {"class": "preemptible", "zone": "us-east5-a", "limit": 0},
        {"class": "preemptible", "region": "*", "limit": 16},
    ],
    "project": {"networks": {"default": {"us-east5": {"nat": True}}}},
}


def _id(row: Row) -> str:
    return f"{row.service}.{row.path}"


@pytest.mark.parametrize("row", ROWS, ids=_id)
def test_what_a_service_says_is_in_the_form_that_its_document_gives(row: Row) -> None:
    with world(**HEALTHY) as w:
        assert list(problems(row.call(w), row.reply, row.document, at=row.reply)) == []


@pytest.mark.parametrize("row", ROWS, ids=_id)
def test_an_api_that_is_off_refuses_every_call_and_names_itself(row: Row) -> None:
    host = f"{row.service}.googleapis.com"
    with world(project={"apis_off": [host]}) as w, pytest.raises(Exception, match=f"apis/api/{host}/overview"):
        row.call(w)


@pytest.mark.parametrize("row", [r for r in ROWS if r.no], ids=_id)
def test_what_the_scenario_leaves_out_is_not_found(row: Row) -> None:
    with world(project=row.no) as w, pytest.raises(Exception, match="404"):
        row.call(w)


def test_compute_engine_gives_a_reason_where_others_give_a_status() -> None:
    with world() as w:
        output = _raw(w, "GET", "/compute/v1/projects/p/regions/nowhere", None)
    assert output[0] == 404
    assert "status" not in output[1]["error"]
    assert output[1]["error"]["errors"][0]["reason"] == "notFound"


def test_a_scripted_fault_strikes_these_services_too() -> None:
    row = next(r for r in ROWS if r.path == "regions.get")
    with world({"fault": "unavailable", "method": "compute.regions.get", "times": 1}) as w:
        with pytest.raises(Exception, match="503"):
            row.call(w)
        assert row.call(w)["name"] == "us-east5"


def test_a_limit_of_nothing_is_left_out_and_every_place_has_its_bucket_in_the_full_view() -> None:
    row = ROWS[0]
    with world(**HEALTHY) as w:
        metrics = {m["metric"]: m for m in row.call(w)["metrics"]}
    region, zone = metrics["tpu.googleapis.com/tpu-v6e-preemptible"]["consumerQuotaLimits"]
    assert region["quotaBuckets"][0] == {"effectiveLimit": "16", "defaultLimit": "16"}
    by_zone = {b["dimensions"]["zone"]: b for b in zone["quotaBuckets"] if "dimensions" in b}
    assert "effectiveLimit" not in by_zone["us-east5-a"]
    assert by_zone["us-east5-b"]["effectiveLimit"] == "-1"


def test_compute_engine_s_quota_of_chips_is_by_region_and_family() -> None:
    limit = {"class": "on-demand", "region": "us-east5", "limit": 8, "api": "compute"}
    with world(quota=[limit, {**limit, "region": "*", "limit": 16}]) as w:
        metrics = {m["metric"]: m for m in ROWS[1].call(w)["metrics"]}
    (region,) = metrics["compute.googleapis.com/tpus_per_tpu_family"]["consumerQuotaLimits"]
    assert region["unit"] == "1/{project}/{region}/{tpu_family}"
    buckets = {tuple(b.get("dimensions", {}).values()): b.get("effectiveLimit") for b in region["quotaBuckets"]}
    assert next(iter(buckets)) == ()
    assert (buckets[()], buckets["CT6E",], buckets["us-east5", "CT6E"]) == (None, "16", "8")


def test_permissions_that_are_denied_are_left_out() -> None:
    row = next(r for r in ROWS if r.path == "projects.testIamPermissions")
    with world(project={"denied_permissions": ["tpu.nodes.create"]}) as w:
        assert row.call(w) == {"permissions": ["tpu.nodes.get"]}


def test_an_address_in_use_is_counted_where_its_machine_stands() -> None:
    row = next(r for r in ROWS if r.path == "regions.get")
    with world() as w:
        w.create("a", node={"networkConfig": {"enableExternalIps": True}})
        w.create("b", node={"networkConfig": {"enableExternalIps": False}})
        w.grow("a")
        quotas = {q["metric"]: q for q in row.call(w)["quotas"]}
    assert quotas["IN_USE_ADDRESSES"] == {"metric": "IN_USE_ADDRESSES", "limit": 8.0, "usage": 1.0}


def test_a_wrong_permission_is_refused() -> None:
    row = next(r for r in ROWS if r.path == "projects.testIamPermissions")
    wrong = replace(row, arguments={"resource": "projects/p", "body": {"permissions": ["tpu.*"]}})
    with world() as w, refused(400, "INVALID_ARGUMENT", "not valid"):
        wrong.call(w)


def test_a_registry_says_whether_it_has_an_image() -> None:
    with world(project={"images": ["vllm/vllm-tpu:v1", "us-docker.pkg.dev/p/r/i@sha256:00"]}) as w:
        for path, http in {
            "registry-1.docker.io/v2/vllm/vllm-tpu/manifests/v1": 200,
            "registry-1.docker.io/v2/vllm/vllm-tpu/manifests/v2": 404,
            "us-docker.pkg.dev/v2/p/r/i/manifests/sha256:00": 200,
        }.items():
            assert _raw(w, "HEAD", f"/registry/{path}", None)[0] == http


def _registry_and_hub(w: World) -> tuple[str | int | None, Any]:
    """By a registry of a tag, and by the hub of a branch."""
    image = "/registry/registry-1.docker.io/v2/vllm/vllm-tpu/manifests/nightly"
    connection = HTTPConnection(w.emulator.host, timeout=DEADLINE)
    try:
        connection.request("HEAD", image)
        digest = connection.getresponse().getheader("docker-content-digest")
    finally:
        connection.close()
    return digest, _raw(w, "GET", "/hub/api/models/a/b/revision/refs%2Fpr%2F1", None)[1]["sha"]


def test_a_tag_is_another_digest_and_a_branch_another_commit_once_they_are_pushed() -> None:
    with world(project={"pushes": {"vllm/vllm-tpu:nightly": 3600, "a/b": 3600}, "models": ["a/b"]}) as w:
        first, same = _registry_and_hub(w), _registry_and_hub(w)
        w.clock.sleep(3600)
        later = _registry_and_hub(w)
        absent = _raw(w, "GET", "/hub/api/models/a/c/revision/main", None)
        exact = _raw(w, "GET", f"/hub/api/models/a/b/revision/{'0' * 40}", None)
    assert first == same
    assert not set(first) & set(later)
    assert re.fullmatch(r"sha256:facadefacade[0-9a-f]{52}", str(first[0]))
    assert re.fullmatch(r"facadefacade[0-9a-f]{28}", first[1])
    assert absent[0] == 401
    assert exact == (200, {"id": "a/b", "sha": "0" * 40})


def test_an_unknown_key_of_the_project_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(ScenarioInvalid, match="did you mean `firewalls`"):
        load_scenario({"project": {"firewall": []}}, timings=Timings())


@pytest.fixture(scope="module")
def shared() -> Iterator[World]:
    with world() as w:
        yield w


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=TREES)
def test_any_body_is_taken_or_refused(shared: World, body: Any) -> None:
    for path in (
        "/v3/projects/p:testIamPermissions",
        "/v3/projects/p:getIamPolicy",
        f"/v1/{ACCOUNT}:testIamPermissions",
        f"/v1/{SECRET}:testIamPermissions",
    ):
        for request in (body, {"permissions": body}):
            http, output = _raw(shared, "POST", path, json.dumps(request))
            assert http in (200, 400), output


def _raw(w: World, method: str, path: str, body: str | None) -> tuple[int, Any]:
    connection = HTTPConnection(w.emulator.host, timeout=DEADLINE)
    try:
        connection.request(method, path, body)
        reply = connection.getresponse()
        text = reply.read()
        return reply.status, json.loads(text) if text else None
    finally:
        connection.close()


@cache
def document(name: str) -> Mapping[str, Any]:
    tree: Mapping[str, Any] = json.loads((DOCUMENTS / f"{name}.json").read_text("utf-8"))
    return tree


def problems(body: Any, schema: str, name: str, *, at: str) -> Iterator[str]:
    """Where `body` says what the schema cannot."""
    yield from _of_properties(body, document(name)["schemas"][schema], name, at)


def _of_properties(body: Any, schema: Mapping[str, Any], name: str, at: str) -> Iterator[str]:
    if not isinstance(body, dict):
        yield f"{at}: no object"
        return
    for key, value in body.items():
        prop = schema.get("properties", {}).get(key)
        if prop is None:
            yield f"{at}.{key}: unknown"
        else:
            yield from _of_value(value, prop, name, f"{at}.{key}")


def _of_value(value: Any, prop: Mapping[str, Any], name: str, at: str) -> Iterator[str]:
    if "$ref" in prop:
        yield from problems(value, prop["$ref"], name, at=at)
    elif prop["type"] == "array":
        for i, item in enumerate(value if isinstance(value, list) else [None]):
            yield from _of_value(item, prop["items"], name, f"{at}[{i}]")
    elif prop["type"] == "object" and "properties" in prop:
        yield from _of_properties(value, prop, name, at)
    elif prop["type"] == "object":
        for key, item in value.items():
            yield from _of_value(item, prop["additionalProperties"], name, f"{at}[{key}]")
    else:
        yield from _of_scalar(value, prop, at)


def _of_scalar(value: Any, prop: Mapping[str, Any], at: str) -> Iterator[str]:
    kinds = {"string": str, "boolean": bool, "integer": int, "number": (int, float)}
    if not isinstance(value, kinds[prop["type"]]):  # type: ignore[arg-type]  # a table of types and tuples of them
        yield f"{at}: {value!r} is no {prop['type']}"
    elif prop.get("format") == "int64" and not re.fullmatch(r"-?\d+", str(value)):
        yield f"{at}: {value!r} is no int64"
    elif "enum" in prop and value not in prop["enum"]:
        yield f"{at}: {value!r} is none of the enum"
