"""A profile written from what stands in the cloud: for `import --generate`, to be read by a person before it holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from tpudeploy import catalog
from tpudeploy.catalog.flags import VLLM_VERSION
from tpudeploy.domain.deployment import Json, Provisioning
from tpudeploy.domain.found import CloudResource, is_label_of_ours
from tpudeploy.domain.names import Address
from tpudeploy.node.node import SPEC_KEY
from tpudeploy.planning.readback import Served, served

_SCRIPT = "startup-script"
_IMAGE = f"vllm/vllm-tpu:v{VLLM_VERSION}"


def serving_of(found: CloudResource) -> Served | None:
    """What its startup script starts, if the script is ours."""
    metadata = found.slice.metadata or found.asked.metadata
    return served(metadata.get(_SCRIPT, "")) if SPEC_KEY in metadata else None


def profile(found: CloudResource, address: Address, *, model: str | None) -> str | None:
    """Its YAML text; None where nothing tells what it serves, and `model` does not either.

    What Google fills in by itself is written where it is told, but for what a profile would say by default.
    """
    known = serving_of(found)
    if known is None and model is None:
        return None
    said = known or Served(model={}, serving={"image": _IMAGE}, secrets={})
    kind = catalog.accelerator_type(found.asked.accelerator_type)
    runtime = None if kind is None else catalog.generation(kind.generation).runtime_version
    asked = found.asked
    tree: dict[str, Json] = {
        "version": 1,
        "name": address.deployment,
        "model": {**said.model, **({"id": model} if model is not None else {})},
        "tpu": _filled(
            {
                "type": asked.accelerator_type or None,
                "runtime_version": None if asked.runtime_version == runtime else asked.runtime_version,
                "boot_disk_size": None if asked.boot_disk_gib is None else f"{asked.boot_disk_gib}GiB",
            }
        ),
        "serving": {key: value for key, value in said.serving.items() if (key, value) != _named(address)},
        "secrets": dict(said.secrets),
        "placement": _filled(dict(_placement(found))),
    }
    if address.replica:
        tree["replicas"] = address.replica + 1
    head = f"# Written from {found.path}, as it stands. Read it before you apply it.\n"
    return head + "".join(_lines({key: value for key, value in tree.items() if value != {}}))


def _named(address: Address) -> tuple[str, Json]:
    """A container is called after its deployment unless a profile says otherwise."""
    return ("container_name", address.deployment)


def _placement(found: CloudResource) -> Iterator[tuple[str, Json]]:
    asked = found.asked
    yield "project", found.ref.project
    yield "zones", [str(found.ref.zone)]
    yield "provisioning", [str(asked.provisioning)]
    if asked.provisioning is Provisioning.RESERVED:
        yield "reservation", asked.reservation
    yield "max_run_duration", None if asked.max_run_seconds is None else f"{asked.max_run_seconds:.0f}s"
    network = (asked.network or "").rpartition("/")[2]
    yield (
        "network",
        _filled(
            {
                "network": None if network in {"", "default"} else asked.network,
                "subnetwork": asked.subnetwork,
                "external_ip": None if asked.external_ip in {None, True} else False,
                "tags": list(asked.tags) or None,
            }
        )
        or None,
    )
    yield "service_account", asked.service_account
    labels = found.slice.labels or asked.labels
    yield "labels", {key: value for key, value in labels.items() if not is_label_of_ours(key)} or None


def _filled(of: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in of.items() if value is not None}


def _lines(of: Mapping[str, Json], indent: str = "") -> Iterator[str]:
    """Sections a line an entry, whatever is deeper as JSON, which YAML understands."""
    for key, value in of.items():
        if isinstance(value, dict) and value and (not indent or key == "args"):
            yield f"{indent}{key}:\n"
            yield from _lines(value, f"{indent}  ")
        else:
            # A dollar of the value's own must not be taken for one of ours.
            yield f"{indent}{key}: {json.dumps(value, ensure_ascii=False).replace('$', '$$')}\n"
