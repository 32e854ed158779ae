"""Edit the states: mv, rm, push, migrate. No slice is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, TypeAlias

from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.events import Event
from tpudeploy.domain.names import Address, SliceName, address
from tpudeploy.domain.state import Attempt, State
from tpudeploy.engine.session import states_by_name
from tpudeploy.engine.state_ops import forget, migrate, move, push, remove_marker
from tpudeploy.operations.arguments import Arg
from tpudeploy.operations.declaration import Access, ApprovalForm, Operation
from tpudeploy.operations.state import deployment_of, parse_address, state_of
from tpudeploy.planning.state_edits import check_no_run, records_at
from tpudeploy.reconcile.request_table import describe_request
from tpudeploy.results import Result, document, result
from tpudeploy.schemas.schema_of import TEXT, TEXTS, TRUTH, list_of, object_of
from tpudeploy.serialization import statefile
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace

OnEvent = Callable[[Event], None]

_Force: TypeAlias = Annotated[bool, Arg("Even while a run is in progress.")]


class StateChange(Result):
    """The base of what changes a state. The document has a `type` for each of them."""

    __slots__ = ()
    FORMAT = "state-change"

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        removed = list_of(object_of({"deployment": TEXT, "forgotten": TEXTS}))
        keys_by_type = {
            "mv": {"source": TEXT, "target": TEXT},
            "rm": {"changes": removed, "is_dry_run": TRUTH},
            "push": {"deployment": TEXT, "is_changed": TRUTH, "forgotten": TEXTS},
            "migrate": {"deployment": TEXT, "backend": TEXT, "slices": TEXTS},
        }
        head = {"format": {"const": "tpudeploy.state-change/1"}}
        choices = [object_of({**head, "type": {"const": type_}, **keys}) for type_, keys in keys_by_type.items()]
        return document("state-change", {}, choices=choices)


@result
class StateMoved(StateChange):
    """A deployment was renamed, or a slice has another index."""

    source: Address
    target: Address

    def values(self) -> dict[str, Any]:
        return {"type": "mv", "source": str(self.source), "target": str(self.target)}

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return f"Moved {self.source} to {self.target}."

    def messages(self, paint: Paint) -> str:
        if self.source.replica is not None:
            return ""
        target = self.target
        return (
            f"Now write `name: {target}` into the profile. Nothing restarts: its container is called {target} from its"
            " next change on."
        )


@result
class StatePushed(StateChange):
    """A state was written at the time `at`, unless it was the same. `untracked` are slices that it does not track.

    `is_first`: no state of this deployment was there before, so that this may be a copy of one that is elsewhere.
    """

    deployment: str
    is_changed: bool
    untracked: tuple[Attempt, ...]
    at: float
    is_first: bool

    def values(self) -> dict[str, Any]:
        names = [attempt.name for attempt in self.untracked]
        return {"type": "push", "deployment": self.deployment, "is_changed": self.is_changed, "forgotten": names}

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return f"The state of {self.deployment} {'was written' if self.is_changed else 'is already the same'}."

    def messages(self, paint: Paint) -> str:
        if self.is_first:
            return (
                "If you pulled it from another folder or bucket, both states now own its slices, and a run with one\n"
                f"deletes what the other serves. Remove it where it was: tpudeploy state rm {self.deployment}\n"
                "`tpudeploy state migrate` moves a state without that danger."
            )
        if not self.untracked:
            return ""
        attempts = "".join(f"\n  {describe_request(attempt, self.at)}" for attempt in self.untracked)
        text = f"The previous state tracked more slices, which are now untracked:{attempts}\n`tpudeploy gc` finds them."
        imported = [attempt for attempt in self.untracked if SliceName.parse(attempt.name) is None]
        if not imported:
            return text
        commands = (f"\n  tpudeploy import '{self.deployment}[INDEX]' {_resource_id(a)} PROFILE" for a in imported)
        return f"{text} One that was imported may lack its labels. To track it again:{''.join(commands)}"


@result
class StateMigrated(StateChange):
    """The state of a deployment is in another backend now. What remains is a marker that says where."""

    deployment: str
    backend: str
    slices: tuple[str, ...]

    def values(self) -> dict[str, Any]:
        values = {"deployment": self.deployment, "backend": self.backend, "slices": list(self.slices)}
        return {"type": "migrate", **values}

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return f"Moved the state of {self.deployment} to {self.backend}. Its slices keep running."

    def messages(self, paint: Paint) -> str:
        return (
            "Commands here stop and say where it is. Name it there with --backend, or as `backend` in tpudeploy.toml;\n"
            "the first `tpudeploy apply` there changes nothing."
        )


@result
class StateRemoved(StateChange):
    """The slices that a state no longer tracks, or would not after a dry run. They continue to run and to be billed."""

    changes: Mapping[str, tuple[str, ...]]  # the names of slices by deployment
    lines: tuple[str, ...]  # one for each slice: its address, its age and its price
    slices: Mapping[str, tuple[tuple[str, Attempt], ...]]  # the same with the address of each
    profiles: Mapping[str, str]  # the file of each deployment, where it has its name
    remaining: Mapping[str, State]  # the states afterwards
    markers: Mapping[str, str]  # where the states are that were moved away, of which only the marker is removed
    is_dry_run: bool

    def values(self) -> dict[str, Any]:
        rows = [{"deployment": deployment, "forgotten": list(names)} for deployment, names in self.changes.items()]
        return {"type": "rm", "changes": rows, "is_dry_run": self.is_dry_run}

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        moved = [
            f"{name} was moved to {place}; only the marker of the move is here." for name, place in self.markers.items()
        ]
        if not self.is_dry_run:
            removed = [
                f"Removed the marker of {name}, whose state is in {place}." for name, place in self.markers.items()
            ]
            return "\n".join([*removed, *(_removed_text(self, deployment) for deployment in self.remaining)])
        if not self.lines:
            return "\n".join(moved)
        warning = "These slices will be removed from the state, not deleted. They continue to run and to be billed:"
        return "\n".join([*moved, warning, "", *self.lines])


def state_push(
    workspace: Workspace,
    state: Annotated[str | State, Arg("A state, or - for stdin.", metavar="FILE", positional=True)],
    *,
    force: Annotated[bool, Arg("Overwrite a state of another lineage, or a later one.")] = False,
    on_event: OnEvent | None = None,
) -> StatePushed:
    """Write a state, or the text of one. Without `force`, a later state and one of another lineage are not replaced.

    Raise `errors.StateError` for those, and `errors.StateUnreadable` for a text that is not a state.
    """
    new = statefile.loads(state, source="the text") if isinstance(state, str) else state
    is_first = workspace.adapters.states.read(new.deployment).state is None
    untracked = push(workspace.adapters.world(on_event), new, force=force)
    return StatePushed(
        deployment=new.deployment,
        is_changed=untracked is not None,
        untracked=untracked or (),
        at=workspace.adapters.clock.now(),
        is_first=is_first,
    )


def state_mv(
    workspace: Workspace,
    source: Annotated[str, Arg("NAME, or NAME[0] for one replica.", metavar="SRC", positional=True)],
    target: Annotated[str, Arg("What it is called then.", metavar="DST", positional=True)],
    *,
    force: _Force = False,
    on_event: OnEvent | None = None,
) -> StateMoved:
    """Rename a deployment (`gemma`, `chat`), or move a slice to another index (`gemma[1]`, `gemma[0]`).

    Raise `errors.StateError` if the state does not allow it, `errors.UsageError` for an invalid address.
    """
    one, other = parse_address(source), parse_address(target)
    move(workspace.adapters.world(on_event), one, other, force=force)
    return StateMoved(source=one, target=other)


def state_migrate(
    workspace: Workspace,
    name: Annotated[str, Arg("A deployment.", positional=True)],
    to: Annotated[str, Arg("The backend to move it to: gs://BUCKET/PREFIX, or a folder.", positional=True)],
    *,
    force: _Force = False,
    on_event: OnEvent | None = None,
) -> StateMigrated:
    """Move the state of a deployment to another backend: a bucket (gs://BUCKET/PREFIX) or a folder.

    Its slices keep running. A marker stays here, so that no command here touches them. Raise `errors.StateError` if
    there is another state of this name, `errors.UsageError` for the backend in use.
    """
    deployment, here = deployment_of(workspace, name), workspace.adapters
    there = here.elsewhere(to)
    try:
        if there.place == here.place:
            raise UsageError(f"The states are already in {here.place}.", hint="Name the backend to move to.")
        state = migrate(here.world(on_event), there.world(on_event), deployment, there.place, force=force)
    finally:
        there.close()
    slices = tuple(attempt.name for attempt in state.attempts)
    return StateMigrated(deployment=deployment, backend=there.place, slices=slices)


def state_rm(
    workspace: Workspace,
    addresses: Annotated[Iterable[str], Arg("NAME, or NAME[0] for one replica.", metavar="ADDR", positional=True)],
    *,
    dry_run: Annotated[bool, Arg("Show what would be removed from the state, and change nothing.")] = False,
    force: _Force = False,
    on_event: OnEvent | None = None,
) -> StateRemoved:
    """Remove slices from the state without deleting them: they continue to run and to be billed, untracked.

    With `dry_run`, only list them. Raise as `state_list` does, before anything is removed.
    """
    listed = _removal(workspace, addresses, force=force)
    return listed if dry_run else remove_listed(workspace, listed, force=force, on_event=on_event)


def remove_listed(
    workspace: Workspace, listed: StateRemoved, *, force: bool, on_event: OnEvent | None = None
) -> StateRemoved:
    """Remove exactly the slices that a dry run listed."""
    world = workspace.adapters.world(on_event)
    for name in listed.markers:
        remove_marker(world, name)
    remaining = {name: forget(world, name, slices, force=force) for name, slices in listed.changes.items()}
    return replace(listed, remaining=remaining, is_dry_run=False)


def _removal(workspace: Workspace, addresses: Iterable[str], *, force: bool) -> StateRemoved:
    """Return what would be removed, each slice once. Raise `errors.StateError` for an address in no state."""
    now = workspace.adapters.clock.now()
    changes: dict[str, tuple[str, ...]] = {}
    slices: dict[str, tuple[tuple[str, Attempt], ...]] = {}
    lines = []
    every = [parse_address(each) for each in addresses]
    markers = _markers(workspace, every)
    selection = [each for each in every if each.deployment not in markers]
    for deployment, where, attempt in _attempts_at(workspace, selection, force=force):
        names = changes.get(deployment, ())
        if attempt.name not in names:
            changes[deployment] = (*names, attempt.name)
            slices[deployment] = (*slices.get(deployment, ()), (where, attempt))
            lines.append(f"  {where}: {describe_request(attempt, now)}")
    folder = workspace.adapters.folder
    return StateRemoved(
        changes=changes,
        lines=tuple(lines),
        slices=slices,
        profiles={name: f"{name}.yaml" for name in changes if (folder / f"{name}.yaml").is_file()},
        remaining={},
        markers=markers,
        is_dry_run=True,
    )


def _markers(workspace: Workspace, addresses: Iterable[Address]) -> dict[str, str]:
    """Return, for each deployment of which only the marker of a move is here, where its state is."""
    names = [each.deployment for each in addresses if each.replica is None]
    states = states_by_name(workspace.adapters.states, names) if names else {}
    return {name: state.moved_to for name, state in states.items() if state.moved_to and not state.attempts}


def _attempts_at(
    workspace: Workspace, addresses: Iterable[Address], *, force: bool
) -> Iterator[tuple[str, str, Attempt]]:
    """Yield every slice at these addresses, after its deployment and the address of its replica."""
    for where in addresses:
        state = state_of(workspace, where.deployment)
        check_no_run(state, force=force)
        for record in records_at(state, where):
            for attempt in record.attempts:
                yield state.deployment, address(state.deployment, record.index), attempt


def _removed_text(removed: StateRemoved, deployment: str) -> str:
    """Return what was removed, what may happen to it now, and what tracks each slice again.

    `apply -adopt` finds slices by our labels, which an imported one may lack.
    """
    state, slices = removed.remaining[deployment], removed.slices[deployment]
    imported = [(where, attempt) for where, attempt in slices if not _is_own(attempt, state)]
    text = f"Removed {len(slices)} slice{'' if len(slices) == 1 else 's'} of {deployment} from the state."
    if len(imported) < len(slices) and state.attempts:
        text += (
            f" `tpudeploy gc` would delete them, as would `tpudeploy destroy`, because the state of {deployment} still"
            " has their lineage."
        )
    elif len(imported) < len(slices):
        text += f" {deployment} has no state any more; `tpudeploy apply -adopt` or `import` tracks its slices again."
    if not imported:
        return text
    commands = (
        f"  tpudeploy import '{where}' {_resource_id(attempt)} {removed.profiles.get(deployment, 'PROFILE')}"
        for where, attempt in imported
    )
    why = "`apply -adopt` may not find an imported slice. To track it again:"
    return "\n".join([text, why, *commands])


def _is_own(attempt: Attempt, state: State) -> bool:
    """Return whether a slice was requested with the labels of this state."""
    name = SliceName.parse(attempt.name)
    return name is not None and name.lineage == state.lineage[:8]


def _resource_id(attempt: Attempt) -> str:
    """Return the resource as `import` takes it."""
    path = BACKENDS[attempt.backend].paths[0]
    return path.format(project=attempt.project, zone=attempt.zone, name=attempt.name)


OPERATIONS: Mapping[str, Operation] = {
    "state_mv": Operation(
        run=state_mv,
        results=(StateMoved,),
        access=Access.CHANGE,
        takes_events=True,
    ),
    "state_rm": Operation(
        run=state_rm,
        results=(StateRemoved,),
        access=Access.CHANGE,
        takes_events=True,
        approval=ApprovalForm(
            question="Do you really want to remove these from the state?",
            otherwise="Review the list, then pass -auto-approve.",
        ),
    ),
    "state_migrate": Operation(
        run=state_migrate,
        results=(StateMigrated,),
        access=Access.CHANGE,
        takes_events=True,
    ),
    "state_push": Operation(
        run=state_push,
        results=(StatePushed,),
        access=Access.CHANGE,
        takes_events=True,
    ),
}
