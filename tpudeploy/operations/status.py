"""Show deployments: how far each one is, where it answers, and what it costs.

Exit with 1 if a deployment cannot be observed: its state, its slices, or a server that is reached and gives no answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from tpudeploy import loading
from tpudeploy.boot_log.reading import Timeline
from tpudeploy.boot_log.view import timeline
from tpudeploy.config.profile import Profile
from tpudeploy.domain import exits
from tpudeploy.domain.errors import ConfigError, UsageError, worst
from tpudeploy.domain.status import DeploymentStatus
from tpudeploy.domain.verify import Details
from tpudeploy.engine.status import statuses
from tpudeploy.operations.arguments import Agents, Arg, ValidProfiles
from tpudeploy.operations.declaration import Operation
from tpudeploy.results import Result, document, part, result
from tpudeploy.text.paint import Paint
from tpudeploy.verify.view import details
from tpudeploy.views.status import status as view
from tpudeploy.workspace import Workspace

_NO_START = "No machine has reported a start."


@result
class Status(Result):
    """The status of deployments. `details` and `timelines` are None if they were not asked for."""

    FORMAT = "status"
    emulated: bool
    deployments: tuple[DeploymentStatus, ...]
    details: tuple[Details, ...] | None
    timelines: tuple[Timeline, ...] | None

    def __iter__(self) -> Iterator[DeploymentStatus]:
        return iter(self.deployments)

    @property
    def is_in_progress(self) -> bool:
        return any(replica.is_on_its_way for each in self.deployments for replica in each.replicas)

    @property
    def exit_code(self) -> int:
        error = worst(each.error for each in self.deployments if each.error is not None)
        return exits.SUCCESS if error is None else error.exit_code

    def values(self) -> dict[str, Any]:
        keys: dict[str, Any] = {"emulated": self.emulated, "deployments": [each.to_dict() for each in self.deployments]}
        if self.details is not None:
            keys["details"] = [each.to_dict() for each in self.details]
        if self.timelines is not None:
            keys["timelines"] = [each.to_dict() for each in self.timelines]
        return keys

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        phase = part({"name": str, "began": float, "seconds": float | None})
        timeline = {
            **dict.fromkeys(("address", "slice", "cache"), str),
            **dict.fromkeys(("serving", "whole"), bool),
            "seconds": float,
            "phases": {"type": "array", "items": phase},
            "critical": tuple[str, ...],
        }
        keys = {
            "emulated": bool,
            "deployments": tuple[DeploymentStatus, ...],
            "details": tuple[Details, ...],
            "timelines": [timeline],
        }
        return document("status", keys, optional=("details", "timelines"))

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        texts = [view(self.deployments, paint, emulated=self.emulated, width=width)]
        texts += [f"\n{details(each, paint, width=width)}" for each in self.details or ()]
        if self.timelines is not None:
            texts.append(
                "\n" + ("\n\n".join(timeline(each, paint, width=width) for each in self.timelines) or _NO_START)
            )
        return "\n".join(texts)


def status(
    workspace: Workspace,
    profiles: Annotated[
        ValidProfiles, Arg(agents=Agents("paths inside the project; none for everything in the states"))
    ] = (),
    *,
    details: Annotated[
        bool, Arg("Show what each engine runs with and what its chips hold: planned beside measured.", agents=None)
    ] = False,
    timeline: Annotated[
        bool, Arg("Show each machine's last start part by part, and what made it slow.", agents=None)
    ] = False,
    invalid: Mapping[str, ConfigError] | None = None,
) -> Status:
    """Show deployments, their progress, endpoints and health. Without profiles, no endpoint is probed.

    Without `profiles`, everything that has a state here. With `details`, also what each engine runs with; with
    `timeline`, the last start of each machine. A deployment that cannot be observed, and each of `invalid` (the error
    of each file that holds no valid profile), has the `error`.

    Raise as `plan` does; `errors.UsageError` for `details` without profiles.
    """
    loaded = loading.profiles(profiles)
    if details and not loaded:
        raise UsageError("-details needs a profile.", hint="Name the profiles: status -details PROFILE...")
    adapters = workspace.adapters
    if loaded or invalid:
        all_of_them = _statuses_of(workspace, loaded, invalid)
    else:
        all_of_them = statuses(adapters.world(), dict.fromkeys(adapters.states.names()))
    names = [each.name for each in all_of_them if each.is_visible]
    visible = [profile for profile in loaded if profile.name in names]
    return Status(
        emulated=adapters.is_emulated,
        deployments=all_of_them,
        details=tuple(each for profile in visible for each in workspace.details(profile)) if details else None,
        timelines=tuple(each for name in names for each in workspace.timelines(name)) if timeline else None,
    )


def _statuses_of(
    workspace: Workspace, profiles: Iterable[Profile], invalid: Mapping[str, ConfigError] | None
) -> tuple[DeploymentStatus, ...]:
    adapters = workspace.adapters
    deployments, errors = workspace.resolve(profiles, invalid, adapters.pins.read())
    observed = statuses(adapters.world(), {deployment.name: deployment for deployment in deployments})
    unusable = (DeploymentStatus(name=name, replicas=(), error=error) for name, error in errors.items())
    return (*observed, *unusable)


OPERATION = Operation(
    run=status,
    results=(Status,),
    title="Status",
    tool="status",
    options=("parallelism", "backend"),
    takes_invalid=True,
)
