"""The estimates of a change: KV cache, start time and downtime, from the sizing before and after it."""

from __future__ import annotations

from dataclasses import replace

from pydantic import ValidationError

from tpudeploy.config.schema import ProfileSpec
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.plan import Action, Change
from tpudeploy.domain.policy import nested
from tpudeploy.pins import DIGEST, unpinned
from tpudeploy.sizing import size
from tpudeploy.sizing.checks.machine import cache_outlives_container


def with_estimates(change: Change, deployment: Deployment, patience: Patience) -> Change:
    """Return `change` with its estimates, as far as both sides can be sized."""
    after = deployment.budget
    if change.action not in {Action.RESTART, Action.REPLACE} or not isinstance(after, HbmBudget):
        return change
    before = _budget_before(change)
    if before is not None:
        change = replace(
            change,
            kv_tokens_before=before.kv_cache_tokens,
            kv_tokens_after=after.kv_cache_tokens,
            start_seconds_before=before.start.cold_seconds,
            start_seconds_after=after.start.cold_seconds,
        )
    # Only a restart interrupts the endpoint: a replacement is served by the old slice, or waits for capacity.
    if change.action is not Action.RESTART:
        return change
    start = after.start.cold_seconds
    if before is not None and _keeps_compile_cache(change, before, deployment, after):
        start = after.start.warm_seconds
    return replace(
        change,
        downtime_seconds_least=patience.takeover + start,
        downtime_seconds_most=patience.takeover + after.start.cold_seconds,
    )


def _budget_before(change: Change) -> HbmBudget | None:
    """Return the budget of the attributes that the slice has now, or None if they cannot be sized (any more)."""
    attributes = {
        path: value
        for path, value in unpinned(change.before).items()
        if path.startswith(("model.", "tpu.", "serving."))
    }
    tree = {"version": 1, "name": change.deployment, **nested(attributes)}
    # The model's configuration file may have changed since.
    if "config" in tree.get("model", {}):
        return None
    try:
        budget = size(ProfileSpec.model_validate(tree))
    except ValidationError:
        # An adopted slice whose server is unknown, or a profile of another version of tpudeploy.
        return None
    return budget if isinstance(budget, HbmBudget) else None


def _keeps_compile_cache(change: Change, before: HbmBudget, deployment: Deployment, after: HbmBudget) -> bool:
    """Return whether the compile cache may exist after the change, and still contain the programs that are needed."""
    needs_other_programs = before.compilation != after.compilation or any(
        field.path in {"serving.image", DIGEST} or field.path.startswith("model.") for field in change.fields
    )
    return not needs_other_programs and cache_outlives_container(deployment)
