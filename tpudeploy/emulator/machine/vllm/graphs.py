"""The graphs that the engine compiles before it serves: each call of tpu_inference's compilation manager, in its order.

The stand-in enumerates them as the engine does, shape by shape. It never asks the product's arithmetic, which counts
them by formulas: where the two disagree, one of them is wrong. Without speculation the list is that of the measured
cold boot of google/gemma-4-E2B-it on a v6e-1, with every group's seconds; with n-gram speculation it follows the source
(tpu_inference/runner/compilation_manager.py), and each graph is taken to last as long as a selection.

UNVERIFIED: how many graphs n-gram speculation takes. No boot log at hand speculates (those that compile list 199).
A count over the source gave 599 for 4,096 tokens and 256 requests with three proposals, and 679 with a padding gap of
512: that is every pair of sizes, as here. The 0.32.0 wheel skips the pairs with more requests than positions in two
groups, `_process_and_extend_logits` and `_extend_logits_simple` (lines 1206 and 1272): 15 pairs each, so 569 and 649.
Only a log tells which an image does, so a difference is a figure of the attestation and never an alarm.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from tpudeploy.emulator.machine.vllm.arguments import Arguments, read_size

LEAST_REQUESTS = 8
LONGEST_PROMPT_LOGPROBS = 1024
BATCHED_TOKENS = 2048  # what the engine takes without --max-num-batched-tokens
# An image, video or sound is one item of a step: Gemma's longest, where the step would be shorter.
ITEM_TOKENS = 2496
# Words in the names of models that take more than text.
MULTIMODAL = ("gemma-3-", "gemma-4-", "-vl-", "llava", "pixtral", "llama-4")
ON = ("1", "true")
# Seconds of one graph: a group's duration in the measured boot by its number of graphs.
SECONDS = {
    "worker0 sample": 19 / 24,
    "worker0 gather_logprobs": 15 / 6,
    "worker0 compute_and_gather_prompt_logprobs": 19 / 7,
    "worker0 backbone": 190 / 9,
    "input_embeddings_merger": 4 / 9,
    "input_embeddings_merger_text_only": 3 / 9,
    "worker0 backbone with embeds": 164 / 9,
    "_substitute_placeholder_token_fn": 8 / 70,
    "select_from_array [worker0 select all logits]": 8 / 44,
    "worker0 compute_logits": 4 / 6,
    "structured_decode": 13 / 6,
}
OTHER_SECONDS = 8 / 44


@dataclass(frozen=True, slots=True)
class Graph:
    """One compiled program: the group it belongs to, and the shapes it is for, as the log has them."""

    group: str
    shapes: Mapping[str, int | bool]

    @property
    def name(self) -> str:
        return f"{self.group} --> {dict(self.shapes)}"

    @property
    def seconds(self) -> float:
        """Return the seconds of its compilation in the measured boot."""
        return SECONDS.get(self.group, OTHER_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes to which the engine pads what it computes with."""

    tokens: Sequence[int]
    requests: Sequence[int]
    attention: Sequence[int]
    logits: Sequence[int]


def graphs_of(arguments: Arguments, environment: Mapping[str, str]) -> tuple[Graph, ...]:
    """Return every graph in the order of compilation; none where the engine compiles when it must."""
    if arguments.has("enforce-eager") or environment.get("SKIP_JAX_PRECOMPILE", "0").lower() in ON:
        return ()
    proposed = _proposed_tokens(arguments)
    sizes = _sizes(arguments, environment, proposed or 0)
    is_async = proposed is None and arguments.flags.get("async-scheduling") != ("no",)
    return tuple(_compiled(sizes, arguments, speculates=proposed is not None, is_async=is_async))


def _compiled(sizes: Sizes, arguments: Arguments, *, speculates: bool, is_async: bool) -> Iterator[Graph]:
    indices = sizes.logits if speculates else sizes.requests
    for size, sampling, logprobs in product(sizes.requests, (True, False), (True, False)):
        yield Graph("worker0 sample", {"num_reqs": size, "do_sampling": sampling, "logprobs": logprobs})
    yield from (Graph("worker0 gather_logprobs", {"num_reqs": size}) for size in sizes.requests)
    for size in sizes.tokens:
        if size <= LONGEST_PROMPT_LOGPROBS:
            yield Graph("worker0 compute_and_gather_prompt_logprobs", {"num_tokens": size})
    yield from _backbones(sizes, arguments)
    if is_async:
        for size in sorted({*sizes.tokens, *sizes.requests}):
            for following in (size, *sizes.requests):
                yield Graph("_substitute_placeholder_token_fn", {"num_tokens": size, "next_tokens_size": following})
    for size, index in _selections(sizes.tokens, indices):
        yield Graph("select_from_array [worker0 select all logits]", {"array_size": size, "index_size": index})
    yield from (Graph("worker0 compute_logits", {"num_reqs": size}) for size in indices)
    if int(arguments.text("data-parallel-size", "1")) == 1:
        yield from (Graph("structured_decode", {"num_reqs": size}) for size in sizes.requests)
    if speculates:
        yield from _speculation(sizes)


