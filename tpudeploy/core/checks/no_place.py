"""A placement that leaves no pair of zone and provisioning model to ask."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.core.finding import error
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic

CODE = "TPU2003"
MEANING = """No place to ask

What placement.zones and placement.provisioning name is asked, less what placement.max_price_per_chip_hour finds too
dear at list price. `zones: any` means the zones that the catalogue knows for this type; for some types it knows none,
and a list is needed:

  placement: {zones: [us-west4-a]}"""


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    if deployment.candidates:
        return
    price = deployment.attributes.get("placement.max_price_per_chip_hour")
    path = "placement.zones" if price is None else "placement.max_price_per_chip_hour"
    reason = "no zone is known for this type" if price is None else f"all cost more than ${price} a chip and hour"
    hint = "Name zones, or allow another provisioning model or price."
    yield error(deployment, CODE, f"{deployment.name} has no place to ask: {reason}.", path=path, hint=hint)
