"""What keeps a server that serves from serving well, and what would help: computed for the deployment in hand.

Not a forecast of speed: how many tokens and requests fit is known, how fast they are then is to be measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import floor

from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.metrics import Figures
from tpudeploy.sizing.advice import Remedy, budget_with, more_cache, starts

# As in the alerts that operators set (KV cache usage is 1 - free blocks / all; what is only kept for reuse is free).
KV_CACHE_FULL = 0.85
_WORTH_IT = 1.1  # fewer than a tenth more requests are not worth a restart

Budget = HbmBudget | Unsized | None  # None: no profile was named


def is_full(of: Figures) -> bool:
    return of.kv_cache_used is not None and of.kv_cache_used > KV_CACHE_FULL


def cache_advice(budget: Budget) -> str:
    """Return what would give the KV cache more room, each way with the tokens that it then holds."""
    if not isinstance(budget, HbmBudget):
        return f"More chips or another replica hold more tokens.{_not_computed(budget)}"
    now = budget.kv_cache_tokens
    ways = [_way(way) for way in more_cache(budget)]
    replica = f"another replica: {2 * now:,} on both"
    return f"The KV cache holds {now:,} tokens. More would hold: {'; '.join([*ways, replica])}."


def waiting_advice(of: Figures, budget: Budget) -> str:
    """Return what would let waiting requests in: more cache, more places, or more tokens a step."""
    if is_full(of):
        return cache_advice(budget)
    if not isinstance(budget, HbmBudget):
        return f"There is KV cache left: raise max_num_seqs or max_num_batched_tokens.{_not_computed(budget)}"
    engine = budget.engine
    places = engine.max_num_seqs * engine.data_parallel
    if of.running is not None and of.running >= places:
        return _more_places(of, budget, places)
    tokens = engine.max_num_batched_tokens
    larger = budget_with(budget, max_num_batched_tokens=2 * tokens)
    cost = "" if larger is None else f", and compiles {larger.compilation.total} graphs, not {budget.compilation.total}"
    return (
        f"Neither all {places} places nor the KV cache are taken, so prompts wait for the tokens of a step "
        f"(max_num_batched_tokens {tokens:,}). {2 * tokens} lets them in sooner{cost}; each step then takes longer."
    )


def preemption_advice(of: Figures, budget: Budget) -> str:
    """Return how many requests the cache holds at the length that they had on average, or else what holds more."""
    mean = _mean_tokens(of)
    if not isinstance(budget, HbmBudget) or mean is None:
        return f"Lower max_num_seqs, so that fewer requests grow at once. {cache_advice(budget)}"
    engine = budget.engine
    tokens = budget.kv_cache_tokens / engine.data_parallel
    fitting = floor(KV_CACHE_FULL * tokens / mean)
    if not 0 < fitting < engine.max_num_seqs:
        return cache_advice(budget)
    return (
        f"Requests took {mean:,.0f} tokens on average, and the KV cache holds {tokens / mean:,.0f} of these at once: "
        f"max_num_seqs: {fitting} leaves them room to grow (now {engine.max_num_seqs}). {cache_advice(budget)}"
    )


def _more_places(of: Figures, budget: HbmBudget, places: int) -> str:
    """Every place is taken: more of them, as far as cache and programs allow."""
    engine, used = budget.engine, of.kv_cache_used or 0.0
    most = floor(engine.max_num_seqs * KV_CACHE_FULL / used) if used else 2 * engine.max_num_seqs
    wanted = min(2 * engine.max_num_seqs, most)
    says = f"All {places} places are taken (max_num_seqs {engine.max_num_seqs})"
    if wanted < engine.max_num_seqs * _WORTH_IT:
        return f"{says}, and the KV cache has no room for more requests. {cache_advice(budget)}"
    tokens = max(engine.max_num_batched_tokens, wanted)
    other = budget_with(budget, max_num_seqs=wanted, max_num_batched_tokens=tokens)
    if other is None or not starts(other):
        return (
            f"{says}, and at hbm_utilization {engine.utilization:g} the programs for {wanted} have no proven room. "
            "Add a replica, or lower hbm_utilization first: `tpudeploy size` computes it."
        )
    return (
        f"{says}, and {1 - used:.0%} of the KV cache is free: max_num_seqs: {wanted} would use about "
        f"{used * wanted / engine.max_num_seqs:.0%} of it at these lengths. A cold start then compiles "
        f"{other.compilation.total} graphs, not {budget.compilation.total}."
    )


def _mean_tokens(of: Figures) -> float | None:
    finished = sum(of.finished.values())
    tokens = (of.prompt_tokens or 0.0) + (of.generation_tokens or 0.0)
    return tokens / finished if finished and tokens else None


def _way(way: Remedy) -> str:
    return f"{_settings(way.settings)}: {way.budget.kv_cache_tokens:,}"


def _settings(of: Mapping[str, object]) -> str:
    return " x ".join(
        f"{key} {value:.2f}" if isinstance(value, float) else f"{key} {value}" for key, value in of.items()
    )


def _not_computed(budget: HbmBudget | Unsized | None) -> str:
    if isinstance(budget, Unsized):
        return f" How many is not computed, because {budget.because}."
    return " With a profile that can be sized, what each setting would hold is computed."
