"""Define `scale`: the bounds within which `apply -watch` changes the number of replicas, and what it goes by."""

from tpudeploy.config.schema.base import Field, Section, Time


class ScaleSpec(Section):
    min: int = Field(
        1,
        ge=1,
        le=1000,
        description="The least number of replicas. Default: 1. It is never below placement.on_demand_floor.",
        examples=[1],
    )
    max: int = Field(ge=1, le=1000, description="The greatest number of replicas. Required.", examples=[4])
    waiting: float = Field(
        4.0,
        gt=0,
        description="A replica is added when more requests than this wait for each replica on average, for a minute. "
        "Default: 4. Source: vLLM's metric num_requests_waiting.",
        examples=[8],
    )
    kv_cache: float = Field(
        0.8,
        gt=0,
        lt=1,
        description="A replica is added when more than this share of the KV caches is in use on average, for a minute. "
        "Default: 0.8. Source: vLLM's metric kv_cache_usage_perc.",
        examples=[0.8],
    )
    cooldown: Time | None = Field(
        None,
        description="The time between two steps, and how long a replica must be unneeded before one is removed. "
        "Default: 10m.",
        examples=["10m"],
    )
    max_cost_per_hour: float | None = Field(
        None,
        gt=0,
        description="USD per hour: no replica is added that could raise the list price of all slices above this. "
        "Default: no limit but `max`.",
        examples=[20.0],
    )
