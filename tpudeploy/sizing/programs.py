"""The memory of compiled programs: no engine reserves it, so what utilization leaves must hold it.

Which program is the largest depends on libtpu, which the engine's release pins.

Up to libtpu 0.0.46.3 it is structured decoding. Measured on one v5e chip with Gemma 4 E2B and 256 requests: at
utilization 0.95, 845,466,829 B are left, and when `jit_structured_decode_fn` wants 384.11 MiB, 346.77 MiB are free: the
boot dies after 13 minutes. At 0.92 it boots. On one v6e chip less is loaded by then: at 0.98, 640 MiB are left and
about 380 free (tpu_inference's own CI). On four chips less still: 31B booted at 0.98 (tpu_inference issue 2333). On
torchax, tpu_inference pull request 3408 saw programs of 6 GiB and more.

From libtpu 0.0.47.1 on, structured decoding of the same 256 requests takes 128.22 MiB, and the backbone of the largest
token bucket is larger: 385,497,600 B for 4,096 tokens. Both are the compiler's own figures for Gemma 4 E2B on v6e
(libtpu 0.0.48, compiled without a chip); no boot with that libtpu was measured. Other vocabularies gained nothing: 256
requests of Llama's or Qwen's take 6 B a word with either libtpu.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from tpudeploy.catalog import engines, releases
from tpudeploy.domain.budget import EngineSettings
from tpudeploy.domain.model import Implementation, LanguageModel
from tpudeploy.sizing.graphs import logit_buckets, request_buckets, token_buckets
from tpudeploy.sizing.numbers import align

_MIB = 1024**2
# Left at 0.95 less what was free then: the programs loaded before structured decoding, 459.5 MiB.
_LOADED = int(0.05 * 16_909_336_576) - int(346.77 * _MIB)
# Left at 0.92, less structured decoding: with this much beside it a boot is known to succeed, 906 MiB.
_PROVEN = int(0.08 * 16_909_336_576) - 402_881_888
_TORCHAX = 6 * 1024 * _MIB
# By generation, what was loaded on one chip in a boot that died, with this many token buckets for text and for images.
_LOADED_ON = {"v5e": _LOADED, "v6e": int(0.02 * 33_550_237_696) - 380 * _MIB}
_BUCKETS_MEASURED = 9
# The first libtpu of which the backbone's figures are known.
_BACKBONE_KNOWN = (0, 0, 47)
_LEAST_DECODE = 512 * 1024  # of 8 and 16 requests, whatever the vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRoom:
    """In bytes on one chip. Programs are thought to take `needed`; with `proven` a boot is known to succeed."""

    needed: int
    proven: int

    def utilization(self, hbm_bytes: int) -> float:
        """Return the largest utilization of two decimals that leaves `proven`."""
        return int(100 * (1 - self.proven / hbm_bytes)) / 100


def program_room(model: LanguageModel, engine: EngineSettings) -> ProgramRoom:
    """Return `needed` = what is loaded by then + the largest program's arrays, which are replicated on every chip."""
    vocabulary = align(model.vocabulary, engine.tensor_parallel)
    decode, speculation = structured_decode_bytes(engine, model.vocabulary), speculation_bytes(engine, vocabulary)
    largest = max(decode, speculation, backbone_bytes(model, engine))
    if model.implementation is Implementation.TORCHAX:
        return ProgramRoom(needed=_TORCHAX, proven=_TORCHAX)
    if engine.speculation is not None:
        return ProgramRoom(needed=_LOADED + largest, proven=_LOADED + largest)
    return room_beside(largest)


def room_beside(largest: int) -> ProgramRoom:
    """Return the room of tpu_inference's own models, where the largest program's arrays take `largest` bytes."""
    return ProgramRoom(needed=_LOADED + largest, proven=_PROVEN + largest)


