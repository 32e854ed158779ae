"""Write a profile from a slice in the cloud, for `import --generate`. A user reads it before they apply it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from tpudeploy import catalog
from tpudeploy.catalog.flags import VLLM_VERSION
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Json, Provisioning
from tpudeploy.domain.names import Address
from tpudeploy.domain.orphans import CloudResource, is_label_of_ours
from tpudeploy.node.node_facts import SCRIPT_KEY, SPEC_KEY
from tpudeploy.planning.readback import ScriptServer, read_script

_IMAGE = f"vllm/vllm-tpu:v{VLLM_VERSION}"


def write_profile(resource: CloudResource, address: Address, *, model: str | None) -> str | None:
    """Return the YAML text, or None if neither the startup script nor `model` says what the slice serves.

    Values that Google fills in are written if the cloud shows them, unless they are a profile's default.
    """
    metadata = resource.slice.metadata or resource.asked.metadata
    server = read_script(metadata.get(SCRIPT_KEY, "")) if SPEC_KEY in metadata else None
    if server is None and model is None:
        return None
    server = server or ScriptServer(model={}, serving={"image": _IMAGE}, secrets={})
    # A container has the name of its deployment unless the profile says otherwise.
    default_name = ("container_name", address.deployment)
    tree: dict[str, Json] = {
        "version": 1,
        "name": address.deployment,
        "model": {**server.model, **({"id": model} if model is not None else {})},
        "tpu": _tpu(resource),
        "serving": {key: value for key, value in server.serving.items() if (key, value) != default_name},
        "secrets": dict(server.secrets),
        "placement": _placement(resource),
    }
    if address.replica:
        tree["replicas"] = address.replica + 1
    head = f"# Generated from {resource.path}. Review it before you apply it.\n"
    return head + "".join(_lines({key: value for key, value in tree.items() if value != {}}))


def _tpu(resource: CloudResource) -> dict[str, Json]:
    request = resource.asked
    kind = catalog.accelerator_type(request.accelerator_type)
    generation = None if kind is None else catalog.generation(kind.generation)
    backend, default_runtime = resource.ref.backend, None
    if generation is not None and backend in generation.backends:
        default_runtime = generation.runtime_of(backend)
    return _without_absent(
        {
            "type": request.accelerator_type or None,
            "runtime_version": None if request.runtime_version == default_runtime else request.runtime_version,
            "boot_disk_size": None if request.boot_disk_gib is None else f"{request.boot_disk_gib}GiB",
        }
    )


def _placement(resource: CloudResource) -> dict[str, Json]:
    request = resource.asked
    is_reserved = request.provisioning is Provisioning.RESERVED
    has_default_network = (request.network or "").rpartition("/")[2] in {"", "default"}
    network = _without_absent(
        {
            "network": None if has_default_network else request.network,
            "subnetwork": request.subnetwork,
            "external_ip": None if request.external_ip in {None, True} else False,
            "tags": list(request.tags) or None,
        }
    )
    labels = resource.slice.labels or request.labels
    return _without_absent(
        {
            "project": resource.ref.project,
            "backend": None if resource.ref.backend is Backend.QUEUED_RESOURCE else str(resource.ref.backend),
            "zones": [str(resource.ref.zone)],
            "provisioning": [str(request.provisioning)],
            "reservation": request.reservation if is_reserved else None,
            "max_run_duration": None if request.max_run_seconds is None else f"{request.max_run_seconds:.0f}s",
            "network": network or None,
            "service_account": request.service_account,
            "labels": {key: value for key, value in labels.items() if not is_label_of_ours(key)} or None,
        }
    )


def _without_absent(tree: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in tree.items() if value is not None}


def _lines(tree: Mapping[str, Json], indent: str = "") -> Iterator[str]:
    """Yield one line for each entry of a section. Deeper values are written as JSON, which is also YAML."""
    for key, value in tree.items():
        if isinstance(value, dict) and value and (not indent or key == "args"):
            yield f"{indent}{key}:\n"
            yield from _lines(value, f"{indent}  ")
        else:
            # A dollar in a value must not be read as an interpolation.
            yield f"{indent}{key}: {json.dumps(value, ensure_ascii=False).replace('$', '$$')}\n"
