"""A placement that leaves no pair of zone and provisioning model to ask."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.sizing.finding import error

CODE = "TPU2003"
EXPLANATION = Explanation(
    "No zone and provisioning model to try",
    "tpudeploy tries what placement.zones and placement.provisioning name, except what costs more than "
    "placement.max_price_per_chip_hour at list price. Nothing is left of it. `zones: any` means the zones that the "
    "catalogue lists for the type; for some types it lists none, and zones have to be named.",
    "placement: {max_price_per_chip_hour: 2.00}",
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    if deployment.candidates:
        return
    price = deployment.attributes.get("placement.max_price_per_chip_hour")
    path = "placement.zones" if price is None else "placement.max_price_per_chip_hour"
    reason = "no zone is known for this type" if price is None else f"all cost more than ${price} a chip and hour"
    hint = "Name zones, or allow another provisioning model or price."
    yield error(deployment, CODE, f"{deployment.name} has no place to ask: {reason}.", path=path, hint=hint)
