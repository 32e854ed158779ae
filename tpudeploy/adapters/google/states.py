"""Google's states and the phases that they map to: a table for each kind of resource, and the one rule between two."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.domain.slices import Phase

QUEUED_RESOURCE: Mapping[str, Phase] = {
    "STATE_UNSPECIFIED": Phase.QUEUED,
    "CREATING": Phase.CREATING,
    "ACCEPTED": Phase.QUEUED,  # the old name of the waiting state
    "WAITING_FOR_RESOURCES": Phase.QUEUED,
    "PROVISIONING": Phase.PROVISIONING,
    "ACTIVE": Phase.UP,
    "SUSPENDING": Phase.SUSPENDING,
    "DELETING": Phase.LEAVING,
    "SUSPENDED": Phase.HUSK,
    "FAILED": Phase.HUSK,
}

# The node of an ACTIVE queued resource decides, because it can be lost while the queued resource is still ACTIVE.
NODE: Mapping[str, Phase] = {
    "STATE_UNSPECIFIED": Phase.PROVISIONING,
    "CREATING": Phase.PROVISIONING,
    "READY": Phase.UP,
    "STARTING": Phase.UP,
    "RESTARTING": Phase.UP,
    "REIMAGING": Phase.UP,
    "REPAIRING": Phase.UP,
    "STOPPING": Phase.LOST,
    "STOPPED": Phase.LOST,
    "DELETING": Phase.LOST,
    "PREEMPTED": Phase.LOST,
    "TERMINATED": Phase.LOST,
    "HIDING": Phase.LOST,
    "HIDDEN": Phase.LOST,
    "UNHIDING": Phase.UP,
    "UNKNOWN": Phase.UP,
}

# An instance of Compute Engine. docs/explanation/compute-engine.md says why; the adapter has the two cases that need
# more than the status: a machine that Google restarts, and one that it has never started.
INSTANCE: Mapping[str, Phase] = {
    "PENDING": Phase.QUEUED,  # flex-start waits for capacity
    "PROVISIONING": Phase.PROVISIONING,
    "STAGING": Phase.PROVISIONING,
    "RUNNING": Phase.UP,
    "REPAIRING": Phase.UP,
    "PENDING_STOP": Phase.SUSPENDING,
    "STOPPING": Phase.SUSPENDING,
    "SUSPENDING": Phase.SUSPENDING,
    "SUSPENDED": Phase.HUSK,
    "STOPPED": Phase.HUSK,
    "TERMINATED": Phase.HUSK,
    "DEPROVISIONING": Phase.LEAVING,
}
