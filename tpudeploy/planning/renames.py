"""Notice a profile that was renamed: its slices belong to the old name, and an apply would acquire others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.diagnostics import Diagnostic, Explanation, Severity
from tpudeploy.domain.state import State
from tpudeploy.pins.pins import FOLLOWS

RENAMED = "TPU3022"
EXPLANATIONS: Mapping[str, Explanation] = {
    RENAMED: Explanation(
        "Another deployment has exactly what this profile declares",
        "This profile has no state, and the slices of another deployment match it in every attribute. If the "
        "profile was renamed, rename its state too; otherwise its slices remain, and others are bought. If both "
        "deployments are meant to exist, there is nothing to do.",
        "tpudeploy state mv OLD NEW",
    ),
}
# The first follows the name of the deployment; pins follow the day.
_NAMES = {"serving.container_name", *FOLLOWS}


def renamed(deployment: Deployment, states: Iterable[State]) -> Iterator[Diagnostic]:
    """Yield a warning for each state without a profile whose slices fit a deployment that has no state."""
    attributes = _nameless(deployment.attributes)
    for state in states:
        fitting = [
            a.name for a in state.attempts if a.holds_slice and not a.is_lost and _nameless(a.spec) == attributes
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
