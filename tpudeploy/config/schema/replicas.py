"""`scale` and `router`: the bounds within which the number of replicas changes, and the router in front of them."""

from typing import Annotated, Literal

from pydantic import Field

from tpudeploy.config.schema.base import Form, Section, Text, Time


class ScaleSpec(Section):
    """The bounds within which the number of replicas follows the load."""

    min: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="The least number of replicas. Default: 1. It is never below placement.on_demand_floor.",
        examples=[1],
    )
    max: int = Field(ge=1, le=1000, description="The greatest number of replicas. Required.", examples=[4])
    waiting: float = Field(
        default=4.0,
        gt=0,
        description="A replica is added when more requests than this wait for each replica on average, for a minute. "
        "Default: 4. Source: vLLM's metric num_requests_waiting.",
        examples=[8],
    )
    kv_cache: float = Field(
        default=0.8,
        gt=0,
        lt=1,
        description="A replica is added when more than this share of the KV caches is in use on average, for a minute. "
        "Default: 0.8. Source: vLLM's metric kv_cache_usage_perc.",
        examples=[0.8],
    )
    cooldown: Time | None = Field(
        default=None,
        description="The time between two steps, and how long a replica must be unneeded before one is removed. "
        "Default: 10m.",
        examples=["10m"],
    )
    max_cost_per_hour: float | None = Field(
        default=None,
        gt=0,
        description="USD per hour: no replica is added if it could raise the list price of all slices and the "
        "router's VM above this. Default: no limit but `max`.",
        examples=[20.0],
    )


_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
Address = Annotated[str, Form(rf"{_BYTE}(?:\.{_BYTE}){{3}}", "10.0.0.5")]


class RouterSpec(Section):
    """The router in front of the replicas."""

    kind: Literal["smg", "haproxy", "envoy"] = Field(
        description="The router. smg picks a replica by its cached prefixes and its load, haproxy and envoy by its "
        "open requests. Required.",
        examples=["smg"],
    )
    host: Literal["local", "vm", "own"] = Field(
        default="local",
        description="Where the router runs. local: `tpudeploy apply` starts it on its machine. own: you run it, with "
        "`tpudeploy router` or with what `tpudeploy render PROFILE router` prints. vm: on a VM of Compute Engine that "
        "is created and deleted with the deployment. Default: local.",
    )
    address: Address = Field(
        default="127.0.0.1",
        description="The IP address of the router for clients, one of its machine's own. Google assigns a VM's. "
        "Default: 127.0.0.1, for clients on the same machine only.",
        examples=["10.0.0.5"],
    )
    port: int = Field(
        default=8080, ge=1, le=65535, description="The router's TCP port. Default: 8080.", examples=[8080]
    )
    policy: Text | None = Field(
        default=None,
        description="How the router picks a replica, in its own word. Default: cache_aware for smg, leastconn for "
        "haproxy, least_request for envoy.",
        examples=["cache_aware"],
    )
    machine: Text | None = Field(
        default=None,
        description="The machine type of the VM, with host: vm. Default: e2-small.",
        examples=["e2-small"],
    )
