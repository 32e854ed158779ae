"""Advice for a server that serves badly, computed for its deployment.

It is not a forecast of speed: the number of tokens and requests that fit is computed, their speed has to be measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import floor

from tpudeploy.catalog.engines import basis
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.metrics import EngineFigures
from tpudeploy.sizing.advice import more_cache
from tpudeploy.sizing.search import budget_with, starts

# As in the alerts that operators set. Blocks that are only kept for reuse are free.
KV_CACHE_FULL = 0.85
_WORTH_IT = 1.1  # a gain of less than a tenth is not worth a restart

Budget = HbmBudget | Unsized | None  # None: without a profile


def is_full(figures: EngineFigures) -> bool:
    return figures.kv_cache_used is not None and figures.kv_cache_used > KV_CACHE_FULL


def cache_advice(budget: Budget) -> str:
    """Return what would give the KV cache more room, with the tokens that it would hold then."""
    if not isinstance(budget, HbmBudget):
        return f"More chips or another replica hold more tokens.{_not_computed(budget)}"
    now = budget.kv_cache_tokens
    ways = [f"{_settings(remedy.settings)}: {remedy.budget.kv_cache_tokens:,}" for remedy in more_cache(budget)]
    replica = f"another replica: {2 * now:,} on both"
    row = basis(budget.engine.release)
    return f"The KV cache holds {now:,} tokens ({row}). More would hold: {'; '.join([*ways, replica])}."


def waiting_advice(figures: EngineFigures, budget: Budget) -> str:
    """Return what would let waiting requests in: more cache, more places, or more tokens a step."""
    if is_full(figures):
        return cache_advice(budget)
    if not isinstance(budget, HbmBudget):
        return f"There is KV cache left: raise max_num_seqs or max_num_batched_tokens.{_not_computed(budget)}"
    engine = budget.engine
    places = engine.max_num_seqs * engine.data_parallel
    if figures.running is not None and figures.running >= places:
        return _more_places(figures, budget, places)
    tokens = engine.max_num_batched_tokens
    larger = budget_with(budget, max_num_batched_tokens=2 * tokens)
    cost = "" if larger is None else f", and compiles {_graphs(larger, budget)}"
    return (
        f"Neither all {places} places nor the KV cache are taken, so prompts wait for the tokens of a step "
        f"(max_num_batched_tokens {tokens:,}). {2 * tokens} lets them in sooner{cost}; each step then takes longer."
    )


def preemption_advice(figures: EngineFigures, budget: Budget) -> str:
    """Return the number of requests of average length that the cache holds, or else what would hold more."""
    mean = _mean_tokens(figures)
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


def _more_places(figures: EngineFigures, budget: HbmBudget, places: int) -> str:
    """Return the number of places that cache and programs allow, where every place is taken."""
    engine, used = budget.engine, figures.kv_cache_used or 0.0
    most = floor(engine.max_num_seqs * KV_CACHE_FULL / used) if used else 2 * engine.max_num_seqs
    proposed = min(2 * engine.max_num_seqs, most)
    says = f"All {places} places are taken (max_num_seqs {engine.max_num_seqs})"
    if proposed < engine.max_num_seqs * _WORTH_IT:
        return f"{says}, and the KV cache has no room for more requests. {cache_advice(budget)}"
    tokens = max(engine.max_num_batched_tokens, proposed)
    other = budget_with(budget, max_num_seqs=proposed, max_num_batched_tokens=tokens)
    if other is None or not starts(other):
        return (
            f"{says}, and at hbm_utilization {engine.utilization:g} the programs for {proposed} have no proven room. "
            "Add a replica, or lower hbm_utilization first: `tpudeploy size` computes it."
        )
    return (
        f"{says}, and {1 - used:.0%} of the KV cache is free: max_num_seqs: {proposed} would use about "
        f"{used * proposed / engine.max_num_seqs:.0%} of it at these lengths. A cold start then compiles "
        f"{_graphs(other, budget)}."
    )


def _graphs(then: HbmBudget, now: HbmBudget) -> str:
    return f"{then.compilation.total} graphs, not {now.compilation.total} ({basis(now.engine.release)})"


def _mean_tokens(figures: EngineFigures) -> float | None:
    finished = sum(figures.finished.values())
    tokens = (figures.prompt_tokens or 0.0) + (figures.generation_tokens or 0.0)
    return tokens / finished if finished and tokens else None


def _settings(settings: Mapping[str, object]) -> str:
    texts = (f"{value:.2f}" if isinstance(value, float) else str(value) for value in settings.values())
    return " x ".join(f"{name} {text}" for name, text in zip(settings, texts, strict=True))


def _not_computed(budget: HbmBudget | Unsized | None) -> str:
    if isinstance(budget, Unsized):
        return f" How many is not computed, because {budget.because}."
    return " With a profile that can be sized, what each setting would hold is computed."
