"""List prices from Google's billing catalogue. Of its many pages, only a few SKUs are TPU prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.safe_read import pages
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.facts import Rate

_COMPUTE_ENGINE = "services/6F81-5844-456A"
_PAGE = 5000  # the maximum that the API's document allows
_HOUR = "h"


def rates(connection: CloudConnection) -> tuple[Rate, ...]:
    """Return the prices in USD per chip-hour of every generation whose SKUs the catalogue names.

    That one unit is one chip is inferred from the prices: those of a v6e-1 are those of one chip, and prices are
    linear in chips. SKUs that are not sold by the hour are left out.
    """
    calls = connection.collection("cloudbilling", "v1", "services", "skus")
    request = calls.list(parent=_COMPUTE_ENGINE, currencyCode="USD", pageSize=_PAGE)
    return tuple(rate for page in pages(calls, request) for sku in page.get("skus", ()) for rate in _rates(sku))


def _rates(sku: Mapping[str, Any]) -> Iterator[Rate]:
    usage = sku.get("category", {}).get("usageType")
    match = next(_matching_generations(str(sku.get("description", "")), usage), None)
    if match is None:
        return
    generation, model = match
    usd = _usd(sku)
    if usd is None:
        return
    for region in sku.get("serviceRegions", ()):
        yield Rate(generation=generation, region=str(region), provisioning=model, usd=usd)


def _matching_generations(description: str, usage: object) -> Iterator[tuple[str, Provisioning]]:
    for generation in GENERATIONS:
        for model, sku in generation.skus.items():
            if description.startswith(sku.begins) and usage == sku.usage:
                yield generation.name, Provisioning(model)


def _usd(sku: Mapping[str, Any]) -> float | None:
    """Return the price above any free tier, or None if the SKU has none or is not sold by the hour."""
    pricing = sku.get("pricingInfo") or [{}]
    expression = pricing[-1].get("pricingExpression", {})
    tiers = expression.get("tieredRates", ())
    if not tiers or expression.get("usageUnit") != _HOUR:
        return None
    price = tiers[-1].get("unitPrice", {})
    return int(price.get("units", 0)) + int(price.get("nanos", 0)) / 1e9
