"""JSON for the cache, and back: the hardware that zones offer, and the prices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.facts import Offers, Prices, Rate
from tpudeploy.domain.names import Zone


def offers_tree(value: Offers) -> dict[str, Any]:
    return {"read_at": value.read_at, "types": {zone: list(types) for zone, types in value.types.items()}}


def offers(tree: Mapping[str, Any]) -> Offers:
    """Return the offers in a tree. Raise ValueError, KeyError, TypeError or AttributeError if it is malformed."""
    types = {Zone.parse(zone): tuple(map(str, types)) for zone, types in tree["types"].items()}
    return Offers(types=types, read_at=float(tree["read_at"]))


def prices_tree(value: Prices) -> dict[str, Any]:
    return {"read_at": value.read_at, "rates": [[r.generation, r.region, r.provisioning, r.usd] for r in value.rates]}


def prices(tree: Mapping[str, Any]) -> Prices:
    """Return the prices in a tree. Raise as `offers` does."""
    rates = tuple(
        Rate(generation=str(generation), region=str(region), provisioning=Provisioning(model), usd=float(usd))
        for generation, region, model, usd in tree["rates"]
    )
    return Prices(rates=rates, read_at=float(tree["read_at"]))
