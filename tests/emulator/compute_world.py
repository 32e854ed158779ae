"""One emulated cloud on virtual time with Google's real client of Compute Engine before it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Any

import pytest
from emulator.cloud_world import ZONE, World, running_world
from googleapiclient.errors import HttpError

FAMILY = "ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e"
SCHEDULING: Mapping[str, Mapping[str, Any]] = {
    "STANDARD": {"automaticRestart": True},
    "SPOT": {"automaticRestart": False, "instanceTerminationAction": "DELETE"},
    "FLEX_START": {
        "automaticRestart": False,
        "instanceTerminationAction": "DELETE",
        "maxRunDuration": {"seconds": "14400"},
    },
    "RESERVATION_BOUND": {},
}
RESERVED = {
    "consumeReservationType": "SPECIFIC_RESERVATION",
    "key": "compute.googleapis.com/reservation-name",
    "values": ["r"],
}


def body(name: str = "a", zone: str = ZONE, *, model: str = "SPOT", **settings: Any) -> dict[str, Any]:
    """The request of an instance with one chip, a spot one unless `model` says otherwise.

    `machine`, `metadata` and `scheduling` replace what their names say; other settings are fields of the request.
    """
    machine, metadata = settings.pop("machine", "ct6e-standard-1t"), settings.pop("metadata", {})
    scheduling = SCHEDULING[model] | settings.pop("scheduling", {})
    disk = {
        "diskSizeGb": "200",
        "diskType": f"zones/{zone}/diskTypes/hyperdisk-balanced",
        "sourceImage": f"projects/ubuntu-os-accelerator-images/global/images/family/{FAMILY}",
    }
    affinity = RESERVED if model == "RESERVATION_BOUND" else {"consumeReservationType": "NO_RESERVATION"}
    return {
        "name": name,
        "machineType": f"zones/{zone}/machineTypes/{machine}",
        "disks": [{"boot": True, "autoDelete": True, "initializeParams": disk}],
        "networkInterfaces": [{"network": "global/networks/default", "accessConfigs": [{"type": "ONE_TO_ONE_NAT"}]}],
        "serviceAccounts": [{"email": "default", "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}],
        "metadata": {"items": [{"key": key, "value": value} for key, value in metadata.items()]},
        "scheduling": {"provisioningModel": model, "onHostMaintenance": "TERMINATE", **scheduling},
        "reservationAffinity": affinity,
        **settings,
    }


class ComputeWorld(World):
    @cached_property
    def compute(self) -> Any:
        return self.discovery("compute", "v1", "/compute/v1/")

    @cached_property
    def instances(self) -> Any:
        """Their collection, of which the client would make every method and its text anew."""
        return self.compute.instances()

    def insert(self, name: str = "a", zone: str = ZONE, **settings: Any) -> dict[str, Any]:
        """The insert's operation; the settings are those of `body`, and `request_id`."""
        request_id = settings.pop("request_id", None)
        return self.execute("insert", zone, requestId=request_id, body=body(name, zone, **settings))

    def call(self, method: str, name: str = "a", zone: str = ZONE, **parameters: Any) -> dict[str, Any]:
        """What a method of one instance answers."""
        return self.execute(method, zone, instance=name, **parameters)

    def execute(self, method: str, zone: str = ZONE, **parameters: Any) -> dict[str, Any]:
        call = getattr(self.instances, method)
        answer: dict[str, Any] = call(project="p", zone=zone, **parameters).execute(num_retries=0)
        return answer

    def listed(self, expression: str | None = None) -> list[str]:
        """The names of the instances of all zones."""
        items = self.instances.aggregatedList(project="p", filter=expression).execute()["items"]
        return [one["name"] for scope in items.values() for one in scope.get("instances", ())]

    def status(self, name: str = "a", zone: str = ZONE) -> str:
        """`ABSENT` for a 404."""
        try:
            return str(self.call("get", name, zone)["status"])
        except HttpError as error:
            if error.status_code != 404:
                raise
            return "ABSENT"

    def finish(self, begun: Mapping[str, Any]) -> dict[str, Any]:
        """An operation as it is now."""
        zone = str(begun["zone"]).rpartition("/")[2]
        call = self.compute.zoneOperations().get(project="p", zone=zone, operation=begun["name"])
        answer: dict[str, Any] = call.execute(num_retries=0)
        return answer

    def error(self, begun: Mapping[str, Any]) -> dict[str, Any]:
        """The one error of an operation that is over."""
        operation = self.finish(begun)
        assert operation["status"] == "DONE", operation
        (row,) = operation["error"]["errors"]
        return dict(row)

    def until(self, status: str, name: str = "a", zone: str = ZONE, *, most: float = 3600.0) -> list[str]:
        """Let time pass, a second at a time, until the instance has this status; return those on the way."""
        ends, statuses = self.clock.now() + most, [self.status(name, zone)]
        while statuses[-1] != status:
            assert self.clock.now() < ends, f"{name} is {statuses[-1]}, not {status}, after {most} s"
            self.clock.sleep(1.0)
            if (now := self.status(name, zone)) != statuses[-1]:
                statuses.append(now)
        return statuses


def world(*trouble: Mapping[str, Any], **settings: Any) -> AbstractContextManager[ComputeWorld]:
    return running_world(ComputeWorld, *trouble, **settings)


@contextmanager
def refused(http: int, reason: str, text: str = "") -> Iterator[None]:
    """The client is refused with this HTTP code, reason and text."""
    with pytest.raises(HttpError) as caught:
        yield
    error = json.loads(caught.value.content)["error"]
    assert (error["code"], error["errors"][0]["reason"]) == (http, reason), error
    assert text in error["message"], error["message"]