def _backbones(sizes: Sizes, arguments: Arguments) -> Iterator[Graph]:
    shapes = [{"num_tokens": size, "num_reqs": count} for size in sizes.tokens for count in sizes.attention]
    yield from (Graph("worker0 backbone", shape) for shape in shapes)
    if _is_multimodal(arguments):
        for size in sizes.tokens:
            yield Graph("input_embeddings_merger", {"num_tokens": size})
            yield Graph("input_embeddings_merger_text_only", {"num_tokens": size})
        yield from (Graph("worker0 backbone with embeds", shape) for shape in shapes)


def _speculation(sizes: Sizes) -> Iterator[Graph]:
    """Yield what checking the proposed tokens takes: nearly every pair of the sizes of positions and requests."""
    for size, index in _selections(sizes.logits, sizes.requests):
        name = "select_from_array [worker0 select bonus tokens for spec decoding]"
        yield Graph(name, {"array_size": size, "index_size": index})
    for size in sizes.logits:
        name = "select_from_array [worker0 select target tokens for spec decoding]"
        yield Graph(name, {"array_size": size, "index_size": size})
    pairs = [{"num_logits": size, "num_reqs": count} for size in sizes.logits for count in sizes.requests]
    yield from (Graph("worker0 gather_logprobs_spec", pair) for pair in pairs if pair["num_reqs"] <= pair["num_logits"])
    for pair in pairs:
        yield Graph("worker0 random_rejection_sampler", {**pair, "do_sampling": True})
        yield Graph("worker0 greedy_rejection_sampler", {**pair, "do_sampling": False})
    yield from (Graph("worker0 extract_last_sampled_tokens", pair) for pair in pairs)
    for size, count in _selections(sizes.tokens, sizes.logits):
        yield Graph("worker0 extract_draft_token_ids", {"num_tokens": size, "num_logits": count})
    yield from (Graph("worker0 _process_and_extend_logits", pair) for pair in pairs)
    yield from (Graph("worker0 _extend_logits_simple", pair) for pair in pairs)
    for pair in pairs:
        yield Graph("worker0 select_bonus_logits", pair)
        yield Graph("worker0 select_target_logits", pair)


def _selections(arrays: Sequence[int], indices: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield an array's size and how many of it are selected: never more than there are."""
    for size in arrays:
        for index in indices:
            if index <= size:
                yield size, index


def _sizes(arguments: Arguments, environment: Mapping[str, str], proposed: int) -> Sizes:
    seqs = read_size(arguments.text("max-num-seqs", "256"))
    requests = _up_to(LEAST_REQUESTS, max(seqs, LEAST_REQUESTS))
    logits = [LEAST_REQUESTS]
    while logits[-1] < max(seqs, LEAST_REQUESTS) * (proposed + 1):
        logits.append(logits[-1] * 2)
    return Sizes(
        tokens=token_sizes(arguments, environment),
        requests=requests,
        attention=_attention(environment, requests, seqs),
        logits=logits,
    )


def _attention(environment: Mapping[str, str], requests: Sequence[int], seqs: int) -> Sequence[int]:
    if environment.get("ATTN_BUCKETIZED_NUM_REQS", "0").lower() not in ON:
        return [seqs]
    custom = [int(size) for size in environment.get("ATTN_CUSTOM_NUM_REQS_BUCKETS", "").split(",") if size.strip()]
    return sorted({*(custom or requests), seqs})


def token_sizes(arguments: Arguments, environment: Mapping[str, str]) -> Sequence[int]:
    """Return the sizes of a step: doubled up to the gap, then a gap apart, and none beyond the step's budget."""
    least = int(environment.get("MIN_TOKEN_BUCKET", "16"))
    gap = int(environment.get("VLLM_TPU_BUCKET_PADDING_GAP", "0"))
    default = max(BATCHED_TOKENS, ITEM_TOKENS) if _is_multimodal(arguments) else BATCHED_TOKENS
    budget = read_size(arguments.text("max-num-batched-tokens", str(default)))
    budget = -(-budget // least) * least
    sizes, size = [], least
    while size < budget:
        sizes.append(size)
        size += size if not gap or size * 2 <= gap else gap
    extra = json.loads(arguments.text("additional-config", "{}")).get("compilation_sizes", ())
    return sorted({*sizes, budget, *extra})


def _up_to(least: int, most: int) -> Sequence[int]:
    """Return `least`, doubled as often as it stays below `most`, and `most`."""
    sizes, size = [], least
    while size < most:
        sizes.append(size)
        size *= 2
    return [*sizes, most]


def _proposed_tokens(arguments: Arguments) -> int | None:
    """Return how many tokens the engine proposes at once, None where it does not speculate."""
    text = arguments.text("speculative-config")
    return int(json.loads(text).get("num_speculative_tokens", 0)) if text else None


def _is_multimodal(arguments: Arguments) -> bool:
    """Return whether the model takes more than text, and its arguments allow that."""
    if not any(word in arguments.public_name.lower() for word in MULTIMODAL) or arguments.has("language-model-only"):
        return False
    limits = json.loads(arguments.text("limit-mm-per-prompt", "{}")).values()
    return not limits or any(limit.get("count", 1) if isinstance(limit, dict) else limit for limit in limits)
