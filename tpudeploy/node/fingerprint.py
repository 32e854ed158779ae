"""What a changed attribute costs, and the hashes that say whether two things are the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache

from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.plan import Effect
from tpudeploy.pins.pins import effective

_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"))

# The longest prefix wins. `placement.zones` and `.provisioning` say where to ask *next*: they cost a slice only when
# the one that is held lies outside them (see diff.py).
EFFECTS: Mapping[str, Effect] = {
    "model": Effect.RESTART,
    "secrets": Effect.RESTART,
    "serving": Effect.RESTART,
    "serving.plain_env": Effect.COSMETIC,
    "tpu": Effect.REPLACE,
    "placement": Effect.REPLACE,
    "placement.labels": Effect.COSMETIC,
    "placement.network.tags": Effect.COSMETIC,
    "placement.max_parallel_requests": Effect.COSMETIC,
    "placement.max_price_per_chip_hour": Effect.COSMETIC,
    "placement.provisioning": Effect.COSMETIC,
    "placement.valid_until": Effect.COSMETIC,
    "placement.zones": Effect.COSMETIC,
    "health": Effect.COSMETIC,
    "lifecycle": Effect.COSMETIC,
}


@lru_cache(maxsize=4096)
def effect(path: str) -> Effect:
    """What changing the attribute at `path` costs. Raise KeyError for a path no row covers: the table is complete."""
    prefix = path
    while prefix not in EFFECTS:
        prefix, dot, _ = prefix.rpartition(".")
        if not dot:
            raise KeyError(path)
    return EFFECTS[prefix]


def slice_print(attributes: Mapping[str, Json]) -> str:
    """The same for two slices that need not be replaced by one another."""
    return _hash({p: v for p, v in attributes.items() if effect(p) is Effect.REPLACE})


def server_print(attributes: Mapping[str, Json]) -> str:
    """The same for two servers that need not be restarted to become one another.

    A pin counts as if its digest or commit had been written: who writes it out restarts nothing.
    """
    return _hash({p: v for p, v in effective(attributes).items() if effect(p) is Effect.RESTART})


def live_attributes(attributes: Mapping[str, Json]) -> dict[str, Json]:
    """The attributes that a running node carries and can be given anew: its labels and network tags."""
    return {p: v for p, v in attributes.items() if p.startswith(("placement.labels.", "placement.network.tags"))}


def fingerprint(deployment: Deployment) -> str:
    """The whole of what a person approves."""
    return _hash({**deployment.attributes, "replicas": deployment.replicas})


def aim_print(deployment: Deployment | None, targets: tuple[int, ...] | None) -> str:
    """The same for two plans that one yes covers: "" to remove all of a deployment."""
    whole = "" if deployment is None else fingerprint(deployment)
    return whole if targets is None else _hash({"whole": whole, "targets": list(targets)})


@lru_cache(maxsize=2)  # a script is asked about by several in a row
def text_print(text: str) -> str:
    """The same for two equal texts, and short."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _hash(value: Mapping[str, Json]) -> str:
    return hashlib.sha256(_CANONICAL.encode(value).encode()).hexdigest()[:16]
