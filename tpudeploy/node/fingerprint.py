"""The effect of a changed attribute, and the fingerprints that show whether two things are the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache

from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.plan import Effect
from tpudeploy.pins import effective

_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"))

# The longest prefix wins. `placement.zones` and `.provisioning` say where the *next* slice may be: they cost a slice
# only if the current one lies outside of them (see diff.py).
EFFECTS: Mapping[str, Effect] = {
    "boot": Effect.RESTART,
    "budget": Effect.COSMETIC,
    "model": Effect.RESTART,
    "secrets": Effect.RESTART,
    "serving": Effect.RESTART,
    "serving.plain_env": Effect.COSMETIC,
    "tpu": Effect.REPLACE,
    "placement": Effect.REPLACE,
    "placement.labels": Effect.COSMETIC,
    "placement.network.tags": Effect.COSMETIC,
    "placement.max_parallel_requests": Effect.COSMETIC,
    "placement.max_search_price_per_hour": Effect.COSMETIC,
    "placement.max_price_per_chip_hour": Effect.COSMETIC,
    "placement.on_demand_floor": Effect.COSMETIC,
    "placement.provisioning": Effect.COSMETIC,
    "placement.valid_until": Effect.COSMETIC,
    "placement.zones": Effect.COSMETIC,
    "health": Effect.COSMETIC,
    "lifecycle": Effect.COSMETIC,
    "router": Effect.COSMETIC,
    "scale": Effect.COSMETIC,
    "vm": Effect.REPLACE,
}


_LIVE = ("placement.labels.", "placement.network.tags", "lifecycle.end", "lifecycle.hours", "lifecycle.idle")


@lru_cache(maxsize=4096)
def effect(path: str) -> Effect:
    """Return the effect of a change of the attribute at `path`. Raise KeyError for a path that no row covers."""
    prefix = path
    while prefix not in EFFECTS:
        prefix, dot, _ = prefix.rpartition(".")
        if not dot:
            raise KeyError(path)
    return EFFECTS[prefix]


def slice_print(attributes: Mapping[str, Json]) -> str:
    """Return a fingerprint that is equal for two slices if neither has to be replaced to become the other."""
    return _hash({p: v for p, v in attributes.items() if effect(p) is Effect.REPLACE})


def server_print(attributes: Mapping[str, Json]) -> str:
    """Return a fingerprint that is equal for two servers if neither has to be restarted to become the other.

    A pin counts like a digest or commit in the profile, so writing it into the profile restarts nothing.
    """
    return _hash({p: v for p, v in effective(attributes).items() if effect(p) is Effect.RESTART})


def live_attributes(attributes: Mapping[str, Json]) -> dict[str, Json]:
    """Return the attributes that a running node can be given without a restart: its labels, network tags and ends."""
    return {p: v for p, v in attributes.items() if p.startswith(_LIVE)}


def fingerprint(deployment: Deployment) -> str:
    """Return the fingerprint of everything that a user approves."""
    approved: dict[str, Json] = {**deployment.attributes, "replicas": deployment.replicas}
    # The attributes name the software of the machines only where there is one API that can grant them.
    if len(deployment.runtimes) > 1:
        approved["runtimes"] = {backend.value: runtime for backend, runtime in deployment.runtimes.items()}
    if deployment.router_machine is not None:
        approved["router_machine"] = {**deployment.router_machine.attributes}
    return _hash(approved)


def aim_print(deployment: Deployment | None, targets: tuple[int, ...] | None) -> str:
    """Return a fingerprint that is equal for two plans if one approval covers both; "" to delete the deployment."""
    whole = "" if deployment is None else fingerprint(deployment)
    return whole if targets is None else _hash({"whole": whole, "targets": list(targets)})


@lru_cache(maxsize=2)  # several callers in a row need the fingerprint of one script
def text_print(text: str) -> str:
    """Return a short fingerprint of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _hash(value: Mapping[str, Json]) -> str:
    return hashlib.sha256(_CANONICAL.encode(value).encode()).hexdigest()[:16]
