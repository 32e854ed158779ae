"""What a change does to memory, start time and the endpoint: the sizing of what runs beside that of what is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pydantic import ValidationError

from tpudeploy.config.schema import ProfileSpec
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.plan import Action, Change
from tpudeploy.domain.policy import nested
from tpudeploy.pins.pins import DIGEST, unpinned
from tpudeploy.sizing import size
from tpudeploy.sizing.checks.machine import cache_outlives_container

_WEIGHED = {Action.RESTART, Action.REPLACE}


def weighed(change: Change, deployment: Deployment, patience: Patience) -> Change:
    """`change` with what it does, as far as both sides can be sized."""
    after = deployment.budget
    if change.action not in _WEIGHED or not isinstance(after, HbmBudget):
        return change
    before = _budget(change)
    if before is not None:
        change = replace(
            change,
            kv_tokens_before=before.kv_cache_tokens,
            kv_tokens_after=after.kv_cache_tokens,
            start_seconds_before=before.start.cold_seconds,
            start_seconds_after=after.start.cold_seconds,
        )
    if change.action is not Action.RESTART:
        return change
    start = after.start.warm_seconds if _keeps_graphs(change, before, deployment, after) else after.start.cold_seconds
    return replace(
        change,
        downtime_seconds_least=patience.takeover + start,
        downtime_seconds_most=patience.takeover + after.start.cold_seconds,
    )


def _budget(change: Change) -> HbmBudget | None:
    """Of what the slice was last asked to be; None where that cannot be sized (any more)."""
    tree = {"version": 1, "name": change.deployment, **nested(_of_profile(unpinned(change.before)))}
    if "config" in tree.get("model", {}):
        return None  # the file may say something else by now
    try:
        found = size(ProfileSpec.model_validate(tree))
    except ValidationError:
        return None  # an adopted slice, of whose server nothing is known, or a profile of another version
    return found if isinstance(found, HbmBudget) else None


def _of_profile(attributes: Mapping[str, Json]) -> Mapping[str, Json]:
    return {path: value for path, value in attributes.items() if path.startswith(("model.", "tpu.", "serving."))}


def _keeps_graphs(change: Change, before: HbmBudget | None, deployment: Deployment, after: HbmBudget) -> bool:
    """Whether the compile cache may still be there after the change, and still fit."""
    is_same = before is not None and before.compilation == after.compilation
    changed = {field.path for field in change.fields}
    makes_others = any(path in {"serving.image", DIGEST} or path.startswith("model.") for path in changed)
    return is_same and not makes_others and cache_outlives_container(deployment)
