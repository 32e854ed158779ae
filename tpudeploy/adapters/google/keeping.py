"""Readings as JSON, and back: what is kept of hardware and prices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.facts import Offers, Prices, Rate
from tpudeploy.domain.names import Zone


def offers_tree(of: Offers) -> dict[str, Any]:
    return {"read_at": of.read_at, "types": {zone: list(types) for zone, types in of.types.items()}}


def offers(tree: Mapping[str, Any]) -> Offers:
    """Raise ValueError, KeyError, TypeError or AttributeError for what is none."""
    types = {Zone.parse(zone): tuple(map(str, types)) for zone, types in tree["types"].items()}
    return Offers(types=types, read_at=float(tree["read_at"]))


def prices_tree(of: Prices) -> dict[str, Any]:
    return {"read_at": of.read_at, "rates": [[r.generation, r.region, r.provisioning, r.usd] for r in of.rates]}


def prices(tree: Mapping[str, Any]) -> Prices:
    """Raise as `offers` does."""
    rates = tuple(
        Rate(generation=str(generation), region=str(region), provisioning=Provisioning(model), usd=float(usd))
        for generation, region, model, usd in tree["rates"]
    )
    return Prices(rates=rates, read_at=float(tree["read_at"]))
