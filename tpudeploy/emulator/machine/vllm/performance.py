"""How long a step of the stand-in takes: a small roofline model of a tensor-parallel rank, fitted to published tables.

A step has two parts that overlap partly. Its latency is there however few requests run: the host, the collectives, one
read of the weights. Its work grows with requests and tokens: arithmetic, reads of the KV cache, sampling. The step
takes sqrt(latency^2 + work^2).

UNVERIFIED on a chip. The constants are fitted to the published grids that tests/bench/stand_in_speed.py prints beside
the stand-in's figures; their authors do not say how long the answers were, and 32 tokens are assumed. What a flag
changes has the direction and the rough size that the engine's source suggests, not a measured one. Nothing here is the
product's arithmetic, so that the two can disagree.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, hypot, log2, sin, tau
from random import Random
from typing import Any

from tpudeploy import catalog
from tpudeploy.catalog import families
from tpudeploy.domain.model import NotCovered
from tpudeploy.emulator.machine.vllm.arguments import Arguments, read_size
from tpudeploy.emulator.machine.vllm.graphs import BATCHED_TOKENS, token_sizes

_MILLI, _BILLION, _TERA = 1e-3, 1e9, 1e12
API_SECONDS = 0.040  # of each request outside of the engine: HTTP, the tokenizer, the detokenizer
_HOST = 1.3 * _MILLI  # of each step
_PADDED_SEQUENCE = 0.004 * _MILLI  # of each step, for each of `max_num_seqs`: attention is padded to it
_DOUBLING = 1.5 * _MILLI  # of each step, each time that the number of requests doubles
_COLLECTIVE = 0.2 * _MILLI  # more of it, each time that the number of chips doubles
_SEQUENCE, _SEQUENCE_BY_SIZE = 0.39 * _MILLI, 0.0072 * _MILLI  # of one request in a step on one chip
_SPEEDUP = 0.9  # chips to this power
_MFU = 0.5  # of the peak arithmetic that a prefill reaches
_EAGER = 5.0  # times the latency, without compiled graphs
_CHECKED = 0.35  # of a token's work, for each token that speculation proposes
_PROPOSAL = 0.02  # of the latency, likewise
_HASHING = 0.01  # of the work of a prefill, where prefixes are cached
_FP8 = 0.02  # of the work, to convert a cache of eight bits
_ACTIVATION_BYTES = 400e3  # of each token of a step
_RESERVED = 1.5e9  # bytes of a chip
_HBM = 0.976  # of a chip's memory is left by the runtime
_PERIOD = 6 * 3600.0  # seconds of the drift's wave
# Blocks of fewer tokens are read in more pieces.
_READS = ((8, 1.6), (16, 1.3), (32, 1.1), (64, 1.0), (128, 1.0), (256, 1.04))
# Billions of parameters that a token is multiplied with, and all; other models have theirs in their names.
_SIZES: Mapping[str, tuple[float, float]] = {"-e2b": (2.3, 5.1), "-e4b": (4.5, 8.0)}
_ACTIVE, _ALL = re.compile(r"-a(\d+(?:\.\d+)?)b"), re.compile(r"(\d+(?:\.\d+)?)b(?![a-z])")
_USUAL_SIZE, _USUAL_KV = 8.0, 131_072.0  # of a model whose name or family does not tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Performance:
    """One rank of a server, of which there are `ranks` alike. Sizes are in billions of parameters, memory in bytes.

    `active` parameters are those of one token, `most_read` those of a step of many: more where they share few experts.
    `kv_tokens` is what its cache holds, `token_sizes` are those that a step is padded to, `proposed` the tokens that it
    speculates with and `acceptance` the chance that the next one is right. `noise` is the deviation of a measurement's
    logarithm, `drift` the largest share by which the machine is faster or slower than usual, in a wave of six hours.
    """

    chips: float
    ranks: int
    active: float
    most_read: float
    flops: float
    bandwidth: float
    kv_bytes: float
    kv_tokens: int
    block_size: int
    max_num_seqs: int
    batched_tokens: int
    token_sizes: Sequence[int]
    proposed: int = 0
    acceptance: float = 0.25
    is_eager: bool = False
    caches_prefixes: bool = True
    has_small_cache: bool = False
    noise: float = 0.0
    drift: float = 0.0

    def step_seconds(self, prefill_tokens: int, sequences: int, context_tokens: int) -> float:
        """Return how long a step lasts that computes these tokens of prompts, and the next token of each sequence."""
        tokens = prefill_tokens + sequences
        read = min(self.most_read, self.active * max(1, tokens)) * 2 * _BILLION / (self.bandwidth * self.chips)
        doubling = _DOUBLING + _COLLECTIVE * log2(max(1.0, self.chips))
        latency = _HOST + _PADDED_SEQUENCE * self.max_num_seqs + read + doubling * log2(1 + sequences)
        latency *= (_EAGER if self.is_eager else 1.0) * (1 + _PROPOSAL * self.proposed)
        work = self._sequence_seconds * sequences + self._prefill_seconds(prefill_tokens, sequences)
        work += context_tokens * self.kv_bytes * self._read_factor / (self.bandwidth * self.chips)
        return hypot(latency, work * (1 + _FP8 * self.has_small_cache))

    def at_once(self, tokens: int) -> int:
        """Return how many requests of this length run together; none where the cache is smaller than one."""
        blocks = -(-tokens // self.block_size)
        return min(self.max_num_seqs, self.kv_tokens // (blocks * self.block_size))

    @property
    def tokens_per_step(self) -> float:
        """How many tokens a request gets in a step: one, and those proposed in a row that are right."""
        return 1.0 + sum(pow(self.acceptance, place) for place in range(1, self.proposed + 1))

    def factor(self, moment: float, *key: object) -> float:
        """Return how many times as long as usual a measurement's steps take: its luck, and the machine's drift."""
        luck = Random(repr(key)).gauss(0.0, self.noise) if self.noise else 0.0  # noqa: S311 - noise, not a secret
        return exp(luck) * (1.0 + self.drift * sin(tau * moment / _PERIOD))

    def _prefill_seconds(self, tokens: int, sequences: int) -> float:
        if not tokens:
            return 0.0
        # What a step computes is padded as a whole; the requests that decode have their own part of it.
        padded = self._padded(tokens + sequences) - sequences
        per_token = 2 * self.active * _BILLION / (self.flops * self.chips * _MFU)
        return padded * per_token * (1 + _HASHING * self.caches_prefixes)

    def _padded(self, tokens: int) -> int:
        place = bisect_left(self.token_sizes, tokens)
        return self.token_sizes[place] if place < len(self.token_sizes) else tokens

    @property
    def _sequence_seconds(self) -> float:
        one = _SEQUENCE + _SEQUENCE_BY_SIZE * self.active * self.active
        return one / float(self.chips**_SPEEDUP) * (1 + _CHECKED * self.proposed)

    @property
    def _read_factor(self) -> float:
        return next((factor for size, factor in _READS if self.block_size <= size), _READS[-1][1])


def performance_of(
    arguments: Arguments, task: Mapping[str, Any], *, block_size: int, blocks: int | None
) -> Performance | None:
    """Return the pace of a server; None where its scenario asks for none, or nothing is known of its chips.

    `blocks` is the size of its cache where a boot or a scenario tells it; else it follows from the memory.
    """
    kind = catalog.accelerator_type(task["accelerator_type"])
    if not task.get("paced") or kind is None:
        return None
    generation = catalog.generation(kind.generation)
    tensor = int(arguments.text("tensor-parallel-size", "1"))
    ranks = int(arguments.text("data-parallel-size", "1"))
    chips = tensor * int(arguments.text("pipeline-parallel-size", "1")) / kind.devices_per_chip
    active, total = _sizes(arguments.public_name.lower())
    is_small = arguments.text("kv-cache-dtype", "auto").startswith("fp8")
    kv_bytes = _kv_bytes(arguments.public_name) / (2 if is_small else 1)
    seqs = read_size(arguments.text("max-num-seqs", "256"))
    batched = read_size(arguments.text("max-num-batched-tokens", str(BATCHED_TOKENS)))
    share = float(arguments.text("gpu-memory-utilization", "0.92"))
    memory = generation.hbm_gib * 2**30 * kind.devices_per_chip * _HBM * share * chips
    room = memory - total * 2 * _BILLION - batched * _ACTIVATION_BYTES - _RESERVED * chips
    tokens = int(max(0.0, room) / kv_bytes) if blocks is None else blocks * block_size // ranks
    proposal = arguments.text("speculative-config")
    return Performance(
        chips=chips,
        ranks=ranks,
        active=active,
        most_read=total if _ACTIVE.search(arguments.public_name.lower()) else active,
        flops=generation.peak_bf16_tflops * _TERA,
        bandwidth=generation.hbm_gbytes_per_second * _BILLION,
        kv_bytes=kv_bytes,
        kv_tokens=tokens,
        block_size=block_size,
        max_num_seqs=seqs,
        batched_tokens=batched,
        token_sizes=token_sizes(arguments, task["environment"]),
        proposed=int(json.loads(proposal).get("num_speculative_tokens", 0)) if proposal else 0,
        acceptance=float(task.get("acceptance", 0.25)),
        is_eager=arguments.has("enforce-eager"),
        caches_prefixes=arguments.flags.get("enable-prefix-caching") != ("no",),
        has_small_cache=is_small,
        noise=float(task.get("noise", 0.0)),
        drift=float(task.get("drift", 0.0)),
    )


def _sizes(name: str) -> tuple[float, float]:
    """Return the billions of parameters by a model's name: those of one token, and all."""
    for mark, sizes in _SIZES.items():
        if mark in name:
            return sizes
    whole, part = _ALL.search(_ACTIVE.sub("", name)), _ACTIVE.search(name)
    total = float(whole[1]) if whole else _USUAL_SIZE
    return (float(part[1]) if part else total), total


def _kv_bytes(name: str) -> float:
    """Return the bytes that one token takes in a cache of bfloat16."""
    try:
        model = families.find_model(name)
    except NotCovered:
        model = None
    if model is None:
        return _USUAL_KV
    return float(sum(2 * k.projections * k.cached * k.kv_heads * k.head_dim for k in model.attention)) or _USUAL_KV
