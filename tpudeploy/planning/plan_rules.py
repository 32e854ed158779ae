"""The rules that a whole plan is checked against: `prevent_destroy`, an end, hours, and a profile that was renamed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.diagnostics import CodePage, Diagnostic, Severity
from tpudeploy.domain.names import ROUTER
from tpudeploy.domain.plan import Action, Change, Goal
from tpudeploy.domain.state import State
from tpudeploy.pins import FOLLOWS
from tpudeploy.sizing.checks.durations import least_start
from tpudeploy.text import words

RENAMED = "TPU3022"
UNREACHABLE_END = "TPU3023"
ONLY_HERE = "TPU3024"
EXPLANATIONS: Mapping[str, CodePage] = {
    UNREACHABLE_END: CodePage(
        "lifecycle.end comes before the server can serve",
        "Chips are billed from the grant, but the server serves only after the image pull, the weights and the "
        "compilation. The deployment would end before that, so no slice is requested.",
        "lifecycle: {end: 24h}",
    ),
    ONLY_HERE: CodePage(
        "Only this computer starts the deployment in the morning",
        "At the end of its hours, the machine is deleted. Only `apply` starts a new one, and it needs the state. "
        "The state is in a folder of this computer, so the deployment doesn't start while the computer is off.",
        "tpudeploy state migrate NAME gs://BUCKET",
    ),
    RENAMED: CodePage(
        "Another deployment has exactly what this profile declares",
        "This profile has no state, but the slices of another deployment match it in every attribute. If you "
        "renamed the profile, rename its state too. Otherwise, the old slices remain and new ones are bought. If "
        "you want both deployments, ignore this.",
        "tpudeploy state mv OLD NEW",
    ),
}
# The first follows the name of the deployment; pins follow the day.
_NAMES = {"serving.container_name", *FOLLOWS}


def forbidden_deletions(deployments: Iterable[Deployment], goals: Iterable[Goal]) -> Iterator[Diagnostic]:
    """Yield an error for each change that `lifecycle.prevent_destroy` forbids."""
    protected = {d.name: d for d in deployments if d.lifecycle.prevent_destroy}
    for goal in goals:
        for change in goal.changes:
            if goal.name in protected and _deletes(change):
                yield Diagnostic(
                    code="TPU3002",
                    message=f"{change.address} may not be destroyed, but this plan would {change.action} it.",
                    path="lifecycle.prevent_destroy",
                    location=protected[goal.name].origins.get("lifecycle.prevent_destroy"),
                    hint="Set lifecycle.prevent_destroy to false first, or undo the change that forces it.",
                )


def _deletes(change: Change) -> bool:
    """Return whether the change deletes a slice that the deployment could keep.

    A cutover deletes it only once another one serves in its place. `update: blue-green` and `on_run_end: renew` require
    that, and can be combined with `prevent_destroy`.
    """
    # A router's VM holds no chips, and another one is nearly always to be had.
    if change.replica == ROUTER:
        return False
    return change.action is Action.DESTROY or (change.action is Action.REPLACE and not change.hands_over)


def rename_warnings(deployment: Deployment, states: Iterable[State]) -> Iterator[Diagnostic]:
    """Yield a warning for each state without a profile whose slices fit a deployment that has no state."""
    attributes = {backend: _nameless(deployment.attributes_at(backend)) for backend in Backend}
    for state in states:
        fitting = [
            a.name
            for a in state.attempts
            if a.holds_slice and not a.is_lost and _nameless(a.spec) == attributes[a.backend]
        ]
        if fitting:
            yield Diagnostic(
                code=RENAMED,
                message=f"{deployment.name} has no state, and {state.deployment} has slices that match it exactly: "
                f"{', '.join(fitting)}.",
                severity=Severity.WARNING,
                hint=f"If {state.deployment} was renamed: `tpudeploy state mv {state.deployment} {deployment.name}`, "
                "before an apply acquires others.",
            )


def _nameless(attributes: Mapping[str, Json]) -> dict[str, Json]:
    return {path: value for path, value in attributes.items() if path not in _NAMES}


def unreachable_end(deployment: Deployment, now: float) -> Iterator[Diagnostic]:
    """Yield an error if the deployment, of which nothing exists yet, would end before it serves."""
    end = deployment.lifecycle.end
    if end is None or end.at is None:
        return
    start = least_start(deployment)
    remaining = end.at - now
    if remaining >= start.seconds:
        return
    when = (
        f"was {words.duration(-remaining)} ago"
        if remaining <= 0
        else f"is in {words.duration(remaining)}, and {start.words}"
    )
    yield Diagnostic(
        code=UNREACHABLE_END,
        message=f"{deployment.name} would end before it serves: lifecycle.end, {end.text}, {when}.",
        path="lifecycle.end",
        location=deployment.origins.get("lifecycle.end"),
        hint="Write a later time, or a duration such as 24h, which counts from when it first serves.",
    )


def started_only_here(deployment: Deployment) -> Iterator[Diagnostic]:
    """Yield a warning if the deployment, whose state is in a folder of this computer, has hours."""
    hours = deployment.lifecycle.hours
    if hours is None:
        return
    yield Diagnostic(
        code=ONLY_HERE,
        message=f"Only an apply on this computer starts {deployment.name} again in its hours ({hours.text}): its state "
        "is in a folder here.",
        severity=Severity.WARNING,
        path="lifecycle.hours",
        location=deployment.origins.get("lifecycle.hours"),
        hint=f"Run `tpudeploy state migrate {deployment.name} gs://BUCKET`, and let the text of "
        "`tpudeploy render PROFILE watch-cloud-run` start it. On a computer that is always on, `watch-systemd` does.",
    )
