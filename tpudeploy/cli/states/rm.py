"""Run `state rm`: remove slices from the state without deleting them, after listing them with their prices."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tpudeploy.cli import exits
from tpudeploy.cli.approval import approve
from tpudeploy.cli.context import Context
from tpudeploy.cli.progress import event_printer
from tpudeploy.cli.states.words import address, state_of
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import address as replica_address
from tpudeploy.domain.state import Attempt, State
from tpudeploy.planning.state_edits import check_no_run, records_at
from tpudeploy.ports import StateBackend
from tpudeploy.reconcile.request_table import describe_request
from tpudeploy.views import state as view
from tpudeploy.workspace import Workspace


@frozen
class _Removal:
    deployment: str
    address: str
    attempt: Attempt


def run(args: argparse.Namespace, context: Context, workspace: Workspace) -> int:
    say, now = context.terminal.data, context.clock.now()
    removals = tuple({(r.deployment, r.attempt.name): r for r in _removals(workspace.adapters.states, args)}.values())
    lines = [f"  {removal.address}: {describe_request(removal.attempt, now)}" for removal in removals]
    warning = "These slices will be removed from the state, not deleted. They continue to run and to be billed:"
    say("\n".join([warning, "", *lines]))
    if args.auto_approve:
        say("")
    elif not args.dry_run:
        question = "Do you really want to remove these from the state?"
        approve(context, question, otherwise="Review the list, then pass -auto-approve.")
    slice_names: dict[str, list[str]] = {}
    for removal in removals:
        slice_names.setdefault(removal.deployment, []).append(removal.attempt.name)
    if not args.dry_run:
        for deployment, names in slice_names.items():
            state = workspace.forget(deployment, names, force=args.force, on_event=event_printer(context.terminal))
            say(_summary(state, len(names)))
    if args.json:
        changes = [{"deployment": deployment, "forgotten": names} for deployment, names in slice_names.items()]
        context.reply.set(view.change_document("rm", changes=changes, is_dry_run=args.dry_run))
    return exits.SUCCESS


def _removals(states: StateBackend, args: argparse.Namespace) -> Iterator[_Removal]:
    """Yield every named slice. Raise `errors.StateError` for the first address that is not in a state."""
    for address_ in map(address, args.words):
        state = state_of(states, address_.deployment)
        check_no_run(state, force=args.force)
        for record in records_at(state, address_):
            replica = replica_address(state.deployment, record.index)
            for attempt in record.attempts:
                yield _Removal(deployment=state.deployment, address=replica, attempt=attempt)


def _summary(state: State, count: int) -> str:
    name = state.deployment
    sentence = f"Removed {count} slice{'' if count == 1 else 's'} of {name} from the state."
    if state.attempts:
        return f"{sentence} `tpudeploy gc` would delete them, because the state of {name} still has their lineage."
    return f"{sentence} {name} has no state any more; `tpudeploy apply -adopt` or `import` tracks its slices again."
