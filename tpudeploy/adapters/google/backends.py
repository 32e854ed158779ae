"""Send each slice's calls to the API that it was requested from, and merge the answers for several slices.

The client of Compute Engine is made when a slice or a search needs it: its document takes long to read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property

from tpudeploy import catalog
from tpudeploy.adapters.google import transport
from tpudeploy.adapters.google.cloud_tpu import CloudTpu
from tpudeploy.adapters.google.compute_engine.groups import BulkGroups
from tpudeploy.adapters.google.compute_engine.instances import ComputeEngine
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.verdicts import hint_for
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.host_fault import HostFault
from tpudeploy.domain.names import Zone
from tpudeploy.domain.orphans import Listing
from tpudeploy.domain.slices import BootReport, NodeUpdate, Slice, SliceEnd, SliceRef, SliceRequest
from tpudeploy.ports import Clock


class Backends:
    """See `ports.TpuCloud`. `threads` is the maximum number of parallel calls for one answer."""

    def __init__(self, connection: CloudConnection, clock: Clock, *, threads: int = 1) -> None:
        self._connection = connection
        self._clock = clock
        self._threads = threads

    def slices(self, refs: Iterable[SliceRef]) -> tuple[Slice, ...]:
        wanted_refs = tuple(refs)
        slices: list[Slice] = []
        for adapter, own in self._by_adapter(wanted_refs):
            slices += adapter.slices(own)
        return tuple(slices)

    def list_marked(
        self, project: str, zones: Iterable[Zone], *, machines: bool = True, backends: Collection[Backend]
    ) -> Listing:
        places = tuple(zones)
        return _merged(
            project,
            [each.list_marked(project, places, machines=machines) for each in self._adapters(backends)],
        )

    def list_named(
        self,
        project: str,
        name: str,
        zones: Iterable[Zone],
        *,
        zone: Zone | None = None,
        backends: Collection[Backend],
    ) -> Listing:
        places = tuple(zones)
        return _merged(
            project,
            [each.list_named(project, name, places, zone=zone) for each in self._adapters(backends)],
        )

    def request(self, request: SliceRequest) -> str | None:
        return self._adapter(request.backend, request.accelerator_type).request(request)

    def release(self, ref: SliceRef) -> str | None:
        return self._adapter_of(ref).release(ref)

    def end(self, ref: SliceRef) -> SliceEnd | None:
        return self._adapter_of(ref).end(ref)

    def update(self, ref: SliceRef, node: NodeUpdate) -> None:
        self._adapter_of(ref).update(ref, node)

    def restart(self, ref: SliceRef) -> None:
        self._adapter_of(ref).restart(ref)

    def remedy(self, kind: str, message: str) -> str:
        return hint_for(kind, message)

    def report_host(self, ref: SliceRef, fault: HostFault) -> str | None:
        return self._adapter_of(ref).report_host(ref, fault)

    def report(self, ref: SliceRef) -> BootReport | None:
        return self._adapter_of(ref).report(ref)

    def lines(self, ref: SliceRef) -> tuple[str, ...]:
        """See `ports.Logs`."""
        return self._adapter_of(ref).lines(ref)

    def guarded(self, check: Callable[[], None]) -> AbstractContextManager[None]:
        return transport.guarded(check)

    def _adapter_of(self, ref: SliceRef) -> CloudTpu | ComputeEngine | BulkGroups:
        return self._adapter(ref.backend, ref.accelerator_type)

    def _adapter(self, backend: Backend, accelerator_type: str) -> CloudTpu | ComputeEngine | BulkGroups:
        if backend is Backend.QUEUED_RESOURCE:
            return self._queued_resources
        kind = catalog.accelerator_type(accelerator_type)
        return self._groups if kind is not None and kind.hosts > 1 else self._instances

    def _adapters(self, backends: Collection[Backend]) -> Iterator[CloudTpu | ComputeEngine | BulkGroups]:
        """Yield every adapter of these APIs: Compute Engine has single instances, and groups of them."""
        if Backend.GCE_INSTANCE in backends:
            yield from (self._instances, self._groups)
        if Backend.QUEUED_RESOURCE in backends:
            yield self._queued_resources

    def _by_adapter(
        self, refs: Iterable[SliceRef]
    ) -> Iterable[tuple[CloudTpu | ComputeEngine | BulkGroups, Sequence[SliceRef]]]:
        by_adapter: dict[int, tuple[CloudTpu | ComputeEngine | BulkGroups, list[SliceRef]]] = {}
        for ref in sorted(refs, key=lambda each: tuple(Backend).index(each.backend)):
            adapter = self._adapter_of(ref)
            by_adapter.setdefault(id(adapter), (adapter, []))[1].append(ref)
        return by_adapter.values()

    @cached_property
    def _queued_resources(self) -> CloudTpu:
        return CloudTpu(self._connection, self._clock, threads=self._threads)

    @cached_property
    def _instances(self) -> ComputeEngine:
        return ComputeEngine(self._connection, self._clock, threads=self._threads)

    @cached_property
    def _groups(self) -> BulkGroups:
        return BulkGroups(self._connection, self._clock, self._instances, threads=self._threads)


def _merged(project: str, listings: Iterable[Listing]) -> Listing:
    """Return one listing. A zone that did not answer one of the APIs counts as unreachable."""
    parts = tuple(listings)
    return Listing(
        project=project,
        resources=tuple(resource for part in parts for resource in part.resources),
        unreachable=tuple(sorted({zone for part in parts for zone in part.unreachable})),
        searched_zones=tuple(dict.fromkeys(zone for part in parts for zone in part.searched_zones)),
    )
