"""What Google refuses in a request body, and how lists, operations and names read: through its own clients."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any
from urllib.request import urlopen

import pytest
from emulator.cloud_world import ZONE, World, qr, refused, world
from google.api_core import exceptions
from google.cloud import tpu_v2
from googleapiclient.errors import HttpError
from real_time import DEADLINE

PARENT = f"projects/p/locations/{ZONE}"
NODE = {"acceleratorType": "v6e-8", "runtimeVersion": "v2-alpha-tpuv6e"}


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"qeueingPolicy": {}}, "Unknown name \"qeueingPolicy\" at 'queued_resource': Cannot find field."),
        (
            {"node": {"acceleratorTyp": "v6e-8"}},
            "Unknown name \"acceleratorTyp\" at 'queued_resource.tpu.node_spec[0].node': Cannot find field.",
        ),
        ({"provisioningModel": "CHEAP"}, "Invalid value at 'queued_resource.provisioning_model'"),
        ({"provisioningModel": 17}, "Invalid value at 'queued_resource.provisioning_model'"),
        (
            {"node": {"tags": "x", "runtimeVersion": 5}},
            "Invalid value at 'queued_resource.tpu.node_spec[0].node.runtime_version' (TYPE_STRING), 5",
        ),
        ({"node": {"networkConfig": {"enableExternalIps": "yes"}}}, 'enable_external_ips\' (TYPE_BOOL), "yes"'),
        ({"node": {"networkConfig": {"queueCount": True}}}, "queue_count' (TYPE_INT32), true"),
        ({"node": {"metadata": ["a"]}}, "metadata'"),
        ({"node": {"metadata": {"a": 1}}}, "metadata[a]' (TYPE_STRING), 1"),
        ({"node": {"bootDiskConfig": {"diskSizeGb": "big"}}}, "disk_size_gb'"),
        (
            {"runDuration": {"maxRunDuration": "4h"}},
            'max_run_duration\' (type.googleapis.com/google.protobuf.Duration), "4h"',
        ),
        ({"queueingPolicy": {"validUntilTime": "tomorrow"}}, "google.protobuf.Timestamp"),
        ({"queueingPolicy": "soon"}, "Invalid value at 'queued_resource.queueing_policy'"),
        ({"spot": {}, "guaranteed": {}}, "oneof field 'tier' is already set"),
        ({"queueingPolicy": {"validUntilDuration": "9s", "validAfterDuration": "1s"}}, "start_timing_constraints"),
    ],
)
def test_a_body_that_the_api_does_not_know_is_refused(settings: dict[str, Any], text: str) -> None:
    with world() as w, refused(400, "INVALID_ARGUMENT", text):
        w.create(**settings)


def test_every_problem_of_a_body_is_named_at_once() -> None:
    with world() as w, pytest.raises(HttpError) as caught:
        w.create(one=1, two=2)
    assert caught.value.reason.count("Cannot find field") == 2


@pytest.mark.parametrize(
    "settings", [{"provisioningModel": "SPOT"}, {"runDuration": {"maxRunDuration": "60s"}}, {"bestEffort": {}}]
)
def test_fields_of_the_alpha_are_unknown_to_v2(settings: dict[str, Any]) -> None:
    body = {"tpu": {"nodeSpec": [{"parent": PARENT, "nodeId": "a", "node": NODE}]}} | settings
    with world() as w, refused(400, "INVALID_ARGUMENT", "Cannot find field"):
        w.beta.projects().locations().queuedResources().create(parent=PARENT, queuedResourceId="a", body=body).execute()


def test_v2_does_not_show_what_only_the_alpha_can_say() -> None:
    with world() as w:
        w.create(runDuration={"maxRunDuration": "60s"}, node={"bootDiskConfig": {"diskSizeGb": "200"}})
        response = w.beta.projects().locations().queuedResources().get(name=qr()).execute()
        assert "runDuration" in w.get()
        assert "runDuration" not in response
        assert "bootDiskConfig" not in response["tpu"]["nodeSpec"][0]["node"]


def test_the_typed_client_reads_operations_of_the_alpha() -> None:
    with world() as w:
        operation = w.create(runDuration={"maxRunDuration": "60s"}, node={"bootDiskConfig": {"diskSizeGb": "200"}})
        w.clock.sleep(1)
        assert w.typed.get_operation({"name": operation["name"]}).done


def test_enums_are_taken_as_names_and_as_numbers_and_fields_in_either_spelling() -> None:
    with world() as w:
        disks = [{"sourceDisk": "d", "mode": 2}]
        config = {"type": 11, "topology": "2x2"}
        w.create("a", node={"dataDisks": disks})
        w.create("b", provisioningModel=2, queueing_policy={"valid_until_duration": "60s"})
        assert w.get("a")["tpu"]["nodeSpec"][0]["node"]["dataDisks"][0]["mode"] == "READ_ONLY"
        assert w.get("b")["provisioningModel"] == "SPOT"
        assert w.get("b")["queueingPolicy"] == {"validUntilDuration": "60s"}
        body = {
            "tpu": {
                "nodeSpec": [
                    {
                        "parent": PARENT,
                        "nodeId": "c",
                        "node": {"acceleratorConfig": config, "runtimeVersion": "v2-alpha-tpuv6e"},
                    }
                ]
            }
        }
        w.alpha.projects().locations().queuedResources().create(
            parent=PARENT, queuedResourceId="c", body=body
        ).execute()
        w.grow("c")
        assert w.node("c").accelerator_type == "v6e-4"


def test_the_typed_client_sends_enums_as_numbers() -> None:
    with world() as w:
        node = tpu_v2.Node(
            runtime_version="v2-alpha-tpuv6e",
            accelerator_config=tpu_v2.AcceleratorConfig(type_=tpu_v2.AcceleratorConfig.Type.V6E, topology="1x1"),
        )
        spec = tpu_v2.QueuedResource.Tpu.NodeSpec(parent=PARENT, node_id="a", node=node)
        request = tpu_v2.QueuedResource(tpu={"node_spec": [spec]})
        w.typed.create_queued_resource(parent=PARENT, queued_resource=request, queued_resource_id="a", timeout=DEADLINE)
        w.grow()
        assert w.node().accelerator_type == "v6e-1"


def test_what_only_the_service_may_say_is_dropped_from_a_request() -> None:
    with world() as w:
        w.create(state={"state": "ACTIVE"}, createTime="2020-01-01T00:00:00Z", node={"queuedResource": "x"})
        assert w.state() == "CREATING"
        assert not w.get()["createTime"].startswith("2020")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"name": "Upper"}, "queued_resource_id"),
        ({"node_id": "under_score"}, "node_id"),
        ({"node": {"acceleratorConfig": {"type": "V6E", "topology": "2x4"}}}, "accelerator_type"),
        ({"node": {"runtimeVersion": "v9"}}, 'runtime version "v9"'),
        ({"node": {"labels": {"Team": "x"}}}, "label"),
        ({"node": {"labels": {"team": "X"}}}, "label"),
        ({"node": {"description": "x" * 513}}, "description"),
        ({"node": {"networkConfig": {}, "networkConfigs": []}}, "network_config"),
        ({"node": {"metadata": {"bad key": "x"}}}, "metadata key"),
        ({"node": {"metadata": {"a": "x" * 262_145}}}, "at most 262144 bytes"),
        ({"node": {"metadata": {"a": "é" * 131_073}}}, "at most 262144 bytes"),
        ({"node": {"metadata": {"a": "x" * 262_144, "b": "x" * 262_144}}}, "Metadata is too large"),
        ({"tpu": {"nodeSpec": []}}, "Exactly one node spec"),
        (
            {"tpu": {"nodeSpec": [{"parent": "projects/p/locations/us-east1-d", "nodeId": "a", "node": NODE}]}},
            "does not match",
        ),
        ({"tpu": {"nodeSpec": [{"parent": PARENT, "node": NODE}]}}, "Exactly one of node_id"),
    ],
)
def test_a_request_against_the_rules_is_refused(settings: dict[str, Any], text: str) -> None:
    with world() as w, refused(400, "INVALID_ARGUMENT", text):
        w.create(**settings)


def test_metadata_up_to_the_limit_is_taken() -> None:
    with world() as w:
        w.create(node={"metadata": {"a": "x" * 262_144, "b": "x" * 261_000}})
        w.grow()
        assert len(w.node().metadata["a"]) == 262_144


def test_several_nodes_of_one_request_are_numbered() -> None:
    with world() as w:
        spec = {"parent": PARENT, "multiNodeParams": {"nodeCount": 2, "nodeIdPrefix": "part"}, "node": NODE}
        w.create(tpu={"nodeSpec": [spec]})
        w.grow()
        assert [n.name.rpartition("/")[2] for n in w.typed.list_nodes(parent=PARENT, timeout=DEADLINE)] == [
            "part-0",
            "part-1",
        ]


@pytest.mark.parametrize(
    "settings", [{"provisioningModel": "STANDARD"}, {"provisioningModel": "PROVISIONING_MODEL_UNSPECIFIED"}]
)
def test_spot_without_its_model_is_refused_by_the_alpha(settings: dict[str, Any]) -> None:
    text = "STANDARD provisioning model is incompatible with spot requests"
    with world() as w, refused(400, "INVALID_ARGUMENT", text):
        w.create(spot={}, **settings)


def test_spot_is_taken_with_its_model() -> None:
    with world() as w:
        w.create(spot={})
        w.grow()
        assert w.node().scheduling_config.spot


def test_a_zone_without_tpus_and_a_type_that_is_not_in_a_zone_are_told_apart() -> None:
    with world(offers={"us-west1-c": ["v6e-1"]}) as w:
        with refused(400, "INVALID_ARGUMENT", 'The requested zone "asia-northeast1-a" is not supported.'):
            w.create(zone="asia-northeast1-a")
        with refused(400, "INVALID_ARGUMENT", 'accelerator type, "v6e-8", could not be found'):
            w.create(zone="us-west1-c")
        w.create("b", zone="us-west1-c", node={"acceleratorType": "v6e-1"})


def test_flex_start_where_it_is_not_offered_fails_in_the_operation() -> None:
    with world() as w:
        operation = w.create(zone="asia-east1-c", provisioningModel="FLEX_START")
        w.clock.sleep(1)
        error = w.operation(operation)["error"]
        assert error["code"] == 3
        assert (
            error["message"]
            == 'FLEX_START provisioning model is not supported for accelerator type "v6e-8" in location "asia-east1-c"'
        )


def test_names_are_unique_in_a_zone_for_requests_and_for_nodes() -> None:
    with world() as w:
        w.create("a")
        with refused(409, "ALREADY_EXISTS", qr()):
            w.create("a")
        with refused(409, "ALREADY_EXISTS", "nodes/a"):
            w.create("b", node_id="a")
        w.create("a", zone="us-east5-a")
        w.create("a", project="other")


def test_the_same_request_id_gives_the_same_operation() -> None:
    with world() as w:
        first = w.create(request_id="11111111-1111-4111-8111-111111111111")
        again = w.create(request_id="11111111-1111-4111-8111-111111111111")
        assert again["name"] == first["name"]
        with refused(409, "ALREADY_EXISTS"):
            w.create(request_id="22222222-2222-4222-8222-222222222222")


def test_projects_do_not_see_each_other() -> None:
    with world() as w:
        w.create(project="other")
        assert w.state() == "ABSENT"
        listed = w.alpha.projects().locations().queuedResources().list(parent="projects/p/locations/-").execute()
        assert listed == {"queuedResources": []}


def test_lists_come_in_pages_over_one_zone_or_all() -> None:
    with world() as w:
        for index in range(5):
            w.create(f"a{index}", zone=("us-east5-a", "us-east5-b")[index % 2])
        calls = w.alpha.projects().locations().queuedResources()
        request, pages = calls.list(parent="projects/p/locations/-", pageSize=2), []
        while request is not None:
            answer = request.execute()
            pages.append([row["name"].rpartition("/")[2] for row in answer["queuedResources"]])
            request = calls.list_next(request, answer)
        assert pages == [["a0", "a2"], ["a4", "a1"], ["a3"]]
        assert len(calls.list(parent=PARENT).execute()["queuedResources"]) == 2
        with refused(400, "INVALID_ARGUMENT", "page token"):
            calls.list(parent=PARENT, pageToken="nonsense").execute()
        with refused(400, "INVALID_ARGUMENT", "page_size"):
            calls.list(parent=PARENT, pageSize=-1).execute()


def test_the_typed_client_pages_by_itself() -> None:
    with world() as w:
        types = w.typed.list_accelerator_types(request={"parent": PARENT, "page_size": 3}, timeout=DEADLINE)
        assert "v6e-256" in [row.type_ for row in types]
        assert len([r for r in w.emulator.requests if "acceleratorTypes" in r.path]) > 2


def test_the_catalogue_is_listed_as_google_lists_it() -> None:
    with world() as w:
        locations = w.typed.list_locations({"name": "projects/p"}).locations
        assert ZONE in [location.location_id for location in locations]
        assert w.typed.get_location({"name": PARENT}).labels["cloud.googleapis.com/region"] == "us-east5"
        one = w.typed.get_accelerator_type(name=f"{PARENT}/acceleratorTypes/v6e-8", timeout=DEADLINE)
        assert (one.type_, one.accelerator_configs[0].topology) == ("v6e-8", "2x4")
        runtime = w.typed.get_runtime_version(name=f"{PARENT}/runtimeVersions/v2-alpha-tpuv6e", timeout=DEADLINE)
        assert runtime.version == "v2-alpha-tpuv6e"
        everywhere = w.alpha.projects().locations().runtimeVersions().list(parent="projects/p/locations/-").execute()
        assert len(everywhere["runtimeVersions"]) > 18
        with pytest.raises(exceptions.NotFound):
            w.typed.get_accelerator_type(name=f"{PARENT}/acceleratorTypes/v9-8", timeout=DEADLINE)
        with pytest.raises(exceptions.NotFound):
            w.typed.get_runtime_version(name=f"{PARENT}/runtimeVersions/v9", timeout=DEADLINE)
        with pytest.raises(exceptions.Forbidden):
            w.typed.get_location({"name": "projects/p/locations/mars-1-a"})
        with pytest.raises(exceptions.Forbidden):
            list(w.typed.list_accelerator_types(parent="projects/p/locations/mars-1-a", timeout=DEADLINE))


def test_operations_are_listed_cancelled_and_forgotten() -> None:
    with world() as w:
        name = w.create()["name"]
        calls = w.alpha.projects().locations().operations()
        assert [row["name"] for row in calls.list(name=PARENT).execute()["operations"]] == [name]
        assert name.startswith(f"{PARENT}/operations/operation-")
        calls.cancel(name=name).execute()
        response = calls.get(name=name).execute()
        assert response["metadata"]["cancelRequested"]
        assert (response["metadata"]["verb"], response["metadata"]["target"]) == ("create", qr())
        calls.delete(name=name).execute()
        with refused(404, "NOT_FOUND"):
            calls.get(name=name).execute()


def test_what_is_not_emulated_says_so() -> None:
    with world() as w, refused(501, "UNIMPLEMENTED", "The emulator does not serve"):
        w.alpha.projects().locations().generateServiceIdentity(parent=PARENT, body={}).execute()


def test_a_method_of_a_neighbour_that_is_not_emulated_says_so_too() -> None:
    with world() as w:
        assert raw(w, "GET", "/v1/projects/p/secrets/hf-token")["status"] == "UNIMPLEMENTED"
        assert w.emulator.unsupported == ("GET /v1/projects/p/secrets/hf-token",)
        assert raw(w, "GET", "/v1/projects/p/nonsense/x")["status"] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"/v2/{PARENT}/nodes?pagesize=3"),
        ("POST", f"/v2alpha1/{PARENT}/queuedResources?queuedResourceID=a"),
        ("GET", "/v1beta1/projects/p/services/tpu.googleapis.com/consumerQuotaMetrics?views=FULL"),
    ],
)
def test_a_parameter_that_google_does_not_have_is_refused(method: str, path: str) -> None:
    with world() as w:
        error = raw(w, method, path)
    name = path.partition("?")[2].partition("=")[0]
    assert error["status"] == "INVALID_ARGUMENT"
    assert f'Unknown name "{name}": Cannot bind query parameter' in error["message"]


def test_a_field_that_google_does_not_have_is_refused_by_a_neighbour() -> None:
    with world() as w:
        error = raw(w, "POST", "/v2/entries:list", {"resourceNames": ["projects/p"], "filters": "x"})
    assert 'Unknown name "filters"' in error["message"]


def raw(w: World, method: str, path: str, body: Any = None) -> Any:
    """Send a request as no client of Google's would, and return the error."""
    host, _, port = w.emulator.host.partition(":")
    connection = HTTPConnection(host, int(port), timeout=DEADLINE)
    connection.request(method, path, None if body is None else json.dumps(body))
    answer = connection.getresponse()
    error = json.loads(answer.read())["error"]
    connection.close()
    return error


