"""FACTS: what tpudeploy believes of Google Cloud without having seen it on a real project. One row each.

`tpudeploy rehearse` looks at them, and docs/not-verified.md is made from them. Code that relies on one copes either
way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class RehearsalStage(StrEnum):
    """When a rehearsal looks at a fact: in the order of what it costs, and at some not at all."""

    READ = "read"  # reads, which are free
    QUEUE = "queue"  # a queued resource that is deleted before it is granted
    INSERT = "insert"  # an instance that is deleted before it is granted
    INSTANCE = "instance"  # one instance, until Google ends its run
    SLICE = "slice"  # one queued resource, for some minutes
    ELSEWHERE = "elsewhere"  # `look` says why a rehearsal cannot look at it


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudFact:
    """A belief. `used_in` is the module that relies on it, below tpudeploy/; `look` completes "It …"."""

    id: str
    belief: str
    used_in: str
    look: str
    stage: RehearsalStage


STAGES: Mapping[RehearsalStage, str] = {
    RehearsalStage.READ: "free reads",
    RehearsalStage.QUEUE: "a queued resource, deleted before it is granted",
    RehearsalStage.INSERT: "an instance of Compute Engine, deleted before it is granted",
    RehearsalStage.INSTANCE: "one instance of Compute Engine, until the end of its run",
    RehearsalStage.SLICE: "one slice of the Cloud TPU API, given back after some minutes",
    RehearsalStage.ELSEWHERE: "not looked at",
}


def _fact(stage: RehearsalStage, id_: str, belief: str, used_in: str, look: str) -> CloudFact:
    return CloudFact(id=id_, belief=belief, used_in=used_in, look=look, stage=stage)


FACTS: tuple[CloudFact, ...] = (
    _fact(
        RehearsalStage.READ,
        "permissions",
        "Queued resources need the permissions of nodes (`tpu.nodes.create`, …).",
        "catalog/access.py",
        "tests the permissions in the table with testIamPermissions.",
    ),
    _fact(
        RehearsalStage.READ,
        "wildcard-queued-resources",
        "`locations/-` lists the queued resources of all zones.",
        "adapters/google/listing.py",
        "lists them.",
    ),
    _fact(
        RehearsalStage.READ,
        "wildcard-nodes",
        "`locations/-` lists the nodes of all zones, in v2 too.",
        "adapters/google/typed_reads.py",
        "lists them by the typed client.",
    ),
    _fact(
        RehearsalStage.READ,
        "page-size",
        "Cloud TPU lists accept a page size of 500.",
        "adapters/google/lists.py",
        "requests a page of this size.",
    ),
    _fact(
        RehearsalStage.READ,
        "location-fields",
        "Locations have only the fields in google-cloud-tpu. (They're read through discovery, in case there are more.)",
        "adapters/google/offers.py",
        "compares each location's fields with the typed client's.",
    ),
    _fact(
        RehearsalStage.READ,
        "types",
        "Every zone of the catalogue lists v6e-1 among its accelerator types.",
        "catalog/generations.py",
        "lists the types of each zone of the catalogue.",
    ),
    _fact(
        RehearsalStage.READ,
        "runtime-version",
        "Zones with v6e list the runtime version v2-alpha-tpuv6e.",
        "catalog/generations.py",
        "lists the runtime versions of the first zones.",
    ),
    _fact(
        RehearsalStage.READ,
        "quota-parent",
        "Service Usage accepts the project's id instead of the number in its documentation.",
        "adapters/google/quotas.py",
        "lists the quota metrics of tpu.googleapis.com by the id.",
    ),
    _fact(
        RehearsalStage.READ,
        "quota-metrics",
        "The quotas of v6e are the metrics `tpu-v6e` and `tpu-v6e-preemptible`.",
        "adapters/google/quotas.py",
        "looks for both among the quota metrics.",
    ),
    _fact(
        RehearsalStage.READ,
        "instance-quota-metrics",
        "v6e quotas on Compute Engine are the compute.googleapis.com metrics `preemptible_tpu_v6e` and, for "
        "family CT6E, `tpus_per_tpu_family`.",
        "adapters/google/quotas.py",
        "looks for both among the quota metrics.",
    ),
    _fact(
        RehearsalStage.READ,
        "machine-types",
        "Every zone of the catalogue lists ct6e-standard-1t among its machine types.",
        "adapters/google/offers.py",
        "lists the machine type over all zones.",
    ),
    _fact(
        RehearsalStage.READ,
        "prices",
        "The catalog's v6e list prices match the billing catalog.",
        "catalog/generations.py",
        "compares them by region and provisioning model.",
    ),
    _fact(
        RehearsalStage.READ,
        "machine-memory",
        "ct6e-standard-4t has 720 GiB of memory; other machines match the catalog.",
        "catalog/generations.py",
        "reads Compute Engine's machine types in all zones.",
    ),
    _fact(
        RehearsalStage.READ,
        "image-family",
        "The image family of the catalogue resolves to an image.",
        "catalog/generations.py",
        "asks images.getFromFamily.",
    ),
    _fact(
        RehearsalStage.READ,
        "partial-success",
        "instances.aggregatedList accepts `returnPartialSuccess`, missing from its discovery document.",
        "adapters/google/compute_engine/instances.py",
        "lists our instances with it.",
    ),
    _fact(
        RehearsalStage.READ,
        "region-quota",
        "regions.get has the quota of addresses but none of v6e chips.",
        "adapters/google/network.py",
        "reads the quotas of one region.",
    ),
    _fact(
        RehearsalStage.QUEUE,
        "queue-listed",
        "A waiting queued resource is listed with its node's labels and metadata, provisioning model and duration.",
        "adapters/google/listing.py",
        "compares the listed request with the one sent.",
    ),
    _fact(
        RehearsalStage.QUEUE,
        "queue-disk",
        "Cloud TPU accepts a boot disk size in the request.",
        "adapters/google/body.py",
        "reads it back.",
    ),
    _fact(
        RehearsalStage.QUEUE,
        "queue-no-node",
        "A waiting queued resource has no node.",
        "adapters/google/cloud_tpu.py",
        "looks for the node.",
    ),
    _fact(
        RehearsalStage.QUEUE,
        "queue-repeat",
        "Repeating a create with its request id returns its operation or 409.",
        "adapters/google/cloud_tpu.py",
        "sends the recorded request again.",
    ),
    _fact(
        RehearsalStage.QUEUE,
        "queue-deletion",
        "A waiting queued resource is deleted within 15 minutes; then it's not found.",
        "engine/converge.py",
        "deletes it and waits.",
    ),
    _fact(
        RehearsalStage.INSERT,
        "insert-listed",
        "A waiting flex-start instance is listed as PENDING.",
        "adapters/google/compute_engine/instances.py",
        "looks for the instance while its insert waits.",
    ),
    _fact(
        RehearsalStage.INSERT,
        "insert-open",
        "The insert operation of a waiting instance is not DONE.",
        "adapters/google/compute_engine/instances.py",
        "looks at the operation.",
    ),
    _fact(
        RehearsalStage.INSERT,
        "insert-by-request-id",
        "An insert operation is found by its request id as `clientOperationId`.",
        "adapters/google/compute_engine/instances.py",
        "lists the zone's operations by it.",
    ),
    _fact(
        RehearsalStage.INSERT,
        "insert-repeat",
        "Repeating an insert with its request id returns its operation or 409.",
        "adapters/google/compute_engine/instances.py",
        "sends the recorded request again.",
    ),
    _fact(
        RehearsalStage.INSERT,
        "insert-deletion",
        "A waiting instance is deleted within 15 minutes; then it's not found.",
        "engine/converge.py",
        "deletes it and waits.",
    ),
    _fact(
        RehearsalStage.INSTANCE,
        "instance-run",
        "Compute Engine shows the end of an instance's run.",
        "adapters/google/compute_engine/instances.py",
        "reads it. Without it, the instance is deleted at once.",
    ),
    _fact(
        RehearsalStage.INSTANCE,
        "instance-listed",
        "One aggregated list, filtered by our label, has a running instance.",
        "adapters/google/compute_engine/instances.py",
        "looks for it in that list.",
    ),
    _fact(
        RehearsalStage.INSTANCE,
        "instance-labels",
        "Google adds no label to an instance, or only labels starting with `goog-`.",
        "node/node_facts.py",
        "compares the labels with the ones sent.",
    ),
    _fact(
        RehearsalStage.INSTANCE,
        "instance-attributes-absent",
        "Reading a never-written namespace of guest attributes returns 404.",
        "adapters/google/reports.py",
        "reads one.",
    ),
    _fact(
        RehearsalStage.INSTANCE,
        "instance-fingerprint",
        "Changing labels with a stale fingerprint fails with 412.",
        "adapters/google/compute_engine/instances.py",
        "sends the current labels with a wrong fingerprint.",
    ),
    _fact(
        RehearsalStage.INSTANCE,
        "instance-guest-attributes",
        "An instance may write guest attributes, once `enable-guest-attributes` is set.",
        "adapters/google/reports.py",
        "waits for the boot report of the machine.",
    ),
    _fact(
        RehearsalStage.INSTANCE,
        "instance-chips",
        "docker can be installed on Google's image and libtpu starts a session there.",
        "boot_log/signatures/chips.py",
        "waits for a serving server or for the cause of its failure.",
    ),
    _fact(
        RehearsalStage.INSTANCE,
        "instance-port",
        "The server's port is reached at the instance's external address, once a firewall rule opens it.",
        "adapters/routes.py",
        "waits for a completion at the endpoint.",
    ),
    _fact(
        RehearsalStage.INSTANCE,
        "instance-log",
        "The first serial port has the output of the startup script.",
        "adapters/google/compute_engine/instances.py",
        "reads it.",
    ),
    _fact(
        RehearsalStage.INSTANCE,
        "instance-change-in-place",
        "A machine sees a change of its instance's metadata without a reboot.",
        "engine/execute.py",
        "changes the profile in place, then waits for the watcher's report.",
    ),
    _fact(
        RehearsalStage.INSTANCE,
        "instance-script-reruns",
        "The startup script runs again after a reset.",
        "adapters/google/compute_engine/instances.py",
        "resets the instance, then waits for another boot report.",
    ),
    _fact(
        RehearsalStage.INSTANCE,
        "instance-preemption",
        "A preempted instance is deleted, or is TERMINATED.",
        "adapters/google/states.py",
        "reads the state if a preemption happens meanwhile. It can't provoke one.",
    ),
    _fact(
        RehearsalStage.INSTANCE,
        "instance-run-end",
        "Compute Engine deletes an instance within two minutes of the end of its run.",
        "features/rehearsal/budget.py",
        "waits for it. If the instance is still there, it's deleted and no further slice is rented.",
    ),
    _fact(
        RehearsalStage.SLICE,
        "slice-run",
        "Cloud TPU shows a flex-start slice's requested duration.",
        "adapters/google/cloud_tpu.py",
        "reads it. Without it, the slice is deleted at once.",
    ),
    _fact(
        RehearsalStage.SLICE,
        "node-in-v2",
        "v2 lists the node of a queued resource created through v2alpha1.",
        "adapters/google/listing.py",
        "looks for the node by the typed client.",
    ),
    _fact(
        RehearsalStage.SLICE,
        "node-labels",
        "Google adds no label to a node, or only labels starting with `goog-`.",
        "node/node_facts.py",
        "compares the node's labels with the ones sent.",
    ),
    _fact(
        RehearsalStage.SLICE,
        "guest-attributes",
        "A TPU VM may write guest attributes.",
        "adapters/google/reports.py",
        "waits for the boot report of the machine.",
    ),
    _fact(
        RehearsalStage.SLICE,
        "guest-attribute-rate",
        "Ten reads of guest attributes in a minute are answered.",
        "adapters/google/reports.py",
        "reads them ten times.",
    ),
    _fact(
        RehearsalStage.SLICE,
        "boot-log",
        "The output of the startup script is in Cloud Logging, under the node's id.",
        "adapters/google/cloud_logging.py",
        "reads the log.",
    ),
    _fact(
        RehearsalStage.SLICE,
        "port",
        "The server's port is reached at the node's external address, once a firewall rule opens it.",
        "adapters/routes.py",
        "waits for a completion at the endpoint.",
    ),
    _fact(
        RehearsalStage.SLICE,
        "change-in-place",
        "A machine sees a change of its node's metadata without a reboot.",
        "engine/execute.py",
        "changes the profile in place, then waits for the watcher's report.",
    ),
    _fact(
        RehearsalStage.SLICE,
        "script-reruns",
        "The startup script runs again after a reset.",
        "adapters/google/cloud_tpu.py",
        "resets the slice, then waits for another boot report.",
    ),
    _fact(
        RehearsalStage.SLICE,
        "preemption",
        "A preempted slice becomes SUSPENDED; its node becomes PREEMPTED or disappears.",
        "adapters/google/states.py",
        "reads the states if it happens meanwhile. Flex-start isn't preempted.",
    ),
    _fact(
        RehearsalStage.SLICE,
        "slice-deletion",
        "A granted slice is deleted within 15 minutes, with its node.",
        "engine/converge.py",
        "deletes it and waits.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "refusal-texts",
        "Google's exact words for some refusals.",
        "adapters/google/refusals/",
        "can't provoke them. An unknown text counts as a refusal by the zone or as a fault.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "unreachable-form",
        "A list names unreachable zones by full name or by id.",
        "adapters/google/lists.py",
        "cannot provoke an outage. Both forms are read.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "lapsed-insert",
        "The operation of a lapsed flex-start insert ends without an error.",
        "adapters/google/compute_engine/instances.py",
        "would have to wait for the request's whole validity without a grant. Both endings are handled.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "run-end",
        "Cloud TPU ends a flex-start slice within two minutes of the end of its run.",
        "features/rehearsal/budget.py",
        "deletes its slice earlier. It observes the same on Compute Engine.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "other-generations",
        "Unverified catalog entries for v5p and TPU7x: machines, disks, quotas, models and prices.",
        "catalog/generations.py",
        "looks at v6e alone.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "preemption-notice",
        "Before a preemption, a machine reads TRUE at `instance/preempted` of its metadata up to 30 s earlier "
        "(120 s if its request sets a notice), or not at all. It has time to write one guest attribute.",
        "reconcile/attempt_status.py",
        "can't provoke a preemption. Without a notice, the slice's states show the loss.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "preemptible-fallback",
        "In a region without preemptible quota, spot and flex-start instances use the on-demand quota.",
        "adapters/google/quotas.py",
        "can't see which quota a request uses. Such a limit counts as unknown unless both are 0.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "quota-of-stopped-instances",
        "An instance without a machine uses no quota of chips.",
        "adapters/google/quotas.py",
        "would have to stop a slice. Such an instance isn't counted, so no request is blocked by mistake.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "flex-start-quota",
        "Flex-start uses the preemptible quota of the Cloud TPU API.",
        "reconcile/refusals.py",
        "cannot see which quota a request uses. Both limits are shown.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "request-id-memory",
        "Google remembers a request id longer than a run needs to repeat a request.",
        "adapters/google/compute_engine/instances.py",
        "repeats a request within minutes only. The name is unique too.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "create-rate",
        "Compute Engine accepts as many creates per minute as the Cloud TPU API.",
        "engine/budget.py",
        "does not provoke a rate limit.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "shared-capacity",
        "The two APIs may sell the same chips of a zone.",
        "reconcile/placement.py",
        "can't see Google's capacity. Each place is requested separately.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "faulty-host",
        "Compute Engine accepts a faulty-host report for a TPU without a reservation.",
        "adapters/google/compute_engine/instances.py",
        "doesn't report a working machine.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "monitoring-agent",
        "Google's Ops Agent runs on TPU VMs.",
        "features/alerts/formats.py",
        "installs no agent.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "gcloud-boot-disk",
        "No flag of gcloud sets the size of the boot disk of a queued resource.",
        "features/exports/gcloud.py",
        "does not call gcloud.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "iap-tunnel",
        "A tunnel through IAP reaches a TPU VM.",
        "adapters/routes.py",
        "would need a firewall rule for IAP's addresses; it doesn't create one.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "on-demand-quota",
        "The default of the on-demand quota.",
        "availability/gates.py",
        "sees only the limits of this project.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "registry-token",
        "Google's registries accept an access token as a bearer token.",
        "adapters/registry.py",
        "would need a private image.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "hub-commit",
        "The Hugging Face hub returns the commit of a gated model to anonymous callers.",
        "adapters/sources.py",
        "talks to Google alone.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "group-life",
        "A group in bulk mode creates all machines of a TPU slice or none. It shows the reason for a wait and the"
        " topology's state.",
        "adapters/google/compute_engine/groups.py",
        "rents one chip.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "group-names",
        "A group in bulk mode numbers its instances from 1 by `baseInstanceName`. Machines find each other by "
        "these names in internal DNS.",
        "adapters/google/compute_engine/group_body.py",
        "rents one chip. A machine missing from the list fails with an error.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "group-recovery",
        "After a host error, Compute Engine restarts all machines of a slice with their names and metadata.",
        "adapters/google/compute_engine/groups.py",
        "doesn't provoke a host error. A slice with a missing machine is deleted.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "billing-start",
        "A slice is billed from the creation of its machine, but only if it was ready once.",
        "reconcile/ledger_facts.py",
        "doesn't read the bill; Google exports it hours later. If billing starts later, costs are an upper bound.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "larger-slices",
        "Slices of several hosts on the Cloud TPU API: metadata with the workers and their addresses, one answer "
        "with all reports, metadata changes on all workers, Ray across them.",
        "node/render.py",
        "rents one chip.",
    ),
)


def facts_of(stage: RehearsalStage) -> tuple[CloudFact, ...]:
    """Return the facts that one stage looks at, in the order of the table."""
    return tuple(fact for fact in FACTS if fact.stage is stage)
