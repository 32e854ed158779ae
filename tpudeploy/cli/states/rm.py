"""`state rm`: forget slices without deleting them. What then runs unobserved is said first, with its price."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

from tpudeploy.cli import exits
from tpudeploy.cli.approval import approve
from tpudeploy.cli.context import Context
from tpudeploy.cli.progress import teller
from tpudeploy.cli.states.words import address, state_of
from tpudeploy.core.memory import must_rest, records
from tpudeploy.core.outstanding import outstanding
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import address as replica_address
from tpudeploy.domain.state import Attempt, State
from tpudeploy.ports import StateBackend
from tpudeploy.views import memory
from tpudeploy.workspace import Workspace


@frozen
class _Going:
    deployment: str
    address: str
    attempt: Attempt


def run(given: argparse.Namespace, context: Context, workspace: Workspace) -> int:
    say = context.terminal.talk if given.json else context.terminal.data
    going = tuple({(g.deployment, g.attempt.name): g for g in _going(workspace.states, given)}.values())
    told = (f"  {g.address}: {outstanding(g.attempt, context.clock.now())}" for g in going)
    say("\n".join(["To be forgotten, not deleted. What runs goes on to run, and to cost:", "", *told]))
    if given.auto_approve:
        say("")
    elif not given.dry_run:
        approve(context, "Do you really want to forget this?", otherwise="Pass -auto-approve, once you have read it.")
    for deployment in dict.fromkeys(g.deployment for g in going):
        _forget(given, context, workspace, deployment, [g.attempt.name for g in going if g.deployment == deployment])
    return exits.SUCCESS


def _forget(
    given: argparse.Namespace, context: Context, workspace: Workspace, deployment: str, names: list[str]
) -> None:
    """Or only say what would be, where no more is asked for."""
    terminal = context.terminal
    if not given.dry_run:
        emit = teller(terminal, as_json=given.json)
        left = workspace.forget(deployment, names, force=given.force, on_event=emit)
        if not given.json:
            terminal.data(_said(left, len(names)))
    if given.json:
        terminal.data(memory.changed("rm", deployment=deployment, forgotten=names, is_dry_run=given.dry_run))


def _going(states: StateBackend, given: argparse.Namespace) -> Iterator[_Going]:
    """Every slice that is named. Raise `errors.StateError` for the first address that is not there."""
    for wanted in map(address, given.words):
        state = state_of(states, wanted.deployment)
        must_rest(state, force=given.force)
        for record in records(state, wanted):
            yield from _of(state, record.index, record.attempts)


def _of(state: State, index: int, attempts: Iterable[Attempt]) -> Iterator[_Going]:
    where = replica_address(state.deployment, index)
    return (_Going(deployment=state.deployment, address=where, attempt=a) for a in attempts)


def _said(left: State, count: int) -> str:
    name = left.deployment
    forgotten = f"{count} slice{'' if count == 1 else 's'} of {name} forgotten."
    if left.attempts:
        return f"{forgotten} `tpudeploy gc` would remove what was, for the state of {name} still has its lineage."
    return f"{forgotten} {name} has no state any more; `tpudeploy apply -adopt` or `import` takes up what still stands."
