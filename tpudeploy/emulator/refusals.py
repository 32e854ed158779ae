"""Why a request is refused: first by the scenario, then by the catalogue; and on which layer it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tpudeploy.catalog import generation
from tpudeploy.emulator import create_request, quota, texts, wire
from tpudeploy.emulator.faults import FAULTS
from tpudeploy.emulator.records import QueuedResource
from tpudeploy.emulator.trouble import Trouble
from tpudeploy.emulator.wire import Call


def immediate_refusal(call: Call, apis_off: Sequence[str]) -> wire.Status | None:
    """Return the refusal that the scenario gives as the reply itself (L1)."""
    pattern = create_request.pattern(call.body)
    facts = _facts(call.project, call.zone, pattern["type"], pattern["model"], service=call.service)
    facts["method"] = call.method
    if f"{call.service}.googleapis.com" in apis_off:
        return texts.status("api-off", facts)
    layer, status = _scripted(call.troubles, facts)
    return status if layer == "L1" else None


def later_refusal(slice_: QueuedResource, troubles: Mapping[str, Trouble]) -> tuple[str, wire.Status | None]:
    """Return the layer (L2 or L3) and the refusal that an accepted request meets; "" and None for none."""
    facts = _facts(slice_.project, slice_.zone, slice_.accelerator.name, slice_.model)
    layer, status = _scripted(troubles, facts)
    offer = generation(slice_.accelerator.generation)
    lacks_flex_start = bool(offer.zones) and slice_.zone not in offer.flex_start_zones
    if status is None and slice_.model == "FLEX_START" and lacks_flex_start:
        return "L2", texts.status("model-unsupported", facts)
    return layer, status


def _scripted(troubles: Mapping[str, Trouble], facts: Mapping[str, str]) -> tuple[str, wire.Status | None]:
    for name, row in troubles.items():
        if FAULTS[name].kind == "refusal":
            settings = row.settings
            method = facts.get("method", "queuedResources.create")
            class_ = quota.class_of(facts["model"])
            details = {
                "quota": settings["quota"] or quota.quota_name(facts["type"].partition("-")[0], class_, zonal=False),
                "limit": settings["limit"],
                "permission": f"tpu.{method}" if facts["service"] == "tpu" else method,
            }
            message, code = settings["message"], settings.get("code")
            status = texts.status(name, {**facts, **details}, message=message, code=code)
            return settings.get("layer") or texts.CAUSES[name].layer, status
    return "", None


def _facts(project: str, zone: str, type_: str, model: str, *, service: str = "tpu") -> dict[str, str]:
    """Return what a text may name."""
    return {
        "project": project,
        "zone": zone,
        "region": zone.rpartition("-")[0],
        "type": type_,
        "model": model,
        "parent": f"projects/{project}/locations/{zone}" if zone else f"projects/{project}",
        "service": service,
        "title": texts.TITLES.get(service, service),
    }
