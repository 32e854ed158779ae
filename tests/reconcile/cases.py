"""The nouns that every table of the pure heart is made of, with the fields that do not matter filled in."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from tpudeploy import catalog
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.compilation import PredictedStart
from tpudeploy.domain.deployment import (
    Candidate,
    Container,
    Deployment,
    HealthGoal,
    Lifecycle,
    Network,
    Provisioning,
    Script,
    Via,
)
from tpudeploy.domain.history import Ending, HistoryEntry
from tpudeploy.domain.life import (
    Detached,
    Draining,
    Granted,
    Landing,
    Life,
    Lost,
    Queued,
    Reclaimed,
    Releasing,
    Requested,
    Serving,
    Starting,
    Waiting,
)
from tpudeploy.domain.names import Zone
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.slices import Observed, Phase, Refusal, RefusalScope, Remedy, ServerLoad, Slice
from tpudeploy.domain.state import Attempt, Boot, MetadataUpdate, NodeChange, Record, RefusalRecord
from tpudeploy.node.fingerprint import server_print
from tpudeploy.reconcile.attempt_status import DecisionContext
from tpudeploy.serialization.attempt_row import AttemptRow

TPU_API, INSTANCES = Backend.QUEUED_RESOURCE, Backend.GCE_INSTANCE
FLEX, SPOT = Provisioning.FLEX_START, Provisioning.SPOT
ON_DEMAND, RESERVED = Provisioning.ON_DEMAND, Provisioning.RESERVED
# A and B are zones of one region.
A, B, C, D = Zone("us-east5-a"), Zone("us-east5-b"), Zone("europe-west4-a"), Zone("us-west1-c")
ZONES = (A, B, C, D)
MINUTE, HOUR = 60.0, 3600.0
NOW = 100 * HOUR
PATIENCE = Patience()
SPEC: Mapping[str, Any] = {"tpu.type": "v6e-8"}


def candidate(
    zone: Zone = A, model: Provisioning = SPOT, usd: float | None = None, backend: Backend = TPU_API
) -> Candidate:
    return Candidate(zone=zone, provisioning=model, usd_per_chip_hour=usd, backend=backend)


def deployment(
    candidates: Sequence[Candidate] = (candidate(),),
    *,
    requests: int = 2,
    chips: int = 8,
    attributes: Mapping[str, Any] | None = None,
    lifecycle: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Deployment:
    """Return a deployment of one slice that may be requested at these places."""
    accelerator = catalog.accelerator_type(f"v6e-{chips}")
    assert accelerator is not None
    rules = {"prevent_destroy": False, "create_before_destroy": True, "ignore_changes": ()}
    values: dict[str, Any] = {
        "name": "gemma",
        "replicas": 1,
        "project": "project",
        "model_id": "google/gemma-3-1b-it",
        "accelerator": accelerator,
        "runtimes": {TPU_API: "v2-alpha-tpuv6e"},
        "boot_disk_gib": 100,
        "candidates": tuple(candidates),
        "max_parallel_requests": requests,
        "reservation": None,
        "max_run_seconds": None,
        "valid_until_seconds": HOUR,
        "network": Network(network=None, subnetwork=None, external_ip=False, tags=()),
        "service_account": None,
        "labels": {},
        "container": Container(
            name="vllm",
            image="vllm/vllm-tpu:nightly",
            serve=("vllm", "serve"),
            setup=(),
            environment={},
            secrets=(),
            volumes=(),
            shm_size=None,
            port=8000,
        ),
        "health": HealthGoal(timeout_seconds=15 * MINUTE, via=Via.NODE, prompt="Hello"),
        "lifecycle": Lifecycle(**{**rules, **(lifecycle or {})}),
        "startup_script": Script(""),
        "attributes": {**SPEC, **(attributes or {})},
    }
    return Deployment(**{**values, **fields})


def budget(*, cold_seconds: float) -> HbmBudget:
    """Return a budget of which only the time of a start matters."""
    unused: Any = None
    start = PredictedStart(cold_seconds=cold_seconds, warm_seconds=1.0, basis="measured")
    fields = {field.name: unused for field in dataclasses.fields(HbmBudget)}
    return HbmBudget(**{**fields, "start": start, "fatal": ()})


def attempt(zone: Zone = A, model: Provisioning = SPOT, **fields: Any) -> Attempt:
    """Return a request of ten minutes ago that nothing is known of yet, by the fields of its row or with a `life`, and its `backend`."""
    life, backend = fields.pop("life", None), fields.pop("backend", None)
    if backend is not None:
        fields["spec"] = {**SPEC, "placement.backend": backend, **fields.get("spec", {})}
    values: dict[str, Any] = {
        "name": f"slice-{zone}",
        "project": "project",
        "zone": zone,
        "provisioning": model,
        "spec": SPEC,
        "asked_at": NOW - 10 * MINUTE,
        "booted": "",
    }
    attempt_ = _attempt_of(AttemptRow(**{**values, **fields}))
    return attempt_ if life is None else dataclasses.replace(attempt_, life=life)


def _attempt_of(row: AttemptRow) -> Attempt:
    """Return the attempt that a row of `state show` describes."""
    has_update = bool(row.update_asked) or row.update_asked_at > 0
    return Attempt(
        name=row.name,
        project=row.project,
        zone=row.zone,
        provisioning=row.provisioning,
        spec=row.spec,
        asked_at=row.asked_at,
        boot=Boot(server=row.booted, at=row.booted_at, previous=row.booted_before, is_sent=row.boot_asked),
        expires_at=row.expires_at,
        operation=row.operation,
        life=_life(row),
        update=MetadataUpdate(server=row.update_asked, at=row.update_asked_at) if has_update else None,
        change=NodeChange(name=row.change, sent_at=row.told_at) if row.change else None,
        script=row.script,
        is_failed=row.is_failed,
        is_to_go=row.is_to_go,
        is_ending=row.is_ending,
        not_in_effect=row.not_in_effect,
    )


def _life(row: AttemptRow) -> Life:
    """Return the life of a row, built from the inside out: how far it came, its loss, its reclaim, its release."""
    granted = _granted(row)
    reached: Waiting | Granted | Lost = _waiting(row) if granted is None else granted
    if row.is_lost and granted is not None:
        reached = Lost(before=granted)
    is_releasing = row.releasing_at is not None
    before: Waiting | Granted | Lost | Reclaimed = reached
    if row.is_reclaimed:
        before = Reclaimed(before=reached, deletion=None if is_releasing else row.deletion)
    if row.releasing_at is None:
        return before
    return Releasing(
        before=before,
        releasing_at=row.releasing_at,
        reason=row.release_reason,
        is_spare=row.is_spare,
        deletion=row.deletion,
    )


def _waiting(row: AttemptRow) -> Waiting:
    if row.provisioning_at is not None:
        return Landing(provisioning_at=row.provisioning_at)
    return Queued() if row.seen else Requested()


def _granted(row: AttemptRow) -> Granted | None:
    """Return its state after the grant, or None before it."""
    granted_at = row.granted_at
    if granted_at is None and (row.served or row.is_lost or row.draining_at is not None):
        # What served was granted, at the latest when it was seen to land.
        granted_at = row.asked_at if row.provisioning_at is None else row.provisioning_at
    if granted_at is None:
        return None
    if row.draining_at is None:
        state = Serving if row.served else Starting
        return state(granted_at=granted_at, provisioning_at=row.provisioning_at)
    drained = Draining if row.served else Detached
    return drained(granted_at=granted_at, draining_at=row.draining_at, provisioning_at=row.provisioning_at)


def queued(zone: Zone = A, model: Provisioning = FLEX, *, minutes_ago: float = 10, **fields: Any) -> Attempt:
    """Return a request that waits, and was sent so many minutes ago."""
    return attempt(zone, model, asked_at=NOW - minutes_ago * MINUTE, **fields)


def granted(zone: Zone = A, model: Provisioning = SPOT, *, minutes_ago: float = 5, **fields: Any) -> Attempt:
    """Return a request whose machine started so many minutes ago."""
    at = NOW - minutes_ago * MINUTE
    return attempt(zone, model, **{"granted_at": at, "provisioning_at": at, "seen": True, **fields})


def serving(zone: Zone = A, model: Provisioning = SPOT, **fields: Any) -> Attempt:
    """Return a slice that clients use, with the server that the profile declares."""
    values = {"served": True, "booted": server_print(fields.get("spec", SPEC)), **fields}
    return granted(zone, model, **values)


def releasing(zone: Zone = A, model: Provisioning = SPOT, **fields: Any) -> Attempt:
    """Return a request that was given up a minute ago and still exists."""
    return attempt(zone, model, **{"releasing_at": NOW - MINUTE, **fields})


def slice_of(one: Attempt, phase: Phase = Phase.UP, **fields: Any) -> Slice:
    """Return what the cloud shows of an attempt."""
    values = {"raw_state": phase.upper(), "provisioning": one.provisioning, **fields}
    return Slice(name=one.name, zone=one.zone, phase=phase, **values)


def context(*slices: Slice, running: Mapping[str, int] | None = None, **fields: Any) -> DecisionContext:
    """Return an observation of these slices. `running` are the requests of a server, by its slice."""
    loads = {name: ServerLoad(running=count, waiting=0) for name, count in (running or {}).items()}
    names = {field.name for field in dataclasses.fields(Observed)}
    observed = Observed(
        at=NOW,
        slices={each.name: each for each in slices},
        loads=loads,
        **{name: value for name, value in fields.items() if name in names},
    )
    others = {name: value for name, value in fields.items() if name not in names}
    return DecisionContext(observed=observed, patience=PATIENCE, **others)


def refusal(scope: RefusalScope = RefusalScope.PAIR, remedy: Remedy = Remedy.NEXT_ZONE, **fields: Any) -> Refusal:
    """Return Google's answer that a full place gives."""
    values = {"kind": "stockout", "message": "There is no more capacity.", "holds_seconds": 180.0, **fields}
    return Refusal(remedy=remedy, scope=scope, **values)


