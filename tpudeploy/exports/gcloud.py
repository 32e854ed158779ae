"""The first request of an apply as a shell script for gcloud.

The flags are those of `gcloud alpha compute tpus queued-resources create`, by Google's reference of 2026-11: only the
alpha command has --provisioning-model and --max-run-duration.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from tpudeploy.domain.deployment import Deployment, Provisioning
from tpudeploy.domain.slices import SliceRequest
from tpudeploy.exports.export import Export
from tpudeploy.node.node_facts import SCRIPT_KEY

_GROUP = "gcloud alpha compute tpus queued-resources"
_SETTINGS = "set -euo pipefail"


def export_gcloud(deployment: Deployment, request: SliceRequest) -> Export:
    """Return a script that sends `request` with gcloud."""
    script = request.metadata[SCRIPT_KEY]
    end = _unused_line(script, "STARTUP_SCRIPT")
    script_flag = f'--metadata-from-file={SCRIPT_KEY}="$script"'
    create = " \\\n  ".join((f"{_GROUP} create {request.name}", *map(shlex.quote, _flags(request)), script_flag))
    place = f"--project={shlex.quote(request.project)} --zone={request.zone}"
    return Export(
        title=f"{deployment.name}: the first request that `tpudeploy apply` would send, as a gcloud command.",
        body="\n".join(
            (
                "",
                _SETTINGS,
                "",
                "script=$(mktemp)",
                "trap 'rm -f \"$script\"' EXIT",
                f"cat >\"$script\" <<'{end}'",
                script.removesuffix("\n"),
                end,
                "",
                create,
                "",
                f"# Look at it: {_GROUP} describe {request.name} {place}",
                f"# Delete it:  {_GROUP} delete {request.name} --force {place}",
                "",
            )
        ),
        missing=tuple(_missing(deployment, request)),
    )


def _flags(request: SliceRequest) -> Iterator[str]:
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
    yield f"--labels={_pairs(request.labels)}"
    yield f"--metadata={_pairs({key: value for key, value in request.metadata.items() if key != SCRIPT_KEY})}"
    yield "--async"


def _network_flags(request: SliceRequest) -> Iterator[str]:
    if request.network is not None:
        yield f"--network={request.network}"
    if request.subnetwork is not None:
        yield f"--subnetwork={request.subnetwork}"
    if not request.external_ip:
        yield "--internal-ips"
    if request.tags:
        yield f"--tags={','.join(request.tags)}"


def _missing(deployment: Deployment, request: SliceRequest) -> Iterator[str]:
    others = len(deployment.candidates) - 1
    if others:
        yield f"The {others} other zones and provisioning models of the profile: gcloud requests this one alone, once."
    if deployment.replicas > 1:
        yield f"{deployment.replicas - 1} more replicas: run it again with another name."
    yield f"A boot disk of {request.boot_disk_gib} GB: whether a flag sets its size is not verified."
    yield "A state: tpudeploy finds this request by its labels (`tpudeploy gc`), and `tpudeploy import` adopts it."


def _pairs(values: Mapping[str, str]) -> str:
    """Return a value of gcloud's dictionary flags. Labels and our metadata contain no comma."""
    return ",".join(f"{key}={value}" for key, value in values.items())


def _unused_line(text: str, word: str) -> str:
    """Return a line that is not in the text, to end a here-document with."""
    lines = set(text.splitlines())
    while word in lines:
        word += "_"
    return word
