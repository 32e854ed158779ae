"""BACKENDS: how the APIs of Google differ through which a slice is requested, one row each.

What they are asked, and how, is in adapters/google; what a generation is at each of them, in generations.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.frozen import frozen


@frozen
class BackendFacts:
    """What differs between the APIs.

    `resources` are what slices are there, and `types` what the API calls their sizes. `resource_path` is the path that
    `import` takes. `quota_limit` is the limit that counts, and `quota_advice` how to have a higher one. `admin_role`
    is the predefined role with all permissions that a deployment needs. `has_end_states`: a resource stays in a state
    that says why it ended; otherwise it is deleted without a word.
    """

    service: str
    resources: str
    types: str
    resource_path: str
    quota_limit: str
    quota_advice: str
    admin_role: str
    has_end_states: bool


BACKENDS: Mapping[Backend, BackendFacts] = {
    Backend.QUEUED_RESOURCE: BackendFacts(
        service="tpu.googleapis.com",
        resources="queued resources",
        types="accelerator types",
        resource_path="projects/{project}/locations/{zone}/queuedResources/{name}",
        quota_limit="the smaller limit",
        quota_advice="Ask for more on the console's quota page of tpu.googleapis.com: a zone's and its region's limit "
        "both count.",
        admin_role="roles/tpu.admin",
        has_end_states=True,
    ),
    Backend.GCE_INSTANCE: BackendFacts(
        service="compute.googleapis.com",
        resources="instances of Compute Engine",
        types="machine types",
        resource_path="projects/{project}/zones/{zone}/instances/{name}",
        quota_limit="the region's limit",  # Compute Engine limits chips by region alone
        quota_advice="Ask for more on the console's quota page of compute.googleapis.com.",
        admin_role="roles/compute.instanceAdmin.v1",
        has_end_states=False,
    ),
}
