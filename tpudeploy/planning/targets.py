"""What of its deployments a plan is about, and what it is to replace: the addresses that a person gave."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation, Severity
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.names import Address, address
from tpudeploy.domain.plan import Change, Drift
from tpudeploy.domain.state import Record, State

PARTIAL = "TPU3020"
EXPLANATIONS: Mapping[str, Explanation] = {
    PARTIAL: Explanation(
        "The plan covers only a part of the deployments",
        "-target leaves everything else as it is, whatever the profiles say about it. It is meant for exceptions: "
        "a replica that has to change first, or an error that has to be repaired. Plan without it afterwards to "
        "see what remains.",
        "tpudeploy plan PROFILE",
    ),
}

Targets = tuple[int, ...] | None
T = TypeVar("T", Change, Drift)


def parsed(texts: Iterable[str]) -> tuple[Address, ...]:
    """Raise `errors.UsageError` for what has not the form of an address."""
    return tuple(map(_parsed, texts))


def replicas(
    addresses: Collection[Address], deployments: Collection[Deployment], states: Mapping[str, State]
) -> dict[str, Targets]:
    """For each deployment that is meant, its replicas; None for all of them.

    Raise `errors.UsageError` for an address that nothing has: left unsaid, it would be taken for "no changes".
    """
    by_name = {d.name: d for d in deployments}
    found: dict[str, Targets] = {}
    for each in addresses:
        known = by_name.get(each.deployment)
        if known is None:
            raise UsageError(f"There is no {each} in this plan.", hint=_there_are(sorted(by_name)))
        state = states.get(each.deployment)
        kept = {r.index for r in state.records if r.attempts} if state is not None else set()
        indexes = {*range(known.replicas), *kept}
        if each.replica is not None and each.replica not in indexes:
            raise UsageError(
                f"There is no {each} in this plan.", hint=_there_are([address(known.name, i) for i in sorted(indexes)])
            )
        found[known.name] = _with(found.get(known.name, ()), each.replica)
    return found


def within(targets: Targets, found: Iterable[T]) -> tuple[T, ...]:
    """Those of replicas that a plan is about."""
    return tuple(each for each in found if targets is None or each.replica in targets)


def marked(state: State, names: Collection[str], aims: Collection[str]) -> State:
    """`state` in which these slices, and no others, are to go once others stand in their place.

    What was marked before stays so where the approval that it belongs to is one of `aims`; another one ends it.
    """
    stays = state.goal is not None and state.goal.fingerprint in aims
    for record in state.records:
        for attempt in record.attempts:
            is_to_go = attempt.name in names or (stays and attempt.is_to_go)
            if is_to_go != attempt.is_to_go:
                known = state.record(record.index)
                state = state.with_record(known.with_attempt(replace(attempt, is_to_go=is_to_go)))
    return state


def to_go(record: Record) -> tuple[str, ...]:
    """The slices of a replica that another is to take the place of: not those that are on their way to do so."""
    standing = [a for a in record.attempts if a.releasing_at is None]
    return tuple(a.name for a in standing if a.is_to_go) or tuple(a.name for a in standing)


def partial() -> Diagnostic:
    return Diagnostic(
        code=PARTIAL,
        message="This plan is about what -target names, and leaves the rest as it is.",
        severity=Severity.WARNING,
        hint="Plan without -target afterwards, to see whether anything is left.",
    )


def _with(known: Targets, replica: int | None) -> Targets:
    return None if known is None or replica is None else tuple(sorted({*known, replica}))


def _parsed(text: str) -> Address:
    try:
        return Address.parse(text)
    except ValueError as cause:
        raise UsageError(f"{cause}.") from cause


def _there_are(names: list[str]) -> str:
    return f"There {'is' if len(names) == 1 else 'are'} {', '.join(names)}." if names else "There is nothing in it."
