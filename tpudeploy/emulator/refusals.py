"""Why a request is refused: the scenario's word first, then the catalogue's; and on which layer it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpudeploy.catalog import generation
from tpudeploy.emulator import asked, quota, texts, wire
from tpudeploy.emulator.call import Call
from tpudeploy.emulator.faults import FAULTS
from tpudeploy.emulator.records import QueuedResource
from tpudeploy.emulator.trouble import Trouble


def at_once(call: Call, troubles: Mapping[str, Trouble], off: Sequence[str]) -> wire.Status | None:
    """The refusal that the scenario gives as the reply itself (L1); `off` are the APIs that nobody enabled."""
    words = asked.pattern(call.body)
    facts = _facts(call.project, call.zone, words["type"], words["model"], service=call.service)
    facts["method"] = call.method
    if f"{call.service}.googleapis.com" in off:
        return texts.status("api-off", facts)
    layer, status = _scripted(troubles, facts)
    return status if layer == "L1" else None


def beyond_the_reply(slice_: QueuedResource, troubles: Mapping[str, Trouble]) -> tuple[str, wire.Status | None]:
    """The layer (L2 or L3) and the refusal that a request meets which was taken; "" and None for none."""
    facts = _facts(slice_.project, slice_.zone, slice_.accelerator.name, slice_.model)
    layer, status = _scripted(troubles, facts)
    offered = generation(slice_.accelerator.generation)
    if (
        status is None
        and slice_.model == "FLEX_START"
        and offered.zones
        and slice_.zone not in offered.flex_start_zones
    ):
        return "L2", texts.status("model-unsupported", facts)
    return layer, status


def _scripted(troubles: Mapping[str, Trouble], facts: Mapping[str, str]) -> tuple[str, wire.Status | None]:
    for name, row in troubles.items():
        if FAULTS[name].kind == "refusal":
            told = row.told()
            return told.get("layer") or texts.CAUSES[name].layer, _status(name, told, facts)
    return "", None


def _status(name: str, told: Mapping[str, Any], facts: Mapping[str, str]) -> wire.Status:
    generation_name, class_ = facts["type"].partition("-")[0], quota.class_of(facts["model"])
    named = told["quota"] or quota.quota_name(generation_name, class_, zonal=False)
    method = facts.get("method", "queuedResources.create")
    permission = f"tpu.{method}" if facts["service"] == "tpu" else method
    filled = {**facts, "quota": named, "limit": told["limit"], "permission": permission}
    return texts.status(name, filled, message=told["message"], code=told.get("code"))


def _facts(project: str, zone: str, type_: str, model: str, *, service: str = "tpu") -> dict[str, str]:
    """What a text may name."""
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
