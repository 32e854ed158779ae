"""The graphs that an engine compiles before it serves, counted by the names its log gives them.

Source: tpu_inference 0.32.0 runner/compilation_manager.py, runner/utils.py, runner/tpu_runner.py; the
boot log of Gemma 4 E2B on one v6e chip (199 graphs in eleven groups). T are the token buckets, R the request buckets,
L the buckets of positions that speculation looks at, A the request buckets of attention.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tpudeploy.catalog import engines
from tpudeploy.domain.budget import EngineSettings
from tpudeploy.domain.compilation import CompilePlan
from tpudeploy.sizing.numbers import align, itemsize, power_of_two

_LEAST_REQUESTS = 8  # MIN_NUM_SEQS
_LONGEST_PROMPT_LOGPROBS = 1_024  # compilation_manager.py _precompile_gather_logprobs
_WORD = 4


def compile_plan(engine: EngineSettings) -> CompilePlan:
    """Return every graph, or none where the engine compiles on demand (`enforce_eager`, SKIP_JAX_PRECOMPILE)."""
    tokens, requests = token_buckets(engine, engine.release), request_buckets(engine.max_num_seqs)
    counts: dict[str, int] = {}
    if engine.is_precompiled:
        counts |= _backbones(engine, len(tokens) * len(_attention_buckets(engine)), len(tokens))
        counts |= _sampling(tokens, requests)
        if engine.speculation is None:
            counts |= _plain(engine, tokens, requests)
        else:
            counts |= _speculative(tokens, requests, logit_buckets(engine))
    return CompilePlan(
        token_buckets=tokens, request_buckets=requests, graphs={name: n for name, n in counts.items() if n}
    )


def token_buckets(engine: EngineSettings, release: str = "") -> tuple[int, ...]:
    """Return T: powers of two; with a gap, powers up to it and then steps of it.

    The last one is the budget of a step, or in a `release` without that cap the first that holds it.
    """
    least = max(engine.min_token_bucket, power_of_two(max(_WORD // itemsize(engine.cache_dtype), 1)))
    is_capped = engines.release(release).caps_ladder
    budget = align(engine.max_num_batched_tokens, least) if is_capped else engine.max_num_batched_tokens
    grown = _stepped(least, budget, engine.padding_gap) if engine.padding_gap else _doubled(least, budget)
    capped = {size for size in grown if size <= budget} | {budget} if is_capped else set(grown)
    return tuple(sorted({*capped, *engine.extra_token_buckets}))


def request_buckets(max_num_seqs: int) -> tuple[int, ...]:
    """Return R: powers of two from 8 below `max_num_seqs`, and itself."""
    most = max(max_num_seqs, _LEAST_REQUESTS)
    return tuple(sorted({size for size in _doubled(_LEAST_REQUESTS, most) if size < most} | {most}))


def logit_buckets(engine: EngineSettings) -> tuple[int, ...]:
    """Return L: powers of two from 8 until one holds each request's proposals and the token after them."""
    proposed = 0 if engine.speculation is None else engine.speculation.tokens
    return _doubled(_LEAST_REQUESTS, max(engine.max_num_seqs, _LEAST_REQUESTS) * (proposed + 1))


def _attention_buckets(engine: EngineSettings) -> tuple[int, ...]:
    """Return A: the largest alone, unless ATTN_BUCKETIZED_NUM_REQS asks for more; () stands for all of R."""
    most = engine.max_num_seqs
    if engine.attention_buckets is None:
        return (most,)
    sizes = engine.attention_buckets or request_buckets(most)
    return sizes if most in sizes else (*sizes, most)


def _doubled(least: int, most: int) -> tuple[int, ...]:
    """Return powers of two from `least` to the first that is not below `most`."""
    sizes = [least]
    while sizes[-1] < most:
        sizes.append(sizes[-1] * 2)
    return tuple(sizes)


def _stepped(least: int, most: int, gap: int) -> tuple[int, ...]:
    """Return powers of two up to `gap`, then steps of `gap` (runner/utils.py get_token_paddings)."""
    sizes, size = [], least
    while size <= gap:
        sizes.append(size)
        size *= 2
    size //= 2
    while size < most:
        size += gap
        sizes.append(size)
    return tuple(sizes)


def _backbones(engine: EngineSettings, backbones: int, tokens: int) -> Mapping[str, int]:
    """Return |T||A| and, for a multimodal model, the same from embeddings, with two mergers of |T| each."""
    if not engine.is_multimodal:
        return {"backbone": backbones}
    return {
        "backbone": backbones,
        "input_embeddings_merger": tokens,
        "input_embeddings_merger_text_only": tokens,
        "backbone with embeds": backbones,
    }


def _sampling(tokens: Sequence[int], requests: Sequence[int]) -> Mapping[str, int]:
    """Return the graphs at the end of a step: sample is with or without sampling and logprobs, hence 4|R|."""
    return {
        "sample": 4 * len(requests),
        "gather_logprobs": len(requests),
        "compute_and_gather_prompt_logprobs": sum(t <= _LONGEST_PROMPT_LOGPROBS for t in tokens),
        "structured_decode": len(requests),
    }


def _plain(engine: EngineSettings, tokens: Sequence[int], requests: Sequence[int]) -> Mapping[str, int]:
    """Return the graphs without speculation; placeholders, |T u R|(1 + |R|), are only for asynchronous scheduling."""
    sizes = len({*tokens, *requests})
    return {
        "_substitute_placeholder_token_fn": sizes * (1 + len(requests)) if engine.is_async else 0,
        "select_from_array [select all logits]": _pairs(tokens, requests),
        "compute_logits": len(requests),
    }


def _speculative(tokens: Sequence[int], requests: Sequence[int], logits: Sequence[int]) -> Mapping[str, int]:
    """Return the graphs with n-gram speculation, which turns asynchronous scheduling off.

    No boot log shows these groups. The two that extend logits are counted for every pair; 0.32.0 leaves out those with
    more requests than positions.
    """
    every = len(logits) * len(requests)
    return {
        "select_from_array [select all logits]": _pairs(tokens, logits),
        "select_from_array [select bonus tokens for spec decoding]": _pairs(logits, requests),
        "select_from_array [select target tokens for spec decoding]": len(logits),
        "compute_logits": len(logits),
        "gather_logprobs_spec": _pairs(logits, requests),
        "greedy_rejection_sampler": every,
        "random_rejection_sampler": every,
        "extract_last_sampled_tokens": every,
        "extract_draft_token_ids": _pairs(tokens, logits),
        "_process_and_extend_logits": every,
        "_extend_logits_simple": every,
        "select_bonus_logits": every,
        "select_target_logits": every,
    }


def _pairs(outer: Sequence[int], inner: Sequence[int]) -> int:
    """Return how many pairs have an inner size that is no larger: a selection cannot exceed what it selects from."""
    return sum(small <= large for large in outer for small in inner)
