"""Import an existing slice into the state; the next plan shows what would change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from tpudeploy import loading
from tpudeploy.config.profile import Profile
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.errors import ConfigError, UsageError
from tpudeploy.domain.events import Event
from tpudeploy.domain.names import ROUTER, Address
from tpudeploy.domain.orphans import CloudResource
from tpudeploy.domain.serialization import to_json
from tpudeploy.domain.state import Attempt
from tpudeploy.engine import importing
from tpudeploy.engine.importing import ResourceId, find_resource, import_resource
from tpudeploy.operations.arguments import AProfile, Arg
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.operations.state import parse_address
from tpudeploy.reconcile.request_table import describe_request
from tpudeploy.results import Result, document, result
from tpudeploy.serialization.attempt_row import AttemptRow, attempt_row
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace


@result
class Imported(Result):
    """A slice that the state now tracks, as it was observed at the time `at`."""

    FORMAT = "import"
    ON_ONE_LINE = True
    address: Address
    attempt: Attempt
    raw_state: str
    at: float

    def values(self) -> dict[str, Any]:
        return {"type": "import", "address": str(self.address), "slice": to_json(attempt_row(self.attempt))}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        return document("import", {"type": {"const": "import"}, "address": str, "slice": AttemptRow})

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        description = f"{describe_request(self.attempt, self.at)}, {self.raw_state}"
        lines = [f"Imported to {self.address}: {description}."]
        if not any(path.startswith("serving.") for path in self.attempt.spec):
            lines.append("Its server may differ from the profile, so it will be restarted in place.")
        return "\n".join(lines)


def import_slice(
    workspace: Workspace,
    address: Annotated[str, Arg("The address in the state: NAME, or NAME[INDEX].", metavar="ADDR", positional=True)],
    id: Annotated[  # noqa: A002 - the command line's word
        str,
        Arg(
            "The resource: projects/P/locations/Z/queuedResources/N, projects/P/zones/Z/instances/N, "
            "projects/P/regions/R/instanceGroupManagers/N, P/Z/N, Z/N or N.",
            metavar="ID",
            positional=True,
        ),
    ],
    profile: AProfile,
    *,
    foreign: Annotated[bool, Arg("Import it even if it belongs to another lineage.")] = False,
    resource: CloudResource | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> Imported:
    """Import a slice into the state. What cannot be observed is as the profile says, except for the server.

    `address` is NAME or NAME[0], `id` the name or the path of the queued resource, unless that was found before
    (`resource`). Raise `errors.StateError` if the slice cannot be imported, or belongs to another lineage and not
    `foreign`; `errors.UsageError` for an invalid name.
    """
    where, loaded, adapters = replica_address(address), loading.profile(profile), workspace.adapters
    existing = find_slice(workspace, id, loaded) if resource is None else resource
    deployment = workspace.deployment(loaded)
    attempt = import_resource(adapters.world(on_event), where, deployment, existing, foreign=foreign)
    return Imported(address=where, attempt=attempt, raw_state=existing.slice.raw_state, at=adapters.clock.now())


def replica_address(text: str) -> Address:
    """Return the address of a replica, the first where only the deployment is named. Raise `errors.UsageError`."""
    address = parse_address(text)
    if address.replica == ROUTER:
        hint = "`tpudeploy apply -adopt` adopts it with the slices of a lost state; otherwise an apply creates one."
        raise UsageError("The VM of a router cannot be imported.", hint=hint)
    return address if address.replica is not None else Address(deployment=address.deployment, replica=0)


def find_slice(workspace: Workspace, id_: str, profile: Profile | None = None) -> CloudResource:
    """Return the slice of that name or path, by any creator. Without a profile, both APIs are searched.

    Raise `errors.UsageError` for an invalid name, `errors.StateError` unless there is exactly one.
    """
    adapters, query = workspace.adapters, ResourceId.parse(id_)
    deployment = None if profile is None else workspace.deployment(profile, script=False)
    project = query.project or (adapters.known_project if deployment is None else deployment.project)
    project = project or adapters.connection.project()
    if project is None:
        hint = "Set GOOGLE_CLOUD_PROJECT, or name it in full: projects/P/locations/Z/queuedResources/N."
        raise ConfigError("No Google Cloud project is set.", hint=hint)
    zones = () if deployment is None else [candidate.zone for candidate in deployment.candidates]
    backends = tuple(Backend) if deployment is None else deployment.backends
    return find_resource(adapters.world(), query, project, zones, backends)


def check_import(workspace: Workspace, where: Address, resource: CloudResource, *, foreign: bool) -> None:
    """Raise `errors.StateError` where `import_slice` would."""
    importing.check_import(workspace.adapters.world(), where, resource, foreign=foreign)


OPERATION = Operation(
    run=import_slice,
    results=(Imported,),
    access=Access.CHANGE,
    takes_events=True,
)
