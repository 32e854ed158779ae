"""The request for one slice: its labels, its metadata, its place. It is data for the cloud adapter."""

from __future__ import annotations

from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.config.scalars import Duration
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import MACHINE_IMAGE, Candidate, Deployment, Provisioning
from tpudeploy.domain.errors import ConfigError
from tpudeploy.domain.names import SliceName
from tpudeploy.domain.orphans import labels_of
from tpudeploy.domain.slices import SliceRequest
from tpudeploy.node.fingerprint import server_print
from tpudeploy.node.node_facts import AS_REQUESTED, CHANGE_KEY, SCRIPT_KEY, SPEC_KEY
from tpudeploy.node.own_end import END_KEY, end_value


def slice_request(
    deployment: Deployment,
    name: SliceName,
    place: Candidate,
    *,
    serving_since: float | None = None,
    now: float | None = None,
) -> SliceRequest:
    """Return the request for a slice in this place. Raise `errors.ConfigError` if no project is known.

    `serving_since` is when the deployment first served, in seconds since the epoch, or None. `now` is when it is sent,
    None for a text that is only shown.
    """
    if deployment.project is None:
        raise ConfigError(
            "No Google Cloud project is set.",
            hint="Set placement.project in the profile, or GOOGLE_CLOUD_PROJECT.",
        )
    return SliceRequest(
        name=str(name),
        project=deployment.project,
        zone=place.zone,
        provisioning=place.provisioning,
        accelerator_type=deployment.accelerator.name,
        runtime_version=deployment.runtimes[place.backend],
        machine_image=_machine_image(deployment, place.backend),
        boot_disk_gib=deployment.boot_disk_gib,
        metadata={
            **boot_metadata(deployment, server_print(deployment.attributes)),
            END_KEY: end_value(deployment, str(name), place.place, since=serving_since, now=now),
        },
        # Queued resources have no labels: these are the node's, the user's and ours.
        labels={**deployment.labels, **labels_of(name)},
        network=deployment.network.network,
        subnetwork=deployment.network.subnetwork,
        external_ip=deployment.network.external_ip,
        tags=deployment.network.tags,
        service_account=deployment.service_account,
        reservation=deployment.reservation if place.provisioning is Provisioning.RESERVED else None,
        max_run_seconds=deployment.max_run_seconds,
        valid_until_seconds=valid_until_seconds(deployment, place),
        backend=place.backend,
    )


def _machine_image(deployment: Deployment, backend: Backend) -> str | None:
    image = deployment.attributes_at(backend).get(MACHINE_IMAGE)
    return None if image is None else str(image)


def valid_until_seconds(deployment: Deployment, place: Candidate) -> float:
    """Return how long a request waits there: as the profile has it, or the longest that the backend accepts."""
    durations = BACKENDS[place.backend].durations
    if durations is None or place.provisioning is not Provisioning.FLEX_START:
        return deployment.valid_until_seconds
    return min(deployment.valid_until_seconds, Duration.parse(durations.longest_wait))


def boot_metadata(deployment: Deployment, spec: str, change: str = AS_REQUESTED) -> dict[str, str]:
    """Return the metadata that the machine reads at boot, and its watcher while it runs.

    Guest attributes need the switch on Compute Engine (unverified on TPU VMs).
    """
    return {
        SCRIPT_KEY: str(deployment.startup_script),
        SPEC_KEY: spec,
        CHANGE_KEY: change,
        "enable-guest-attributes": "TRUE",
    }
