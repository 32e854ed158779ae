"""One emulated cloud on virtual time with Google's real clients before it: what every test_cloud file starts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache, cached_property
from typing import Any, TypeVar

import pytest
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import tpu_v2
from googleapiclient.discovery import build_from_document
from googleapiclient.discovery_cache import get_static_doc
from googleapiclient.errors import HttpError

from tpudeploy import emulator
from tpudeploy.emulator import Emulator, VirtualClock

ZONE = "us-east5-b"
TYPED_TIMEOUT = 10.0


class World:
    """`alpha` and `beta` are the discovery clients of v2alpha1 and v2; `typed` is google-cloud-tpu."""

    def __init__(self, running: Emulator, clock: VirtualClock) -> None:
        self.emulator = running
        self.clock = clock
        self._made: list[Any] = []

    @cached_property
    def alpha(self) -> Any:
        return self.discovery("tpu", "v2alpha1")

    @cached_property
    def beta(self) -> Any:
        return self.discovery("tpu", "v2")

    @cached_property
    def typed(self) -> tpu_v2.TpuClient:
        client = tpu_v2.TpuClient(
            transport="rest",
            client_options=ClientOptions(api_endpoint=f"http://{self.emulator.host}"),
            credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]  # google-auth has no types here
        )
        self._made.append(client.transport)
        return client

    def create(self, name: str = "a", zone: str = ZONE, **settings: Any) -> dict[str, Any]:
        """The create operation of a spot v6e-8 unless `settings` say otherwise; `node` replaces single fields."""
        where = f"projects/{settings.pop('project', 'p')}/locations/{zone}"
        request_id = settings.pop("request_id", None)
        node = {"acceleratorType": "v6e-8", "runtimeVersion": "v2-alpha-tpuv6e"} | settings.pop("node", {})
        spec = {"parent": where, "nodeId": settings.pop("node_id", name), "node": node}
        body = {"tpu": {"nodeSpec": [spec]}, "provisioningModel": "SPOT"} | settings
        calls = self.alpha.projects().locations().queuedResources()
        operation: dict[str, Any] = calls.create(
            parent=where, queuedResourceId=name, requestId=request_id, body=body
        ).execute(num_retries=0)
        return operation

    def delete(self, name: str = "a", zone: str = ZONE, **how: Any) -> dict[str, Any]:
        calls = self.alpha.projects().locations().queuedResources()
        operation: dict[str, Any] = calls.delete(name=qr(name, zone), **how).execute(num_retries=0)
        return operation

    def get(self, name: str = "a", zone: str = ZONE) -> dict[str, Any]:
        calls = self.alpha.projects().locations().queuedResources()
        request: dict[str, Any] = calls.get(name=qr(name, zone)).execute(num_retries=0)
        return request

    def state(self, name: str = "a", zone: str = ZONE) -> str:
        """`ABSENT` for a 404."""
        try:
            return str(self.get(name, zone)["state"]["state"])
        except HttpError as error:
            if error.status_code != 404:
                raise
            return "ABSENT"

    def node(self, name: str = "a", zone: str = ZONE) -> tpu_v2.Node:
        return self.typed.get_node(name=f"projects/p/locations/{zone}/nodes/{name}", timeout=TYPED_TIMEOUT)

    def operation(self, begun: Mapping[str, Any]) -> dict[str, Any]:
        calls = self.alpha.projects().locations().operations()
        operation: dict[str, Any] = calls.get(name=begun["name"]).execute(num_retries=0)
        return operation

    def grow(self, name: str = "a", zone: str = ZONE, *, until: str = "ACTIVE", most: float = 3600.0) -> None:
        """Let time pass, a second at a time, until the slice is in this state."""
        ends = self.clock.now() + most
        while self.state(name, zone) != until:
            assert self.clock.now() < ends, f"{name} is {self.state(name, zone)}, not {until}, after {most} s"
            self.clock.sleep(1.0)

    def close(self) -> None:
        for client in self._made:
            client.close()

    def discovery(self, service: str, version: str, path: str = "") -> Any:
        """Return a client of another service, see `new_client`, which is closed at the end."""
        client = new_client(self.emulator, service, version, path)
        self._made.append(client)
        return client


def new_client(running: Emulator, service: str, version: str, path: str = "") -> Any:
    """Google's discovery client of a service, which the emulator serves under `path`. Who takes it closes it."""
    return build_from_document(
        _document(service, version),
        credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]  # google-auth has no types here
        client_options=ClientOptions(api_endpoint=f"http://{running.host}{path}"),
    )


@cache
def _document(service: str, version: str) -> Any:
    """A document of Google's, parsed once: that of Compute Engine has five million characters."""
    return json.loads(get_static_doc(service, version))


W = TypeVar("W", bound=World)
AT_ONCE = dict.fromkeys(("node_ready", "boot", "neighbour"), 0)
QUICK = AT_ONCE | {"queued": 1, "waiting": 1, "provisioning": 4, "suspending": 2, "preempted": 2, "deleting": 2}


def world(*trouble: Mapping[str, Any], **settings: Any) -> AbstractContextManager[World]:
    return running_world(World, *trouble, **settings)


@contextmanager
def running_world(kind: type[W], *trouble: Mapping[str, Any], **settings: Any) -> Iterator[W]:
    """A cloud of simulated nodes with this trouble. Its times are short and exact: they are what is tested."""
    clock = VirtualClock()
    scenario = {"nodes": "simulated", "jitter": 0, "timings": QUICK, "trouble": list(trouble)} | settings
    with emulator.running(clock=clock, scenario=scenario) as running, closing(kind(running, clock)) as cloud_world:
        yield cloud_world


def qr(name: str = "a", zone: str = ZONE) -> str:
    return f"projects/p/locations/{zone}/queuedResources/{name}"


def finished(begun: Any) -> Any:
    """What the typed client's operation ends with, without waiting longer than a broken test may."""
    return begun.result(timeout=TYPED_TIMEOUT)


@contextmanager
def refused(http: int, status: str, text: str = "") -> Iterator[None]:
    """The discovery client is refused with this HTTP code, canonical status and text."""
    with pytest.raises(HttpError) as caught:
        yield
    error = _error(caught.value)
    assert (error["code"], error["status"]) == (http, status), error
    assert text in error["message"], error["message"]


def _error(raised: HttpError) -> dict[str, Any]:
    error: dict[str, Any] = json.loads(raised.content)["error"]
    return error