def test_the_emulator_says_what_it_is() -> None:
    with world() as w, urlopen(f"http://{w.emulator.host}/") as answer:
        assert answer.headers["Server"].strip() == "tpudeploy-emulator"
        assert "emulator" in answer.read().decode()


def test_what_is_no_json_or_no_path_is_refused() -> None:
    with world() as w:
        import httplib2

        client = httplib2.Http()
        for path, body, http in ((f"/v2/{PARENT}/queuedResources", "{", 400), ("/v3/x", "{}", 404), ("/v2/x", "", 404)):
            response, content = client.request(f"http://{w.emulator.host}{path}", "POST", body=body)
            assert response.status == http
            assert json.loads(content)["error"]["code"] == http
        client.close()


@pytest.mark.parametrize(
    ("fields", "keys"),
    [
        ("queuedResources(name,state/state),nextPageToken", {"name", "state"}),
        ("queuedResources/createTime", {"createTime"}),
        ("queuedResources(tpu(nodeSpec(nodeId)))", {"tpu"}),
        ("queuedResources(*)", {"name", "createTime", "state", "tpu", "provisioningModel"}),
        ("*", {"name", "createTime", "state", "tpu", "provisioningModel"}),
    ],
)
def test_a_partial_response_has_what_its_fields_name(fields: str, keys: set[str]) -> None:
    with world() as w:
        w.create()
        calls = w.alpha.projects().locations().queuedResources()
        (response,) = calls.list(parent=PARENT, fields=fields).execute()["queuedResources"]
        assert set(response) == keys


def test_of_a_partial_response_nothing_else_is_shown_below_a_name() -> None:
    with world() as w:
        w.create()
        calls = w.alpha.projects().locations().queuedResources()
        page = calls.list(parent=PARENT, fields="queuedResources(state/state,tpu/nodeSpec/nodeId)").execute()
        assert page == {"queuedResources": [{"state": {"state": "CREATING"}, "tpu": {"nodeSpec": [{"nodeId": "a"}]}}]}


@pytest.mark.parametrize("fields", ["nodes(name)", "queuedResources(nme)", "queuedResources(name", "a//b", "a b", ")"])
def test_fields_that_there_are_not_are_refused(fields: str) -> None:
    with world() as w:
        calls = w.alpha.projects().locations().queuedResources()
        with pytest.raises(HttpError) as refused:
            calls.list(parent=PARENT, fields=fields).execute()
        assert refused.value.status_code == 400
