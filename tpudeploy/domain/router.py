"""The router in front of the replicas of a deployment, and the replicas that take requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class RouterKind(StrEnum):
    """A router that tpudeploy can configure."""

    SMG = "smg"
    HAPROXY = "haproxy"
    ENVOY = "envoy"


class RouterHost(StrEnum):
    """Where a router runs: beside tpudeploy, on a VM of its own, or where the user runs it as rendered."""

    LOCAL = "local"
    VM = "vm"
    OWN = "own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Router:
    """A router. Clients reach it at `address` and `port`, and a local one listens there.

    One on a VM has a `machine` type, and its address is "" until the VM has one.
    `model` is the name of the model in requests. `policy` is the router's own word, None for its default here.
    """

    kind: RouterKind
    host: RouterHost
    address: str
    port: int
    policy: str | None
    model: str
    machine: str = ""

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.port}"

    def to_dict(self) -> dict[str, object]:
        """Return the router as the endpoint document has it."""
        policy = {} if self.policy is None else {"policy": self.policy}
        place = {"kind": self.kind.value, "host": self.host.value, "address": self.address, "port": self.port}
        return {**place, **policy, "model": self.model}


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedReplica:
    """A slice that takes requests. `name` is that of its slice, and `url` is its server's address without a path."""

    name: str
    url: str

    @property
    def host(self) -> str:
        return self.url.rpartition("//")[2].rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


def published_router(document: Mapping[str, Any]) -> Router | None:
    """Return the router that an endpoint document names, or None. Raise ValueError for one that is not understood."""
    row = document.get("router")
    if row is None:
        return None
    try:
        return Router(
            kind=RouterKind(row["kind"]),
            host=RouterHost(row["host"]),
            address=str(row["address"]),
            port=int(row["port"]),
            policy=None if row.get("policy") is None else str(row["policy"]),
            model=str(row["model"]),
        )
    except (AttributeError, KeyError, TypeError) as cause:
        raise ValueError(f"`router` has another form: {cause!r}") from cause


def published_replicas(document: Mapping[str, Any]) -> tuple[RoutedReplica, ...]:
    """Return the replicas that take requests by an endpoint document. Raise ValueError for a list in another form."""
    try:
        return tuple(RoutedReplica(name=row["slice"], url=row["url"]) for row in document.get("replicas", []))
    except (KeyError, TypeError) as cause:
        raise ValueError(f"`replicas` has another form: {cause!r}") from cause
