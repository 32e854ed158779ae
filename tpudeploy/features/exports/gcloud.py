"""The first request of an apply as a shell script for gcloud.

The flags of queued resources are those of `gcloud alpha`, by Google's reference of 2026-11: only that command has
--provisioning-model and --max-run-duration. Those of instances are of `gcloud beta`. None was run on a real project.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Deployment, Provisioning
from tpudeploy.domain.slices import SliceRequest
from tpudeploy.features.exports import Export, missing_rules
from tpudeploy.node.node_facts import SCRIPT_KEY


def export_gcloud(deployment: Deployment, request: SliceRequest, body: Mapping[str, Any]) -> Export:
    """Return a script that sends `request` with gcloud. `body` is what tpudeploy would send."""
    row = _GROUPS[request.backend]
    flags, group = row.flags(request, body), row.command
    script = request.metadata[SCRIPT_KEY]
    end = _unused_line(script, "STARTUP_SCRIPT")
    script_flag = f'--metadata-from-file={SCRIPT_KEY}="$script"'
    create = " \\\n  ".join((f"{group} create {request.name}", *map(shlex.quote, flags), "--async", script_flag))
    place = f"--project={shlex.quote(request.project)} --zone={request.zone}"
    return Export(
        title=f"{deployment.name}: the first request that `tpudeploy apply` would send, as a gcloud command.",
        body="\n".join(
            (
                "",
                "set -euo pipefail",
                "",
                "script=$(mktemp)",
                "trap 'rm -f \"$script\"' EXIT",
                f"cat >\"$script\" <<'{end}'",
                script.removesuffix("\n"),
                end,
                "",
                create,
                "",
                f"# Look at it: {group} describe {request.name} {place}",
                f"# Delete it:  {group} delete {request.name} {row.delete_flag} {place}",
                "",
            )
        ),
        missing=tuple(_missing(deployment, request)),
    )


def _instance_flags(request: SliceRequest, body: Mapping[str, Any]) -> Iterator[str]:
    disk, scheduling = body["disks"][0]["initializeParams"], body["scheduling"]
    image_project, image_name = disk["sourceImage"].split("/")[1], _last_word(disk["sourceImage"])
    image_option = "image-family" if "/family/" in disk["sourceImage"] else "image"
    yield f"--project={request.project}"
    yield f"--zone={request.zone}"
    yield f"--machine-type={_last_word(body['machineType'])}"
    yield f"--image-project={image_project}"
    yield f"--{image_option}={image_name}"
    yield f"--boot-disk-size={disk['diskSizeGb']}GB"
    yield f"--boot-disk-type={_last_word(disk['diskType'])}"
    yield f"--provisioning-model={scheduling['provisioningModel']}"
    yield f"--maintenance-policy={scheduling['onHostMaintenance']}"
    yield "--restart-on-failure" if scheduling["automaticRestart"] else "--no-restart-on-failure"
    if "instanceTerminationAction" in scheduling:
        yield f"--instance-termination-action={scheduling['instanceTerminationAction']}"
    if "maxRunDuration" in scheduling:
        yield f"--max-run-duration={scheduling['maxRunDuration']['seconds']}s"
    if "params" in body:
        yield f"--request-valid-for-duration={body['params']['requestValidForDuration']['seconds']}s"
    yield from _reservation_flags(body["reservationAffinity"])
    if "advancedMachineFeatures" in body:
        yield f"--threads-per-core={body['advancedMachineFeatures']['threadsPerCore']}"
    yield from _network_flags(request)
    yield "--scopes=cloud-platform"
    if request.service_account is not None:
        yield f"--service-account={request.service_account}"
    yield from _text_flags(request)


def _reservation_flags(affinity: Mapping[str, Any]) -> Iterator[str]:
    if "values" in affinity:
        yield "--reservation-affinity=specific"
        yield f"--reservation={affinity['values'][0]}"
    else:
        yield "--reservation-affinity=none"


def _queued_resource_flags(request: SliceRequest, _body: Mapping[str, Any]) -> Iterator[str]:
    yield f"--project={request.project}"
    yield f"--zone={request.zone}"
    yield f"--node-id={request.name}"
    yield f"--accelerator-type={request.accelerator_type}"
    yield f"--runtime-version={request.runtime_version}"
    yield f"--valid-until-duration={request.valid_until_seconds:.0f}s"
    match request.provisioning:
        case Provisioning.FLEX_START | Provisioning.SPOT:
            yield f"--provisioning-model={request.provisioning}"
        case Provisioning.RESERVED:
            yield "--reserved"
            if request.reservation:
                yield f"--reservation={request.reservation}"
        case Provisioning.ON_DEMAND:
            pass
    if request.max_run_seconds is not None:
        yield f"--max-run-duration={request.max_run_seconds:.0f}s"
    yield from _network_flags(request)
    if request.service_account is not None:
        yield f"--service-account={request.service_account}"
        yield "--scopes=cloud-platform"
    yield from _text_flags(request)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """A command group of gcloud, and how its flags are named. `sets_disk_size`: one of them sets the boot disk's."""

    command: str
    flags: Callable[[SliceRequest, Mapping[str, Any]], Iterator[str]]
    delete_flag: str
    subnetwork_flag: str
    internal_flag: str
    sets_disk_size: bool