def refused(
    zone: Zone = A, minutes_ago: float = 0, *, lasts: float = 0, scope: RefusalScope = RefusalScope.PAIR, **fields: Any
) -> RefusalRecord:
    """Return a refusal of so many minutes ago that holds for `lasts` minutes more."""
    values = {"provisioning": SPOT, "kind": "stockout", "message": f"{zone} is full.", **fields}
    return RefusalRecord(zone=zone, scope=scope, at=NOW - minutes_ago * MINUTE, until=NOW + lasts * MINUTE, **values)


def failed_landing(zone: Zone = A, *, minutes_ago: float = 60, held_for: float = 120, **fields: Any) -> RefusalRecord:
    """Return a failed landing that is held against its place for so many minutes from then."""
    values = {"kind": "preempted", "landed": True, "scope": RefusalScope.PAIR, **fields}
    return refused(zone, minutes_ago, lasts=held_for - minutes_ago, **values)


def record(*attempts: Attempt, refusals: Sequence[RefusalRecord] = (), **fields: Any) -> Record:
    return Record(**{"index": 0, "attempts": attempts, "refusals": tuple(refusals), **fields})


def entry(outcome: Ending, *, minutes_ago: float, zone: Zone = A, **fields: Any) -> HistoryEntry:
    """Return one finished request of the capacity history."""
    values = {"provisioning": SPOT, "type": "v6e-8", "chips": 8, "waited": MINUTE, **fields}
    return HistoryEntry(at=NOW - minutes_ago * MINUTE, zone=zone, outcome=outcome, **values)
