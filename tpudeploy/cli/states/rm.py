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
from tpudeploy.views import state as view
from tpudeploy.workspace import Workspace


@frozen
class _Going:
    deployment: str
    address: str
    attempt: Attempt


def run(given: argparse.Namespace, context: Context, workspace: Workspace) -> int:
    say = context.terminal.data
    going = tuple({(g.deployment, g.attempt.name): g for g in _going(workspace.states, given)}.values())
    told = (f"  {g.address}: {outstanding(g.attempt, context.clock.now())}" for g in going)
    say("\n".join(["To be forgotten, not deleted. What runs goes on to run, and to cost:", "", *told]))
    if given.auto_approve:
        say("")
    elif not given.dry_run:
        approve(context, "Do you really want to forget this?", otherwise="Pass -auto-approve, once you have read it.")
    names: dict[str, list[str]] = {}
    for each in going:
        names.setdefault(each.deployment, []).append(each.attempt.name)
    if not given.dry_run:
        for deployment, forgotten in names.items():
            left = workspace.forget(deployment, forgotten, force=given.force, on_event=teller(context.terminal))
            say(_said(left, len(forgotten)))
    if given.json:
        changes = [{"deployment": deployment, "forgotten": forgotten} for deployment, forgotten in names.items()]
        context.reply.set(view.change_document("rm", changes=changes, is_dry_run=given.dry_run))
    return exits.SUCCESS


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
