"""Whether a deployment can serve a number of users at one context: at once, by queueing, or never."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment
from tpudeploy.sizing.kv import blocks_per_request, layout


class ServingAnswer(StrEnum):
    FITS = "fits"  # all run at once
    QUEUES = "queues"  # some wait for others to end
    REFUSED = "refused"  # each is answered with HTTP 400


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCapacity:
    """`at_once` is how many of these requests run together. `why` is a sentence for a person."""

    service: ServingAnswer
    at_once: int
    why: str


def can_serve(budget: HbmBudget, *, users: int, context: int, output: int) -> ServingCapacity:
    """Return whether it serves `users` requests at once, each of `context` prompt tokens and up to `output` new ones.

    A prompt and its output share `max_model_len`: a prompt that leaves no room for one token is refused.
    """
    longest = budget.engine.max_model_len
    if context + output > longest or output < 1:
        usable = max(longest - max(output, 1), 0)
        why = f"{context} + {output} tokens exceed max_model_len {longest}: at most {usable} prompt tokens"
        return ServingCapacity(service=ServingAnswer.REFUSED, at_once=0, why=why)
    room, why = _at_once(budget, context + output)
    if room == 0:
        return ServingCapacity(
            service=ServingAnswer.REFUSED, at_once=0, why="not one such request fits in the KV cache"
        )
    if users <= room:
        return ServingCapacity(service=ServingAnswer.FITS, at_once=users, why=f"{room} such requests run at once")
    return ServingCapacity(
        service=ServingAnswer.QUEUES, at_once=room, why=f"{room} of {users} run at once, {why}; the rest queue"
    )


def _at_once(budget: HbmBudget, tokens: int) -> tuple[int, str]:
    """Return how many run at once: what the blocks of each rank hold, less the null block, or `max_num_seqs`."""
    engine = budget.engine
    kv = layout(budget.model, engine, budget.block_size)
    request_blocks = blocks_per_request(kv, engine, budget.block_size, tokens)
    capacity = max(budget.num_blocks - 1, 0) // request_blocks if request_blocks else engine.max_num_seqs
    why = "for want of KV cache" if capacity < engine.max_num_seqs else f"by max_num_seqs {engine.max_num_seqs}"
    return min(capacity, engine.max_num_seqs) * engine.data_parallel, why


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
