"""The body of a slice's first request, without a connection: what `render` prints and exports translate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tpudeploy.adapters.google.body import queued_resource
from tpudeploy.adapters.google.compute_engine import group_body
from tpudeploy.adapters.google.compute_engine.body import instance
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.slices import SliceRequest


def request_body(request: SliceRequest) -> dict[str, Any]:
    return _BODIES[request.backend](request)


def _instance_or_group(request: SliceRequest) -> dict[str, Any]:
    kind = group_body.slice_type(request.accelerator_type)
    return instance(request) if kind is None else group_body.requests(request, kind)


_BODIES: Mapping[Backend, Callable[[SliceRequest], dict[str, Any]]] = {
    Backend.QUEUED_RESOURCE: queued_resource,
    Backend.GCE_INSTANCE: _instance_or_group,
}
