"""Machine types of Compute Engine without accelerators, for the VM of a router.

The prices are from general knowledge of the list prices in 2026 (UNVERIFIED), those of us-east5 by analogy. They leave
out the disk.
"""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.domain.frozen import frozen

# Debian 12 has HAProxy 2.6 and Python 3.11, with which the routers were run.
IMAGE_PROJECT, IMAGE_FAMILY = "debian-cloud", "debian-12"
DISK_TYPE = "pd-balanced"
DEFAULT_MACHINE = "e2-small"
_REGIONS = ("us-central1", "us-east1", "us-east5", "us-west1")


@frozen
class MachineType:
    """A machine type. `usd_per_hour` has the list price on demand by region, of the regions where it is known."""

    name: str
    memory_gib: int
    usd_per_hour: Mapping[str, float]


def _row(name: str, memory_gib: int, usd_per_hour: float) -> MachineType:
    return MachineType(name=name, memory_gib=memory_gib, usd_per_hour=dict.fromkeys(_REGIONS, usd_per_hour))


MACHINES: Mapping[str, MachineType] = {
    row.name: row
    for row in (
        _row("e2-small", 2, 0.016751),
        _row("e2-medium", 4, 0.033503),
        _row("e2-standard-2", 8, 0.067006),
        _row("e2-standard-4", 16, 0.134012),
    )
}


def usd_per_hour(machine: str, region: str) -> float | None:
    """Return the list price of a machine on demand, or None if it is not known."""
    row = MACHINES.get(machine)
    return None if row is None else row.usd_per_hour.get(region)
