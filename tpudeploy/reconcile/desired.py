"""The attributes that one slice should have: those of the profile, but what `lifecycle.ignore_changes` exempts."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.domain.deployment import MACHINE_IMAGE, Deployment, Json
from tpudeploy.domain.plan import Effect
from tpudeploy.domain.state import Attempt
from tpudeploy.node.fingerprint import effect
from tpudeploy.pins import FOLLOWS

CONTAINER_NAME = "serving.container_name"
# Values that earlier versions wrote for keys that a profile does not set, and that have no value by default now. They
# only bounded a search that is over.
FORMER_DEFAULTS: Mapping[str, Json] = {"placement.max_parallel_requests": 4}


def desired_attributes(deployment: Deployment, attempt: Attempt) -> dict[str, Json]:
    """Return the attributes that this slice should have: the profile's, but for exempt ones those of the slice.

    A pin that the slice was not given, or that is not known any more, is exempt like an ignored attribute: the slice
    may run exactly what is pinned, and a new or a missing lock file restarts no server (decision 34). So is the name
    of a container that only follows the deployment's: `state mv` restarts nothing.

    A default of an earlier version, which the profile never set, stays as it was written.

    A slice keeps the image of its machine too: a newer one is for machines that do not exist yet.

    A restart for another reason applies the exempt serving attributes too, and a replacement applies the pins: the
    container is rendered from the profile, and the state must say what really runs.
    """
    before, after = attempt.spec, deployment.attributes_at(attempt.backend)
    # Nothing differs, so nothing can be exempt. A fleet has thousands of such slices.
    if before == after:
        return dict(after)
    differing = {p for p in before.keys() | after.keys() if before.get(p) != after.get(p)}
    new_pins = FOLLOWS.keys() & (before.keys() ^ after.keys()) | differing & {MACHINE_IMAGE}
    exempt = {p for p in differing if p in new_pins or _is_exempt(p, deployment, attempt)}
    costs = set(map(effect, differing - exempt))
    if Effect.RESTART in costs:
        exempt = {p for p in exempt if effect(p) is not Effect.RESTART}
    # The next slice gets the pins, also where the user asked for it.
    if Effect.REPLACE in costs or attempt.is_to_go:
        exempt -= new_pins
    attributes = {p: v for p, v in after.items() if p not in exempt}
    return attributes | {p: before[p] for p in exempt & before.keys()}


def _is_exempt(path: str, deployment: Deployment, attempt: Attempt) -> bool:
    # The container was named after the deployment, and the profile does not name it.
    if path == CONTAINER_NAME and path in attempt.spec and deployment.origin(path) is None:
        return True
    if path in FORMER_DEFAULTS and path not in deployment.attributes and attempt.spec[path] == FORMER_DEFAULTS[path]:
        return True
    return covers(deployment.lifecycle.ignore_changes, path)


def covers(ignored: tuple[str, ...], path: str) -> bool:
    """Return whether `path` is one of the ignored paths, is below one, or is the pin of one."""
    paths = (path, *FOLLOWS.get(path, ()))
    return any(each == prefix or each.startswith(f"{prefix}.") for prefix in ignored for each in paths)