_GROUPS: Mapping[Backend, _Group] = {
    Backend.QUEUED_RESOURCE: _Group(
        command="gcloud alpha compute tpus queued-resources",
        flags=_queued_resource_flags,
        delete_flag="--force",
        subnetwork_flag="--subnetwork",
        internal_flag="--internal-ips",
        sets_disk_size=False,
    ),
    Backend.GCE_INSTANCE: _Group(
        command="gcloud beta compute instances",
        flags=_instance_flags,
        delete_flag="--quiet",
        subnetwork_flag="--subnet",
        internal_flag="--no-address",
        sets_disk_size=True,
    ),
}


def _network_flags(request: SliceRequest) -> Iterator[str]:
    if request.network is not None:
        yield f"--network={request.network}"
    row = _GROUPS[request.backend]
    if request.subnetwork is not None:
        yield f"{row.subnetwork_flag}={request.subnetwork}"
    if not request.external_ip:
        yield row.internal_flag
    if request.tags:
        yield f"--tags={','.join(request.tags)}"


def _text_flags(request: SliceRequest) -> Iterator[str]:
    """Yield the labels and the metadata but for the script. Neither contains a comma, gcloud's separator."""
    metadata = {key: value for key, value in request.metadata.items() if key != SCRIPT_KEY}
    for flag, values in (("labels", request.labels), ("metadata", metadata)):
        yield f"--{flag}={','.join(f'{key}={value}' for key, value in values.items())}"


def _missing(deployment: Deployment, request: SliceRequest) -> Iterator[str]:
    others = len(deployment.candidates) - 1
    if others:
        kinds = (
            "zones and provisioning models" if len(deployment.backends) == 1 else "zones, provisioning models and APIs"
        )
        yield f"The {others} other {kinds} of the profile: gcloud requests this one alone, once."
    yield from missing_rules(deployment)
    if deployment.replicas > 1:
        yield f"{deployment.replicas - 1} more replicas: run it again with another name."
    if not _GROUPS[request.backend].sets_disk_size:
        yield f"A boot disk of {request.boot_disk_gib} GB: whether a flag sets its size is not verified."
    yield "A state: tpudeploy finds this request by its labels (`tpudeploy gc`), and `tpudeploy import` adopts it."


def _last_word(path: str) -> str:
    return path.rpartition("/")[2]


def _unused_line(text: str, word: str) -> str:
    """Return a line that is not in the text, to end a here-document with."""
    lines = set(text.splitlines())
    while word in lines:
        word += "_"
    return word