def certain_bytes(model: LanguageModel, engine: EngineSettings, generation: str) -> int:
    """Return the least with which a boot can succeed: the arrays, and what is loaded by then if that was measured."""
    if not engine.is_precompiled:
        return 0
    arrays = structured_decode_bytes(engine, model.vocabulary)
    as_measured = (
        not knows_backbone(engine)
        and model.implementation is Implementation.JAX
        and engine.is_multimodal
        and engine.tensor_parallel == 1
        and len(token_buckets(engine, engine.release)) >= _BUCKETS_MEASURED
    )
    return arrays + (_LOADED_ON.get(generation, 0) if as_measured else 0)


def knows_backbone(engine: EngineSettings) -> bool:
    """Return whether the engine's libtpu is one of those in which the backbone is the largest program."""
    return engines.numbers(engines.release(engine.release).libtpu) >= _BACKBONE_KNOWN


def structured_decode_bytes(engine: EngineSettings, vocabulary: int) -> int:
    """Return the temporaries of structured decoding in its largest bucket, by the compiler's own figures.

    `tpudeploy learn -programs` reads them for the vocabularies of known models. No formula has them: with libtpu 0.0.48
    256 requests take 6 B a word of 151,936, 4 B of 151,669 and 2 B of 262,144. Another vocabulary takes, for each word,
    the most of any of these.
    """
    return _decode_bytes(engines.release(engine.release).libtpu, vocabulary, engine.max_num_seqs)


@lru_cache(maxsize=256)
def _decode_bytes(libtpu: str, vocabulary: int, requests: int) -> int:
    tables = releases.programs(libtpu)["structured_decode"]
    rows = tables.get(str(vocabulary)) or _for_each_word(tables, vocabulary)
    return max(_of_bucket(rows, bucket) for bucket in request_buckets(requests))


def _for_each_word(tables: Mapping[str, Mapping[str, int]], vocabulary: int) -> Mapping[str, int]:
    most: dict[str, float] = {}
    for words, rows in tables.items():
        for requests, size in rows.items():
            most[requests] = max(most.get(requests, 0.0), size / int(words))
    return {requests: ceil(size * vocabulary) for requests, size in most.items()}


def _of_bucket(rows: Mapping[str, int], requests: int) -> int:
    """Return the bytes of the next larger bucket that was compiled; beyond the largest, in proportion."""
    sizes = {int(bucket): size for bucket, size in rows.items()}
    least, largest = min(sizes), max(sizes)
    if requests < least:
        return _LEAST_DECODE
    if requests > largest:
        return sizes[largest] * requests // largest
    return sizes[min(bucket for bucket in sizes if bucket >= requests)]


def backbone_bytes(model: LanguageModel, engine: EngineSettings) -> int:
    """Return the temporaries of the backbone of the largest token bucket; 0 where others are larger.

    tokens x (3 x the widest feed-forward's share + hidden + per-layer inputs) x 2 B. Gemma 4 E2B with 4,096 tokens:
    387,973,120 B, of which libtpu 0.0.48 says 385,497,600 on v6e; with 2,048 on v5e it says 15 % more than this.
    """
    if not knows_backbone(engine) or not engine.is_precompiled:
        return 0
    widths = [part.width for part in model.feed_forward]
    if model.experts is not None:
        widths.append(model.experts.width * model.experts.per_token)
    element = 3 * max(widths, default=0) // engine.tensor_parallel + model.hidden + model.per_layer_width * model.layers
    return 2 * token_buckets(engine, engine.release)[-1] * element


def speculation_bytes(engine: EngineSettings, vocabulary: int) -> int:
    """Return (positions + max_num_seqs) x vocabulary x 4 B, in and out (compilation_manager.py).

    Not measured. 256 requests, 3 tokens: (1,024 + 256) x 262,144 x 4 B x 2 = 2.5 GiB.
    """
    if engine.speculation is None:
        return 0
    return 2 * (logit_buckets(engine)[-1] + engine.max_num_seqs) * vocabulary * 4
