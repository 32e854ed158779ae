"""What a slice that no state remembers is, as far as it can be seen: remembered anew, so that it is diffed like any.

Seen is what was asked of Google, and the fingerprint of the server. What is not seen of the slice is taken to be as
the profile wants it, for a wrong guess there would give chips back. What is not known of the server is left out, for a
wrong guess there would leave another one serving: it is restarted in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.found import CloudResource, ResourceRequest, is_label_of_ours
from tpudeploy.domain.life import SliceGranted
from tpudeploy.domain.names import SliceName
from tpudeploy.domain.plan import Effect
from tpudeploy.domain.slices import BootReport, Phase
from tpudeploy.domain.state import Attempt, Boot, State
from tpudeploy.node.fingerprint import effect, server_print
from tpudeploy.node.node import SPEC_KEY
from tpudeploy.orphans.collect import as_attempt
from tpudeploy.pins.pins import unpinned
from tpudeploy.reconcile.placement import allows

_LABELS = "placement.labels."
_TAGS = "placement.network.tags"


def adoptable(found: Iterable[CloudResource]) -> tuple[CloudResource, ...]:
    """Those that a state can remember: by the name that we derive, and one of a name; a living one first."""
    ours = (f for f in found if SliceName.parse(f.ref.name) is not None)
    return tuple({f.ref.name: f for f in sorted(ours, key=lambda f: f.slice.phase is Phase.UP)}.values())


def adopted(
    state: State, deployment: Deployment, found: Iterable[CloudResource], reports: Mapping[str, BootReport], now: float
) -> State:
    """`state` with these in it; `reports` by slice name.

    Its lineage stays its own, for somebody may still have the lost state: theirs would name the next slices as ours,
    and take ours for its leftovers.
    """
    for each in found:
        attempt = _attempt(deployment, each, reports.get(each.ref.name), now)
        state = state.with_record(state.record(each.mark.replica).with_attempt(attempt))
        name = SliceName.parse(each.ref.name)
        if name is not None:
            state = replace(state, next_attempt=max(state.next_attempt, name.attempt + 1))
    return state


def _attempt(deployment: Deployment, found: CloudResource, report: BootReport | None, now: float) -> Attempt:
    shown, asked = found.slice, found.asked
    metadata = shown.metadata or asked.metadata
    runs = report.spec if report is not None and report.spec else metadata.get(SPEC_KEY, "")
    attempt = replace(as_attempt(found, found.ref.name, now), boot=Boot(server=runs))
    if shown.phase is Phase.UP:
        attempt = attempt.after(SliceGranted(granted_at=shown.created_at or now))
    spec = dict(_slice_side(deployment, attempt, found))
    # It may have been booted before there were pins.
    for known in (deployment.attributes, unpinned(deployment.attributes)):
        if runs == server_print(known):
            spec |= {p: v for p, v in known.items() if effect(p) is Effect.RESTART}
            break
    return replace(attempt, spec=spec)


def _slice_side(deployment: Deployment, attempt: Attempt, found: CloudResource) -> Iterator[tuple[str, Json]]:
    """Every attribute but the server's: the profile's, and over them what is seen to be otherwise."""
    is_told = bool(found.asked.accelerator_type)  # else nothing is known but that it exists
    for path, value in deployment.attributes.items():
        is_live = path.startswith(_LABELS) or path == _TAGS
        if effect(path) is not Effect.RESTART and not (is_live and is_told):
            yield path, value
    if is_told:
        yield from _differing(deployment, found.asked)
        yield from _live(found)
    if not allows(deployment, attempt):
        yield "placement.zones", [attempt.zone]
        yield "placement.provisioning", [attempt.provisioning]


def _differing(deployment: Deployment, asked: ResourceRequest) -> Iterator[tuple[str, Json]]:
    """What Google fills in by itself says nothing: only what the profile decides is held against what is seen."""
    network = deployment.network
    pairs: tuple[tuple[str, Json, Json, str], ...] = (
        ("tpu.type", deployment.accelerator.name, asked.accelerator_type, "{}"),
        ("tpu.runtime_version", deployment.runtime_version, asked.runtime_version, "{}"),
        ("tpu.boot_disk_size", deployment.boot_disk_gib, asked.boot_disk_gib, "{}GiB"),
        ("placement.network.network", network.network, asked.network, "{}"),
        ("placement.network.subnetwork", network.subnetwork, asked.subnetwork, "{}"),
        ("placement.service_account", deployment.service_account, asked.service_account, "{}"),
        ("placement.reservation", deployment.reservation, asked.reservation, "{}"),
        ("placement.max_run_duration", deployment.max_run_seconds, asked.max_run_seconds, "{:.0f}s"),
    )
    for path, wanted, seen, form in pairs:
        if wanted is not None and seen is not None and _last(wanted) != _last(seen):
            yield path, form.format(seen)
    if asked.external_ip is not None and asked.external_ip != network.external_ip:
        yield "placement.network.external_ip", asked.external_ip


def _last(value: Json) -> Json:
    """Google may give the full path of what was named by its last word (unverified)."""
    return value.rpartition("/")[2] if isinstance(value, str) else value


def _live(found: CloudResource) -> Iterator[tuple[str, Json]]:
    """Labels and tags as they are: the node's own where it shows them, for they can have been changed since."""
    labels = found.slice.labels or found.asked.labels
    yield from ((f"{_LABELS}{key}", value) for key, value in labels.items() if not is_label_of_ours(key))
    if found.asked.tags:
        yield _TAGS, list(found.asked.tags)
