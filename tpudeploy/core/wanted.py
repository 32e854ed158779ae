"""What one slice should be, once `lifecycle.ignore_changes` has had its say."""

from __future__ import annotations

from tpudeploy.core.fingerprint import effect
from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.plan import Effect
from tpudeploy.domain.state import Attempt


def wanted(deployment: Deployment, attempt: Attempt) -> dict[str, Json]:
    """The attributes this slice should have: the profile's, but ignored ones as the slice has them.

    A restart that happens for another reason takes the ignored serving attributes along: the container is rendered
    from the profile, and the state must say what really runs.
    """
    ignored = deployment.lifecycle.ignore_changes
    if not ignored:
        return dict(deployment.attributes)
    before, after = attempt.spec, deployment.attributes
    differing = [p for p in {*before, *after} if before.get(p) != after.get(p)]
    restarts = any(effect(p) is Effect.RESTART and not covers(ignored, p) for p in differing)
    kept = {p for p in differing if covers(ignored, p) and not (restarts and effect(p) is Effect.RESTART)}
    own = {p: v for p, v in after.items() if p not in kept}
    return own | {p: before[p] for p in kept if p in before}


def covers(ignored: tuple[str, ...], path: str) -> bool:
    """Whether `path` is one of the ignored, or below one."""
    return any(path == i or path.startswith(f"{i}.") for i in ignored)
