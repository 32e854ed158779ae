"""What one slice should be, once `lifecycle.ignore_changes` has had its say."""

from __future__ import annotations

from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.plan import Effect
from tpudeploy.domain.state import Attempt
from tpudeploy.node.fingerprint import effect
from tpudeploy.pins.pins import FOLLOWS

CONTAINER_NAME = "serving.container_name"


def desired_attributes(deployment: Deployment, attempt: Attempt) -> dict[str, Json]:
    """The attributes this slice should have: the profile's, but ignored ones as the slice has them.

    A pin that the slice was not given, or that is not known any more, is ignored too: what it runs may well be just
    what is pinned, and nobody's server is restarted because a lock file has come, or is missing.

    A container's name that only follows the deployment's is ignored as well: `state mv` restarts nothing.

    A restart that happens for another reason takes the ignored serving attributes along, and another slice the pins:
    the container is rendered from the profile, and the state must say what really runs.
    """
    ignored, before, after = deployment.lifecycle.ignore_changes, attempt.spec, deployment.attributes
    new = {p for p in FOLLOWS if (p in before) != (p in after)}
    follows_name = _is_named_after_deployment(deployment, attempt)
    if not ignored and not new and not follows_name:
        return dict(after)
    differing = [p for p in {*before, *after} if before.get(p) != after.get(p)]
    left = {p for p in differing if p in new or covers(ignored, p) or (follows_name and p == CONTAINER_NAME)}
    costs = {effect(p) for p in differing if p not in left}
    taken_along = {p for p in left if effect(p) is Effect.RESTART} if Effect.RESTART in costs else set()
    kept = left - taken_along - (new if Effect.REPLACE in costs else set())
    own = {p: v for p, v in after.items() if p not in kept}
    return own | {p: before[p] for p in kept if p in before}


def _is_named_after_deployment(deployment: Deployment, attempt: Attempt) -> bool:
    """Return whether the container has an earlier name of the deployment, and the profile writes none."""
    before, after = attempt.spec.get(CONTAINER_NAME), deployment.attributes.get(CONTAINER_NAME)
    return before is not None and before != after and deployment.origin(CONTAINER_NAME) is None


def covers(ignored: tuple[str, ...], path: str) -> bool:
    """Whether `path` is one of the ignored, or below one, or the pin of one."""
    named = (path, *FOLLOWS.get(path, ()))
    return any(each == i or each.startswith(f"{i}.") for i in ignored for each in named)
