"""How many requests one server of a deployment runs at once, by its settings."""

from __future__ import annotations

from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment


def max_num_seqs_of(deployment: Deployment) -> int | None:
    """Return the limit of each engine: the profile's, or vLLM's own default where the deployment could be sized."""
    setting = deployment.attributes.get("serving.max_num_seqs")
    if isinstance(setting, int):
        return setting
    budget = deployment.budget
    return budget.engine.max_num_seqs if isinstance(budget, HbmBudget) else None


def places_of(deployment: Deployment) -> int | None:
    """Return the limit of all data-parallel engines of a server together, or None if it is unknown."""
    each, ranks = max_num_seqs_of(deployment), deployment.attributes.get("serving.data_parallel_size", 1)
    return None if each is None or not isinstance(ranks, int) else each * ranks
