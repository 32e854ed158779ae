"""Why a request is refused: first by the scenario, then by the catalogue; and on which layer it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpudeploy.catalog import accelerator_type, generation
from tpudeploy.emulator import create_request, quota, texts, wire
from tpudeploy.emulator.compute_engine import quota as compute_quota
from tpudeploy.emulator.compute_engine import texts as compute_texts
from tpudeploy.emulator.faults import FAULTS
from tpudeploy.emulator.records import ChipRequest
from tpudeploy.emulator.trouble import Trouble
from tpudeploy.emulator.wire import ApiCall


def immediate_refusal(call: ApiCall, apis_off: Sequence[str]) -> wire.RpcStatus | None:
    """Return the refusal that the scenario gives as the reply itself (L1)."""
    pattern = create_request.pattern(call.body)
    facts = _facts(call.project, call.zone, pattern["type"], pattern["model"], service=call.service)
    facts |= {"method": call.method, "name": call.resource_id}
    if f"{call.service}.googleapis.com" in apis_off:
        return api_off(call.project, call.service)
    layer, status = _scripted(call.troubles, facts)
    return status if layer == "L1" else None


def api_off(project: str, service: str) -> wire.RpcStatus:
    """Return the refusal of an API that is not enabled; `service` is its name without the domain."""
    return texts.status("api-off", _facts(project, "", "", "", service=service))


def later_refusal(
    request: ChipRequest, troubles: Mapping[str, Trouble], flex_start_zones: Mapping[str, Sequence[str]]
) -> tuple[str, wire.RpcStatus | None]:
    """Return the layer (L2 or L3) and the refusal that an accepted request meets; "" and None for none.

    `flex_start_zones` says where a generation has flex-start, instead of the catalogue.
    """
    facts = _facts(request.project, request.zone, request.accelerator.name, request.model, service=request.service)
    facts |= {"method": request.create_method, "name": request.id}
    layer, status = _scripted(troubles, facts)
    if status is not None or request.model != "FLEX_START" or not request.accelerator.generation:
        return layer, status
    offer = generation(request.accelerator.generation)
    zones = flex_start_zones.get(offer.name, offer.flex_start_zones)
    if offer.zones and request.zone not in zones:
        status_of = compute_texts.status if request.service == "compute" else texts.status
        return "L2", status_of("model-unsupported", facts)
    return layer, status


def _scripted(troubles: Mapping[str, Trouble], facts: Mapping[str, str]) -> tuple[str, wire.RpcStatus | None]:
    for name, row in troubles.items():
        if FAULTS[name].kind == "refusal":
            if facts["service"] == "compute" and name in compute_texts.CAUSES:
                return _scripted_of_compute(name, row.settings, facts)
            settings = row.settings
            method = facts.get("method", "queuedResources.create")
            class_ = quota.class_of(facts["model"])
            type_ = accelerator_type(facts["type"])
            name_of_generation = facts["type"].partition("-")[0] if type_ is None else type_.generation
            details = {
                "quota": settings["quota"] or quota.quota_name(name_of_generation, class_, zonal=False),
                "limit": settings["limit"],
                "permission": f"tpu.{method}" if facts["service"] == "tpu" else method,
            }
            message, code = settings["message"], settings.get("code")
            status = texts.status(name, {**facts, **details}, message=message, code=code)
            return settings.get("layer") or texts.CAUSES[name].layer, status
    return "", None


def _scripted_of_compute(
    name: str, settings: Mapping[str, Any], facts: Mapping[str, str]
) -> tuple[str, wire.RpcStatus | None]:
    metric = compute_quota.metric(facts["type"], quota.class_of(facts["model"]))
    details = {
        "quota": settings["quota"] or metric,
        "limit": f"{settings['limit']:.1f}",
        "permission": facts["method"].replace(".insert", ".create"),
    }
    overrides = {"message": settings["message"], "code": settings.get("code")}
    status = compute_texts.status(name, {**facts, **details}, **overrides, zones_available=settings["zones_available"])
    return settings.get("layer") or compute_texts.CAUSES[name].layer, status


def _facts(project: str, zone: str, type_: str, model: str, *, service: str = "tpu") -> dict[str, str]:
    """Return what a text may name."""
    accelerator = accelerator_type(type_)
    machine = type_ if accelerator is None else accelerator.machine_type
    return {
        "project": project,
        "zone": zone,
        "region": zone.rpartition("-")[0],
        "type": type_,
        "machine": machine,
        "model": model,
        "parent": f"projects/{project}/locations/{zone}" if zone else f"projects/{project}",
        "service": service,
        "title": texts.TITLES.get(service, service),
    }
