"""List prices, from the billing catalogue: page after page of what Google sells, of which a few lines are ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.told import pages
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.facts import Rate

_COMPUTE_ENGINE = "services/6F81-5844-456A"
_PAGE = 5000  # the most that the document allows
_HOUR = "h"


def rates(connection: Connection) -> tuple[Rate, ...]:
    """USD per chip-hour of every generation whose articles the catalogue names. That a unit is a chip is inferred
    from the prices (a v6e-1's are those of one chip, linear in chips); what is not sold by the hour is left out.
    """
    calls = connection.collection("cloudbilling", "v1", "services", "skus")
    request = calls.list(parent=_COMPUTE_ENGINE, currencyCode="USD", pageSize=_PAGE)
    return tuple(rate for page in pages(calls, request) for sku in page.get("skus", ()) for rate in _rates(sku))


def _rates(sku: Mapping[str, Any]) -> Iterator[Rate]:
    named = next(_known(str(sku.get("description", "")), sku.get("category", {}).get("usageType")), None)
    usd = _usd(sku) if named is not None else None
    if named is None or usd is None:
        return
    generation, model = named
    for region in sku.get("serviceRegions", ()):
        yield Rate(generation=generation, region=str(region), provisioning=model, usd=usd)


def _known(description: str, usage: object) -> Iterator[tuple[str, Provisioning]]:
    for generation in GENERATIONS:
        for model, sku in generation.skus.items():
            if description.startswith(sku.begins) and usage == sku.usage:
                yield generation.name, Provisioning(model)


def _usd(sku: Mapping[str, Any]) -> float | None:
    """The price beyond whatever is free; None where none is given, or not by the hour."""
    told = sku.get("pricingInfo") or [{}]
    expression = told[-1].get("pricingExpression", {})
    tiers = expression.get("tieredRates", ())
    if not tiers or expression.get("usageUnit") != _HOUR:
        return None
    price = tiers[-1].get("unitPrice", {})
    return int(price.get("units", 0)) + int(price.get("nanos", 0)) / 1e9
