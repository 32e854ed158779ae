"""Machines of instances that are real: the plain image, its script, its serial port, and what the request gave it."""

from __future__ import annotations

from typing import Any

import pytest
from emulator.cloud_world import QUICK
from emulator.compute_world import ComputeWorld, body, refused, world

METADATA_SERVER = "http://metadata.google.internal/computeMetadata/v1/instance"
PRELUDE = f"""#! /bin/bash
value() {{ curl -sS -f -H "Metadata-Flavor: Google" "{METADATA_SERVER}/$1"; }}
say() {{ curl -sS -f -X PUT --data "$2" -H "Metadata-Flavor: Google" "{METADATA_SERVER}/guest-attributes/tpudeploy/$1"; }}
"""
ENABLED = {"enable-guest-attributes": "TRUE"}


def up(w: ComputeWorld, script: str, *, metadata: Any = ENABLED, **settings: Any) -> str:
    """What the startup script printed, as far as it gets without time."""
    w.insert(metadata={"startup-script": PRELUDE + script, **metadata}, **settings)
    w.until("RUNNING")
    return serial(w)["contents"]


def serial(w: ComputeWorld, **parameters: Any) -> dict[str, str]:
    return w.call("getSerialPortOutput", **parameters)


def attributes(w: ComputeWorld, path: str = "tpudeploy/") -> dict[str, str]:
    items = w.call("getGuestAttributes", queryPath=path)["queryValue"]["items"]
    return {item["key"]: item["value"] for item in items}


def test_the_image_has_no_docker_until_the_script_installs_it() -> None:
    script = "docker --version\napt-get update -q && apt-get install -y docker.io\ndocker version >/dev/null && say docker yes"
    with world(nodes="real") as w:
        output = up(w, script)
        assert "docker: command not found" in output
        assert attributes(w) == {"docker": "yes"}
        assert attributes(w, "tpudeploy/docker") == {"docker": "yes"}
        with refused(404, "notFound", "Guest Attribute"):
            attributes(w, "tpudeploy/other")


def test_an_image_does_not_fit_on_the_disk_that_nobody_sized() -> None:
    small = body()["disks"]
    del small[0]["initializeParams"]["diskSizeGb"]
    with world(nodes="real") as w:
        output = up(w, "apt-get install -y docker.io\ndocker pull vllm/vllm-tpu:v0.32.0", disks=small)
        assert "no space left on device" in output
        assert w.call("get")["disks"][0]["diskSizeGb"] == "10"


def test_a_simulated_machine_fails_on_a_small_disk_too() -> None:
    small = body()["disks"]
    small[0]["initializeParams"]["diskSizeGb"] = "10"
    with world() as w:
        w.insert(disks=small, metadata=ENABLED)
        w.until("RUNNING")
        assert '"detail": "no space left on device"' in attributes(w)["report"]


def test_guest_attributes_must_be_enabled() -> None:
    with world(nodes="real") as w:
        assert "403" in up(w, "say phase booted", metadata={})
        with refused(404, "notFound"):
            attributes(w)


@pytest.mark.parametrize(("accounts", "works"), [(body()["serviceAccounts"], True), ([], False)])
def test_a_machine_has_a_token_for_the_scopes_of_its_request_alone(accounts: Any, works: bool) -> None:
    script = 'value service-accounts/default/token >/dev/null && say token "$(value service-accounts/default/scopes)"'
    with world(nodes="real") as w:
        output = up(w, script, serviceAccounts=accounts)
        assert ("404" in output) is not works
        if works:
            assert attributes(w) == {"token": "https://www.googleapis.com/auth/cloud-platform"}


def test_the_metadata_are_the_request_s_and_not_those_of_cloud_tpu() -> None:
    script = 'say keys "$(value attributes/ | tr "\\n" " ")"\nsay name "$(value name) $(hostname)"'
    with world(nodes="real") as w:
        up(w, script)
        assert attributes(w) == {"keys": "enable-guest-attributes startup-script ", "name": "a a"}


def test_the_serial_port_has_what_the_script_prints_from_where_one_reads_on() -> None:
    with world(nodes="real") as w:
        assert "startup-script: one\n" in up(w, "echo one\nsleep 30\necho two")
        first = serial(w)
        assert serial(w, start=int(first["next"]))["contents"] == ""
        w.clock.sleep(30)
        later = serial(w, start=int(first["next"]))
        assert (later["start"], later["contents"].endswith("startup-script: two\n")) == (first["next"], True)
        assert serial(w, start=-4)["contents"] == "two\n"
        assert serial(w, port=2)["contents"] == ""


def test_a_reset_runs_the_script_again_with_the_metadata_of_then() -> None:
    with world(nodes="real", timings=QUICK | {"reset": 10}) as w:
        up(w, 'say spec "$(value attributes/spec)"', metadata={**ENABLED, "spec": "old"})
        assert attributes(w) == {"spec": "old"}
        metadata = w.call("get")["metadata"]
        for item in metadata["items"]:
            item["value"] = "new" if item["key"] == "spec" else item["value"]
        w.call("setMetadata", body=metadata)
        w.clock.sleep(5)
        operation = w.call("reset")
        w.clock.sleep(10)
        assert w.finish(operation)["status"] == "DONE"
        assert attributes(w) == {"spec": "new"}


def test_a_machine_that_stopped_answers_nothing_and_starts_from_its_disk() -> None:
    script = 'echo boot >> "$TPUDEPLOY_ROOT/var/lib/boots"; touch "$TPUDEPLOY_ROOT/run/in-memory"'
    script += '; say phase "$(wc -l < "$TPUDEPLOY_ROOT/var/lib/boots") boots"'
    with world(nodes="real") as w:
        up(w, f'[ -e "$TPUDEPLOY_ROOT/run/in-memory" ] && exit 1\n{script}')
        with refused(400, "resourceNotReady"):
            w.call("start")
        w.call("stop")
        w.until("TERMINATED")
        with refused(404, "notFound"):
            attributes(w)
        with refused(400, "resourceNotReady"):
            w.call("reset")
        w.call("start")
        w.until("RUNNING")
        assert attributes(w) == {"phase": "2 boots"}
        w.call("stop")
        w.until("TERMINATED")
        w.call("delete")
        w.until("ABSENT")
        w.insert(metadata={"startup-script": PRELUDE + script, **ENABLED})
        w.until("RUNNING")
        assert attributes(w) == {"phase": "1 boots"}


def test_an_instance_is_reached_at_its_address_as_a_node_is() -> None:
    with world() as w:
        w.insert("a")
        w.insert("b", networkInterfaces=[{"network": "global/networks/default"}])
        w.until("RUNNING")
        (interface,) = w.call("get")["networkInterfaces"]
        assert interface["accessConfigs"][0]["natIP"] == interface["networkIP"]
        w.until("RUNNING", "b")
        assert "accessConfigs" not in w.call("get", "b")["networkInterfaces"][0]
