"""The addresses that limit a plan to a part of its deployments, or request replacements."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from tpudeploy import catalog
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import CodePage, Diagnostic, Severity
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.names import Address, address
from tpudeploy.domain.plan import Change, SliceDrift
from tpudeploy.domain.state import Record, State
from tpudeploy.reconcile.replicas import with_replicas

PARTIAL = "TPU3020"
EXPLANATIONS: Mapping[str, CodePage] = {
    PARTIAL: CodePage(
        "The plan covers only a part of the deployments",
        "-target ignores every other difference between profiles and deployments. It's meant for exceptions, such"
        " as changing one replica first or repairing an error. Afterwards, plan without it to see what remains.",
        "tpudeploy plan PROFILE",
    ),
}

Targets = tuple[int, ...] | None
T = TypeVar("T", Change, SliceDrift)


def parse_addresses(texts: Iterable[str]) -> tuple[Address, ...]:
    """Return the addresses. Raise `errors.UsageError` for a text that does not have the form of one."""
    try:
        return tuple(map(Address.parse, texts))
    except ValueError as cause:
        raise UsageError(f"{cause}.") from cause


def require_names(addresses: Collection[Address], names: Collection[str], invalid: Collection[str]) -> None:
    """Raise `errors.UsageError` for an address of no deployment: otherwise it would look like "no changes".

    `names` are those of the deployments, `invalid` those of the profiles that cannot be used, or their files.
    """
    missing = next((each for each in addresses if each.deployment not in {*names, *invalid}), None)
    if missing is not None:
        hint = _existing(sorted(names))
        if invalid:
            hint += f" No valid profile is in {', '.join(sorted(invalid))}, which may be the one that you mean."
        guess = catalog.guess(missing.deployment, sorted(names))
        raise UsageError(f"There is no {missing} in this plan.", hint=hint, guess=guess)


def replicas_by_deployment(
    addresses: Collection[Address], deployments: Collection[Deployment], states: Mapping[str, State]
) -> dict[str, Targets]:
    """Return the replicas that the addresses name, for each deployment among them; None for all of its replicas.

    Raise `errors.UsageError` for an address that does not exist: otherwise it would look like "no changes".
    """
    by_name = {deployment.name: deployment for deployment in deployments}
    targets: dict[str, Targets] = {}
    for each in addresses:
        deployment = by_name.get(each.deployment)
        if deployment is None:
            raise UsageError(f"There is no {each} in this plan.", hint=_existing(sorted(by_name)))
        state = states.get(each.deployment)
        indexes = set(deployment.replica_indexes if state is None else with_replicas(deployment, state).replica_indexes)
        if state is not None:
            indexes |= {record.index for record in state.all_records if record.attempts}
        if each.replica is not None and each.replica not in indexes:
            names = [address(deployment.name, index) for index in sorted(indexes)]
            raise UsageError(f"There is no {each} in this plan.", hint=_existing(names))
        earlier = targets.get(deployment.name, ())
        if earlier is None or each.replica is None:
            targets[deployment.name] = None
        else:
            targets[deployment.name] = tuple(sorted({*earlier, each.replica}))
    return targets


def only_targets(targets: Targets, items: Iterable[T]) -> tuple[T, ...]:
    """Return the items of the replicas that the plan covers."""
    return tuple(each for each in items if targets is None or each.replica in targets)


def mark_replacements(state: State, names: Collection[str], fingerprints: Collection[str]) -> State:
    """Return `state` in which exactly these slices are marked to be replaced.

    Earlier marks stay if the fingerprint of their approval is among `fingerprints`. Another approval ends them.
    """
    keeps_marks = state.goal is not None and state.goal.fingerprint in fingerprints
    for index, attempt in state.indexed_attempts:
        is_to_go = attempt.name in names or (keeps_marks and attempt.is_to_go)
        if is_to_go != attempt.is_to_go:
            marked_attempt = replace(attempt, is_to_go=is_to_go)
            state = state.with_record(state.record(index).with_attempt(marked_attempt))
    return state


def slices_to_replace(record: Record) -> tuple[str, ...]:
    """Return the slices of a replica that a replacement concerns: not those that are the replacement already."""
    current = [attempt for attempt in record.attempts if attempt.releasing_at is None]
    marked = [attempt for attempt in current if attempt.is_to_go]
    return tuple(attempt.name for attempt in marked or current)


def partial_plan_warning() -> Diagnostic:
    """Return the warning of a plan with -target."""
    return Diagnostic(
        code=PARTIAL,
        message="This plan covers only what -target names. Everything else stays as it is.",
        severity=Severity.WARNING,
        hint="Plan without -target afterwards to see what remains.",
    )


def _existing(names: list[str]) -> str:
    if not names:
        return "There is nothing in it."
    verb = "is" if len(names) == 1 else "are"
    return f"There {verb} {', '.join(names)}."
