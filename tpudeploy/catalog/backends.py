"""BACKENDS: how the APIs of Google differ through which a slice is requested, one row each.

What they are asked, and how, is in adapters/google; what a generation is at each of them, in generations.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.slices import SliceRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """The durations that an API accepts, as a profile has them: of a run, and of the wait of a flex-start request."""

    shortest_run: str
    shortest_flex_run: str
    shortest_wait: str
    longest_wait: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendFacts:
    """What differs between the APIs.

    `api` is its name in a sentence. `resource` and `resources` are what a slice is there, and `types` what the API
    calls their sizes. `forms` are these resources with an article, and `paths` their paths, that of `resource` first.
    `import_id` is the shortest id by which `import` finds one; `list_command` and `delete_command` are of gcloud.

    `deletion` is the request by which a slice deletes itself, and `deletion_permissions` what it needs; those of a
    slice of several hosts are `group_deletion` and `group_deletion_permissions`.

    `quota_limit` is the limit that counts, and `quota_advice` how to have a higher one. `permissions` are those that a
    slice of one host needs, with what each allows, and `group_permissions` those of several hosts beside them, where
    such a slice is a group. `admin_role` is the predefined role with all of them, `viewer_role` the one that lists.

    `has_end_states`: a resource stays in a state that says why it ended; otherwise it is deleted without a word.
    `lists_runtimes`: each zone lists the runtimes of its machines. `image_has_docker`: that of its default runtime.
    `reports_hosts`: it has a call that reports a faulty host. `durations` is None where the profile's limits suffice.
    """

    api: str
    service: str
    resource: str
    resources: str
    forms: tuple[str, ...]
    types: str
    paths: tuple[str, ...]
    import_id: str
    list_command: str
    delete_command: str
    deletion: str
    deletion_permissions: tuple[str, ...]
    group_deletion: str
    group_deletion_permissions: tuple[str, ...]
    quota_limit: str
    quota_advice: str
    permissions: Mapping[str, str]
    group_permissions: Mapping[str, str]
    admin_role: str
    viewer_role: str
    has_end_states: bool
    lists_runtimes: bool
    image_has_docker: bool
    reports_hosts: bool
    durations: Durations | None

    @property
    def has_groups(self) -> bool:
        """Return whether a slice of several hosts is a group of resources, which has requests of its own."""
        return bool(self.group_permissions)

    def deletion_of(self, hosts: int) -> tuple[str, tuple[str, ...]]:
        """Return the request by which a slice with this number of hosts deletes itself, and what it needs."""
        if hosts > 1:
            return self.group_deletion, self.group_deletion_permissions
        return self.deletion, self.deletion_permissions


_QUEUED_RESOURCE_DELETION = (
    "https://tpu.googleapis.com/v2alpha1/projects/{project}/locations/{zone}/queuedResources/{name}?force=true"
)
BACKENDS: Mapping[Backend, BackendFacts] = {
    Backend.QUEUED_RESOURCE: BackendFacts(
        api="the TPU API",
        service="tpu.googleapis.com",
        resource="queued resource",
        resources="queued resources",
        forms=("a queued resource",),
        types="accelerator types",
        paths=("projects/{project}/locations/{zone}/queuedResources/{name}",),
        import_id="{project}/{zone}/{name}",
        list_command="gcloud compute tpus queued-resources list --project={project} --zone=ZONE",
        delete_command="gcloud compute tpus queued-resources delete NAME --zone=ZONE --force",
        deletion=_QUEUED_RESOURCE_DELETION,
        deletion_permissions=("tpu.nodes.delete",),
        group_deletion=_QUEUED_RESOURCE_DELETION,  # which is one resource with any number of hosts
        group_deletion_permissions=("tpu.nodes.delete",),
        quota_limit="the smaller limit",
        quota_advice="Ask for more on the console's quota page of tpu.googleapis.com: a zone's and its region's limit "
        "both count.",
        # Google publishes none for queued resources; that those of nodes apply to them is unverified.
        permissions={
            "tpu.nodes.create": "request a slice",
            "tpu.nodes.get": "look at one",
            "tpu.nodes.list": "see what is held",
            "tpu.nodes.update": "change one in place",
            "tpu.nodes.reset": "restart a server",
            "tpu.nodes.delete": "delete one",
            "tpu.operations.get": "learn why one was refused",
            "tpu.locations.list": "list zones",
            "tpu.acceleratortypes.list": "list what zones have",
        },
        group_permissions={},
        admin_role="roles/tpu.admin",
        viewer_role="roles/tpu.viewer",
        has_end_states=True,
        lists_runtimes=True,
        image_has_docker=True,
        reports_hosts=False,  # none of the API's discovery documents names such a call
        durations=None,
    ),
    Backend.GCE_INSTANCE: BackendFacts(
        api="Compute Engine",
        service="compute.googleapis.com",
        resource="instance",
        resources="instances of Compute Engine",
        forms=("an instance", "a group of instances"),
        types="machine types",
        paths=(
            "projects/{project}/zones/{zone}/instances/{name}",
            "projects/{project}/regions/{region}/instanceGroupManagers/{name}",
        ),
        import_id="projects/{project}/zones/{zone}/instances/{name}",
        list_command="gcloud compute instances list --project={project}",
        delete_command="gcloud compute instances delete NAME --zone=ZONE",
        deletion="https://compute.googleapis.com/compute/v1/projects/{project}/zones/{zone}/instances/{name}",
        deletion_permissions=("compute.instances.delete",),
        # That Google deletes the instances of a group without a permission for them is UNVERIFIED.
        group_deletion="https://compute.googleapis.com/compute/v1/projects/{project}/regions/{region}/instanceGroupManagers/{name}",
        group_deletion_permissions=("compute.instanceGroupManagers.delete",),
        quota_limit="the region's limit",  # Compute Engine limits chips by region alone
        quota_advice="Ask for more on the console's quota page of compute.googleapis.com.",
        permissions={
            "compute.instances.create": "request a slice",
            "compute.disks.create": "give it a disk",
            "compute.instances.get": "look at one",
            "compute.instances.list": "see what is held",
            "compute.instances.setMetadata": "change one in place",
            "compute.instances.setLabels": "label one",
            "compute.instances.reset": "restart a server",
            "compute.instances.delete": "delete one",
            "compute.zoneOperations.get": "learn why one was refused",
            "compute.machineTypes.list": "list what zones have",
        },
        group_permissions={
            "compute.resourcePolicies.create": "create a workload policy",
            "compute.resourcePolicies.use": "give a workload policy to a group",
            "compute.resourcePolicies.list": "find a workload policy again",
            "compute.resourcePolicies.delete": "delete a workload policy",
            "compute.instanceTemplates.create": "create an instance template",
            "compute.instanceTemplates.list": "find an instance template again",
            "compute.instanceTemplates.delete": "delete an instance template",
            "compute.instanceGroupManagers.create": "request a group of instances",
            "compute.instanceGroupManagers.get": "look at a group of instances",
            "compute.instanceGroupManagers.delete": "delete a group of instances",
            "compute.regionOperations.get": "learn why a group was refused",
        },
        admin_role="roles/compute.instanceAdmin.v1",
        viewer_role="roles/compute.viewer",
        has_end_states=False,
        lists_runtimes=False,
        image_has_docker=False,
        reports_hosts=True,
        # Of `maxRunDuration`, for the other models and for flex-start, and of `requestValidForDuration`, which
        # flex-start alone has.
        durations=Durations(shortest_run="30s", shortest_flex_run="10m", shortest_wait="90s", longest_wait="2h"),
    ),
}


def import_id(ref: SliceRef) -> str:
    """Return the id by which `import` finds a slice: a name can exist in two zones, and at two APIs."""
    return BACKENDS[ref.backend].import_id.format(project=ref.project, zone=ref.zone, name=ref.name)
