"""A profile that was given another name: its slices stand under the old one, and would be bought anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.diagnostics import Diagnostic, Explanation, Severity
from tpudeploy.domain.state import Attempt, State
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
# These follow the name, and pins the day.
_NAMES = {"serving.container_name", *FOLLOWS}


def renamed(deployment: Deployment, states: Iterable[State]) -> Iterator[Diagnostic]:
    """A warning for each of `states`, those of no profile of this plan, that fits a deployment without a state."""
    wanted = _nameless(deployment.attributes)
    for state in states:
        fitting = [a.name for a in state.attempts if _stands(a) and _nameless(a.spec) == wanted]
        if fitting:
            yield Diagnostic(
                code=RENAMED,
                message=f"{deployment.name} has no state, and what {state.deployment} has is just what it asks for: "
                f"{', '.join(fitting)}.",
                severity=Severity.WARNING,
                hint=f"If {state.deployment} was renamed: `tpudeploy state mv {state.deployment} {deployment.name}`, "
                "before others are bought.",
            )


def _stands(attempt: Attempt) -> bool:
    return attempt.holds_slice and not attempt.is_lost


def _nameless(attributes: Mapping[str, Json]) -> dict[str, Json]:
    return {path: value for path, value in attributes.items() if path not in _NAMES}
