"""The preconditions of a saved plan: what it observed of the slices that it touches, and whether that still holds.

Why: decision 25 in docs/decisions.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from tpudeploy.domain.plan import Action, Change, SlicePrint
from tpudeploy.domain.slices import BootReport
from tpudeploy.domain.state import State
from tpudeploy.node.node_facts import SCRIPT_KEY
from tpudeploy.reconcile.attempt_status import AttemptStatus, Classification, DecisionContext, classify

# A request that still waits may be granted, or advance, without making the plan another one.
_REQUESTED = "asked"


def preconditions(state: State, context: DecisionContext, changes: Iterable[Change]) -> tuple[SlicePrint, ...]:
    """Return the fingerprint of every slice of the replicas that `changes` touch."""
    reports = context.observed.reports
    replicas = [change.replica for change in changes if change.action is not Action.NO_OP]
    attempts = [attempt for replica in replicas for attempt in state.record(replica).attempts]
    return tuple(
        SlicePrint(name=each.name, print=_fingerprint(classify(each, context), reports.get(each.name)))
        for each in attempts
    )


def changed_slices(before: Iterable[SlicePrint], now: Iterable[SlicePrint]) -> tuple[str, ...]:
    """Return the names of the slices that are no longer as they were."""
    current = {each.name: each.print for each in now}
    names: list[str] = []
    for each in before:
        fingerprint = current.get(each.name)
        # A request may have been granted meanwhile. It may not have been refused or have disappeared.
        is_granted_request = each.print == _REQUESTED and fingerprint not in {None, *AttemptStatus}
        if fingerprint != each.print and not is_granted_request:
            names.append(each.name)
    return tuple(names)


def _fingerprint(classification: Classification, report: BootReport | None) -> str:
    """Return the fingerprint of a slice. Addresses and the progress of a boot are not in it: they change."""
    if classification.status in {AttemptStatus.HIDDEN, AttemptStatus.WAITING}:
        return _REQUESTED
    if classification.status is not AttemptStatus.UP or classification.slice is None:
        return classification.status
    slice_ = classification.slice
    server = "" if report is None else report.spec
    metadata = {**slice_.metadata, SCRIPT_KEY: slice_.script}
    facts = [slice_.accelerator_type, slice_.created_at, dict(slice_.labels), metadata, server]
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
