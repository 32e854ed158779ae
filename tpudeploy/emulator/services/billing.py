"""The billing catalogue: what a chip costs an hour, among much else that is sold under similar names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tpudeploy.catalog.generations import TPU7X, V6E
from tpudeploy.emulator import wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.wire import ApiCall, page

COMPUTE_ENGINE = "6F81-5844-456A"
_PAGE = 25  # Google's is 5000 at most; a server may always give fewer
_CITIES = {"us-east5": "Columbus", "us-south1": "Dallas", "europe-west4": "Netherlands"}
# (generation and provisioning model, description, usage type); those without a model are sold under similar names. The
# texts of other generations are not known.
_SOLD = (
    (V6E, "", "Capacity Optimized TpuV6e running in {city}", "OnDemand"),
    (V6E, "", "Reserved TpuV6e in {city}", "OnDemand"),
    (V6E, "", "Commitment v1: TpuV6e in {city} for 1 Year", "Commit1Yr"),
    (V6E, "", "N1 Predefined Instance Core running in {city}", "OnDemand"),
    (V6E, "on-demand", "TpuV6e running in {city}", "OnDemand"),
    (V6E, "spot", "TpuV6e attached to Spot Preemptible VMs running in {city}", "Preemptible"),
    (V6E, "flex-start", "DWS Defined Duration V6e running in {city}", "OnDemand"),
    (TPU7X, "on-demand", "TPU7x running in {city}", "OnDemand"),
)
_DECOY = 0.05  # USD: cheap enough to be taken by mistake


def list_skus(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    if call.query["service"] != COMPUTE_ENGINE:
        raise wire.refuse(5, f"Service {call.query['of']} was not found.")  # UNVERIFIED
    return page(call, "skus", list(_skus(cloud)), lambda sku: sku, most=_PAGE)


def _skus(cloud: Cloud) -> Iterator[dict[str, Any]]:
    scenario_prices = cloud.scenario.project.prices
    for region in sorted({*V6E.prices, *TPU7X.prices, *scenario_prices}):
        of_scenario = scenario_prices.get(region, {})
        for number, (generation, model, description, usage) in enumerate(_SOLD):
            # The prices of a scenario are those of v6e.
            prices = {**generation.prices.get(region, {}), **(of_scenario if generation is V6E else {})}
            if model in prices or not model:
                text = description.format(city=_CITIES.get(region, region))
                yield _sku(f"{region}-{number}", text, usage, region, prices.get(model, _DECOY))


def _sku(sku_id: str, description: str, usage: str, region: str, usd: float) -> dict[str, Any]:
    whole, nanos = divmod(round(usd * 1e9), 10**9)
    price = {"currencyCode": "USD", "units": str(whole), "nanos": nanos}
    expression = {
        "usageUnit": "h",
        "usageUnitDescription": "hour",
        "displayQuantity": 1,
        "tieredRates": [{"startUsageAmount": 0, "unitPrice": price}],
    }
    return {
        "name": f"services/{COMPUTE_ENGINE}/skus/{sku_id}",
        "skuId": sku_id,
        "description": description,
        "category": {
            "serviceDisplayName": "Compute Engine",
            "resourceFamily": "Compute",
            "resourceGroup": "TPU",
            "usageType": usage,
        },
        "serviceRegions": [region],
        "pricingInfo": [{"effectiveTime": "2026-08-01T00:00:00Z", "pricingExpression": expression}],
        "serviceProviderName": "Google",
        "geoTaxonomy": {"type": "REGIONAL", "regions": [region]},
    }
