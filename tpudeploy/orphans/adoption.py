"""Adoption: a slice that no state tracks, as a new state tracks it, so that it is compared like any other.

Google shows the request and the fingerprint of the server. The rest of the slice is taken to be as the profile has it,
because a wrong guess would give chips back. What is not known of the server is left out, because a wrong guess would
leave another server running: it is restarted in place.

Why: decision 22 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.life import SliceGranted
from tpudeploy.domain.names import SliceName
from tpudeploy.domain.orphans import CloudResource, is_label_of_ours
from tpudeploy.domain.plan import Effect
from tpudeploy.domain.slices import BootReport, Phase
from tpudeploy.domain.state import Attempt, Boot, State
from tpudeploy.node.fingerprint import effect, server_print
from tpudeploy.node.node_facts import SPEC_KEY
from tpudeploy.orphans.claims import as_attempt, is_adoptable
from tpudeploy.pins import unpinned
from tpudeploy.reconcile.placement import allows

_LABELS = "placement.labels."
_TAGS = "placement.network.tags"


def adoptable(resources: Iterable[CloudResource]) -> tuple[CloudResource, ...]:
    """Return those that a state can track: with our labels, for one node, one for each name, a living one first."""
    ours = filter(is_adoptable, resources)
    return tuple({r.ref.name: r for r in sorted(ours, key=lambda r: r.slice.phase is Phase.UP)}.values())


def adopt(
    state: State,
    deployment: Deployment,
    resources: Iterable[CloudResource],
    reports: Mapping[str, BootReport],
    now: float,
) -> State:
    """Return `state` with these in it; `reports` by slice name.

    Its lineage stays its own, because the lost state may still exist somewhere: theirs would name the next slices as
    ours, and take ours for its leftovers.
    """
    for resource in resources:
        target = deployment.of_replica(resource.mark.replica)
        if target is None:
            # The profile has no router on a VM. This one is tracked so that it is deleted.
            attempt = replace(as_attempt(resource, resource.ref.name, now), boot=Boot(server=""))
        else:
            attempt = _attempt(target, resource, reports.get(resource.ref.name), now)
        state = state.with_record(state.record(resource.mark.replica).with_attempt(attempt))
        name = SliceName.parse(resource.ref.name)
        if name is not None:
            state = replace(state, next_attempt=max(state.next_attempt, name.attempt + 1))
    return state


def _attempt(deployment: Deployment, resource: CloudResource, report: BootReport | None, now: float) -> Attempt:
    slice_ = resource.slice
    server = report.spec if report is not None and report.spec else resource.request.metadata.get(SPEC_KEY, "")
    attempt = replace(as_attempt(resource, resource.ref.name, now), boot=Boot(server=server))
    if slice_.phase is Phase.UP:
        attempt = attempt.after(SliceGranted(granted_at=slice_.created_at or now))
    spec = dict(_slice_attributes(deployment, attempt, resource))
    # It may have been booted before there were pins.
    for attributes in (deployment.attributes, unpinned(deployment.attributes)):
        if server == server_print(attributes):
            spec |= {path: value for path, value in attributes.items() if effect(path) is Effect.RESTART}
            break
    return replace(attempt, spec=spec)


def _slice_attributes(deployment: Deployment, attempt: Attempt, resource: CloudResource) -> Iterator[tuple[str, Json]]:
    """Yield every attribute but the server's: the profile's, and over them those that Google shows to differ."""
    has_request = bool(resource.request.accelerator_type)  # else nothing is known but that it exists
    for path, value in deployment.attributes_at(resource.ref.backend).items():
        is_live = path.startswith(_LABELS) or path == _TAGS
        if effect(path) is not Effect.RESTART and not (is_live and has_request):
            yield path, value
    if has_request:
        yield from _differing(deployment, resource)
        # Labels and tags can have been changed since: those of the node count where it shows them.
        labels = resource.slice.labels or resource.request.labels
        yield from ((f"{_LABELS}{key}", value) for key, value in labels.items() if not is_label_of_ours(key))
        if resource.request.tags:
            yield _TAGS, list(resource.request.tags)
    if resource.ref.backend not in deployment.runtimes:
        yield "placement.backend", resource.ref.backend.value
    if not allows(deployment, attempt):
        yield "placement.zones", [attempt.zone]
        yield "placement.provisioning", [attempt.provisioning]


def _differing(deployment: Deployment, resource: CloudResource) -> Iterator[tuple[str, Json]]:
    """Yield what differs from the profile. What Google fills in by itself, and the profile leaves open, is ignored."""
    network, request = deployment.network, resource.request
    attributes = deployment.attributes_at(resource.ref.backend)
    runtime = attributes.get("tpu.runtime_version")
    type_path = "vm.machine" if "vm.machine" in attributes else "tpu.type"
    pairs: tuple[tuple[str, Json, Json, str], ...] = (
        (type_path, deployment.accelerator.name, request.accelerator_type, "{}"),
        ("tpu.runtime_version", runtime, request.runtime_version, "{}"),
        ("tpu.boot_disk_size", deployment.boot_disk_gib, request.boot_disk_gib, "{}GiB"),
        ("placement.network.network", network.network, request.network, "{}"),
        ("placement.network.subnetwork", network.subnetwork, request.subnetwork, "{}"),
        ("placement.service_account", deployment.service_account, request.service_account, "{}"),
        ("placement.reservation", deployment.reservation, request.reservation, "{}"),
        ("placement.max_run_duration", deployment.max_run_seconds, request.max_run_seconds, "{:.0f}s"),
    )
    for path, planned, actual, form in pairs:
        if planned is not None and actual is not None and _last_word(planned) != _last_word(actual):
            yield path, form.format(actual)
    if request.external_ip is not None and request.external_ip != network.external_ip:
        yield "placement.network.external_ip", request.external_ip


def _last_word(value: Json) -> Json:
    """Return the end of a path: Google may give the full path for a name by its last word (unverified)."""
    return value.rpartition("/")[2] if isinstance(value, str) else value
