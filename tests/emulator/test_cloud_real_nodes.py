"""Granted nodes that are real: a startup script runs in bash and its word comes back through the cloud."""

from __future__ import annotations

from typing import Any

from emulator.cloud_world import QUICK, ZONE, World, world
from real_time import DEADLINE

SCRIPT = """#! /bin/bash
say() { curl -s -X PUT --data "$2" -H "Metadata-Flavor: Google" \\
  "http://metadata.google.internal/computeMetadata/v1/instance/guest-attributes/tpudeploy/$1"; }
echo "boot of $(hostname 2>/dev/null || true)"
say phase booted
sleep 30
say phase serving
say spec "$(curl -s -H 'Metadata-Flavor: Google' \\
  http://metadata.google.internal/computeMetadata/v1/instance/attributes/tpudeploy-spec)"
"""


def report(w: World) -> dict[str, str]:
    request = {"name": f"projects/p/locations/{ZONE}/nodes/a", "query_path": "tpudeploy/"}
    response = w.typed.get_guest_attributes(request=request, timeout=DEADLINE)
    return {item.key: item.value for item in response.guest_attributes[0].query_value.items}


def up(w: World) -> dict[str, Any]:
    metadata = {"startup-script": SCRIPT, "tpudeploy-spec": "f00"}
    w.create(node={"metadata": metadata})
    w.grow()
    return metadata


def test_a_granted_node_runs_its_startup_script_on_the_shared_clock() -> None:
    with world(nodes="real") as w:
        up(w)
        assert report(w) == {"phase": "booted"}
        w.clock.sleep(29)
        assert report(w) == {"phase": "booted"}
        w.clock.sleep(1)
        assert report(w) == {"phase": "serving", "spec": "f00"}
        assert "boot of" in w.emulator.log("a")


def test_a_reset_runs_the_script_again_and_sees_patched_metadata() -> None:
    with world(nodes="real", timings=QUICK | {"reset": 10}) as w:
        metadata = up(w)
        w.clock.sleep(30)
        nodes = w.alpha.projects().locations().nodes()
        body = {"metadata": metadata | {"tpudeploy-spec": "bar"}}
        nodes.patch(name=f"projects/p/locations/{ZONE}/nodes/a", updateMask="metadata", body=body).execute()
        w.clock.sleep(5)
        w.alpha.projects().locations().queuedResources().reset(
            name=f"projects/p/locations/{ZONE}/queuedResources/a", body={}
        ).execute()
        w.clock.sleep(10)
        assert report(w)["phase"] == "booted"
        w.clock.sleep(30)
        assert report(w)["spec"] == "bar"


def test_a_preempted_node_stops_and_its_slice_can_be_deleted_and_had_again() -> None:
    with world(nodes="real") as w:
        up(w)
        w.emulator.preempt("a")
        w.grow(until="SUSPENDED")
        w.delete()
        w.grow(until="ABSENT")
        up(w)
        assert report(w) == {"phase": "booted"}
