"""FACTS: what tpudeploy believes of Google Cloud without having seen it on a real project. One row each.

`tpudeploy rehearse` looks at them, and docs/not-verified.md is made from them. Code that relies on one copes either
way.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from tpudeploy.domain.frozen import frozen


class RehearsalStage(StrEnum):
    """When a rehearsal looks at a fact: in the order of what it costs, and at some not at all."""

    READ = "read"  # reads, which are free
    QUEUE = "queue"  # a queued resource that is deleted before it is granted
    INSERT = "insert"  # an instance that is deleted before it is granted
    INSTANCE = "instance"  # one instance, until Google ends its run
    SLICE = "slice"  # one queued resource, for some minutes
    ELSEWHERE = "elsewhere"  # `look` says why a rehearsal cannot look at it


@frozen
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
        "The permissions of nodes (`tpu.nodes.create`, …) are those that queued resources need.",
        "catalog/access.py",
        "asks which of the permissions in the table the project knows, by testIamPermissions.",
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
        "A list of Cloud TPU takes a page size of 500.",
        "adapters/google/lists.py",
        "asks for a page of that size.",
    ),
    _fact(
        RehearsalStage.READ,
        "location-fields",
        "Locations have only fields that google-cloud-tpu knows. (They are read by discovery, in case they have more.)",
        "adapters/google/offers.py",
        "compares the fields of each location with those that the typed client knows.",
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
        "Service Usage takes the project's id where its documents write the number.",
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
        "The quotas of v6e at Compute Engine are the metrics `preemptible_tpu_v6e` and, for the family CT6E, "
        "`tpus_per_tpu_family` of compute.googleapis.com.",
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
        "The list prices of v6e in the catalogue are those of the billing catalogue.",
        "catalog/generations.py",
        "compares them by region and provisioning model.",
    ),
    _fact(
        RehearsalStage.READ,
        "machine-memory",
        "ct6e-standard-4t has 720 GiB of memory; the other machines have what the catalogue says.",
        "catalog/generations.py",
        "reads the machine types of Compute Engine, over all zones.",
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
        "instances.aggregatedList takes `returnPartialSuccess`, which its document does not declare.",
        "adapters/google/compute_engine/instances.py",
        "lists our instances with it.",
    ),
    _fact(
        RehearsalStage.READ,
        "region-quota",
        "regions.get has no quota of v6e chips, and has that of addresses.",
        "adapters/google/network.py",
        "reads the quotas of one region.",
    ),
    _fact(
        RehearsalStage.QUEUE,
        "queue-listed",
        "A waiting queued resource is listed with the labels and the metadata of its node, its model and its length.",
        "adapters/google/listing.py",
        "finds our request in the list and compares it with what was sent.",
    ),
    _fact(
        RehearsalStage.QUEUE,
        "queue-disk",
        "Cloud TPU takes the size of the boot disk that a request names.",
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
        "A create that is repeated with its request id is answered with its operation, or with 409.",
        "adapters/google/cloud_tpu.py",
        "sends the recorded request again.",
    ),
    _fact(
        RehearsalStage.QUEUE,
        "queue-deletion",
        "A waiting queued resource is deleted within 15 minutes, and then not found.",
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
        "An insert operation is found by `clientOperationId`, which is the request id.",
        "adapters/google/compute_engine/instances.py",
        "lists the zone's operations by it.",
    ),
    _fact(
        RehearsalStage.INSERT,
        "insert-repeat",
        "An insert that is repeated with its request id is answered with its operation, or with 409.",
        "adapters/google/compute_engine/instances.py",
        "sends the recorded request again.",
    ),
    _fact(
        RehearsalStage.INSERT,
        "insert-deletion",
        "A waiting instance is deleted within 15 minutes, and then not found.",
        "engine/converge.py",
        "deletes it and waits.",
    ),
    _fact(
        RehearsalStage.INSTANCE,
        "instance-run",
        "Compute Engine shows at which moment it ends the run of an instance.",
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
        "Google adds no label of its own to an instance, or one that begins with `goog-`.",
        "node/node_facts.py",
        "compares the labels with those that were sent.",
    ),
    _fact(
        RehearsalStage.INSTANCE,
        "instance-attributes-absent",
        "A namespace of guest attributes that was never written is not found (404).",
        "adapters/google/reports.py",
        "reads one.",
    ),
    _fact(
        RehearsalStage.INSTANCE,
        "instance-fingerprint",
        "A change of labels with a fingerprint that is not current is refused with 412.",
        "adapters/google/compute_engine/instances.py",
        "sends the present labels with a wrong fingerprint.",
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
        "docker can be installed on Google's image, and libtpu starts a session there.",
        "boot_log/signatures/chips.py",
        "waits for a server that serves, or for the cause why it does not.",
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
        "changes the profile in place, and waits for the watcher's report.",
    ),
    _fact(
        RehearsalStage.INSTANCE,
        "instance-script-reruns",
        "The startup script runs again after a reset.",
        "adapters/google/compute_engine/instances.py",
        "resets the instance, and waits for another boot report.",
    ),
    _fact(
        RehearsalStage.INSTANCE,
        "instance-preemption",
        "A preempted instance is deleted, or is TERMINATED.",
        "adapters/google/states.py",
        "reads the state if a preemption happens in that time. Nothing provokes one.",
    ),
    _fact(
        RehearsalStage.INSTANCE,
        "instance-run-end",
        "Compute Engine deletes an instance within two minutes of the end of its run.",
        "features/rehearsal/budget.py",
        "waits for it. If the instance is still there, it is deleted, and no further slice is rented.",
    ),
    _fact(
        RehearsalStage.SLICE,
        "slice-run",
        "Cloud TPU shows the run that a flex-start slice was requested for.",
        "adapters/google/cloud_tpu.py",
        "reads it. Without it, the slice is deleted at once.",
    ),
    _fact(
        RehearsalStage.SLICE,
        "node-in-v2",
        "v2 lists the node of a queued resource that was requested through v2alpha1.",
        "adapters/google/listing.py",
        "looks for the node by the typed client.",
    ),
    _fact(
        RehearsalStage.SLICE,
        "node-labels",
        "Google adds no label of its own to a node, or one that begins with `goog-`.",
        "node/node_facts.py",
        "compares the node's labels with those that were sent.",
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
        "changes the profile in place, and waits for the watcher's report.",
    ),
    _fact(
        RehearsalStage.SLICE,
        "script-reruns",
        "The startup script runs again after a reset.",
        "adapters/google/cloud_tpu.py",
        "resets the slice, and waits for another boot report.",
    ),
    _fact(
        RehearsalStage.SLICE,
        "preemption",
        "A slice that Google takes back becomes SUSPENDED, and its node PREEMPTED or absent.",
        "adapters/google/states.py",
        "reads the states if that happens in that time. Flex-start is not preempted, and nothing provokes it.",
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
        "cannot provoke them. A text that no row matches is treated as a zone that refused, or as a fault.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "unreachable-form",
        "A list names zones that did not answer by their full name or by their id.",
        "adapters/google/lists.py",
        "cannot provoke an outage. Both forms are read.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "lapsed-insert",
        "The operation of a flex-start insert that lapsed ends without an error.",
        "adapters/google/compute_engine/instances.py",
        "would have to wait without a grant for as long as the request is valid. Both ends are read.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "run-end",
        "Cloud TPU ends a flex-start slice within two minutes of the end of its run.",
        "features/rehearsal/budget.py",
        "gives its slice back before that. It sees how Compute Engine keeps the same promise.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "other-generations",
        "What the catalogue marks as unverified of v5p and TPU7x: machines, disks, quotas, models and prices.",
        "catalog/generations.py",
        "looks at v6e alone.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "preemption-notice",
        "A machine that Google takes back reads TRUE at `instance/preempted` of its metadata up to 30 s before (120 s "
        "if its request sets a notice), or not at all, and it has the time to write one guest attribute.",
        "reconcile/attempt_status.py",
        "cannot see it: nothing provokes a preemption. Without a notice, the states of the slice show the loss.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "preemptible-fallback",
        "Spot and flex-start instances use the quota of on-demand ones in a region whose preemptible quota is 0.",
        "adapters/google/quotas.py",
        "cannot see which quota a request uses. Such a limit counts as unknown, unless both are 0.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "quota-of-stopped-instances",
        "An instance without a machine uses no quota of chips.",
        "adapters/google/quotas.py",
        "would have to stop a slice. Such an instance is not counted, so that no request is forbidden by mistake.",
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
        "Google remembers a request id for longer than a run takes to repeat a request.",
        "adapters/google/compute_engine/instances.py",
        "repeats a request within minutes only. The name is unique too.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "create-rate",
        "Compute Engine takes as many creates in a minute as the Cloud TPU API.",
        "engine/budget.py",
        "does not provoke a rate limit.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "shared-capacity",
        "The two APIs may sell the same chips of a zone.",
        "reconcile/placement.py",
        "cannot see Google's capacity. Each place is asked by itself.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "faulty-host",
        "Compute Engine takes the report of a faulty host under a TPU that is not reserved.",
        "adapters/google/compute_engine/instances.py",
        "reports no machine that works.",
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
        "needs a firewall rule for IAP's addresses, which it does not create.",
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
        "Google's registries take an access token as a bearer token.",
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
        "Compute Engine creates the machines of a TPU slice by a group in bulk mode, all of them or none, shows why it "
        "waits, and shows the state of their topology.",
        "adapters/google/compute_engine/groups.py",
        "rents one chip.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "group-names",
        "A group in bulk mode numbers its instances from 1 on by `baseInstanceName`, and its machines find each other "
        "by these names in the internal DNS.",
        "adapters/google/compute_engine/group_body.py",
        "rents one chip. A machine whose name is not in the list fails, and says so.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "group-recovery",
        "Compute Engine restarts all machines of a slice after a host error, with their names and their metadata.",
        "adapters/google/compute_engine/groups.py",
        "does not provoke a host error. A slice that lacks a machine is given back.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "billing-start",
        "A slice is billed from the creation of its machine, and only if it was ready once.",
        "reconcile/ledger_lines.py",
        "does not read the bill, which Google exports hours later. If billing starts later, costs are an upper bound.",
    ),
    _fact(
        RehearsalStage.ELSEWHERE,
        "larger-slices",
        "Slices of several hosts at the Cloud TPU API: the metadata that name the workers and their addresses, a "
        "report from each in one answer, a change of the metadata that reaches all, and Ray over them.",
        "node/render.py",
        "rents one chip.",
    ),
)


def facts_of(stage: RehearsalStage) -> tuple[CloudFact, ...]:
    """Return the facts that one stage looks at, in the order of the table."""
    return tuple(fact for fact in FACTS if fact.stage is stage)
