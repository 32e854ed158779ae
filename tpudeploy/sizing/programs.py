"""The memory of compiled programs: no engine reserves it, so what utilization leaves must hold it.

Measured on one v5e chip with Gemma 4 E2B and 256 requests: at utilization 0.95, 845,466,829 B are left, and when
`jit_structured_decode_fn` wants 384.11 MiB, 346.77 MiB are free: the boot dies after 13 minutes. At 0.92 it boots.
On one v6e chip less is loaded by then: at 0.98, 640 MiB are left and about 380 free (tpu_inference's own CI). On four
chips less still: 31B booted at 0.98 (tpu_inference issue 2333). On torchax, tpu_inference pull request 3408 saw
programs of 6 GiB and more.
"""

from __future__ import annotations

from tpudeploy.domain.budget import EngineSettings
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.model import Implementation, LanguageModel
from tpudeploy.sizing.graphs import logit_buckets, token_buckets
from tpudeploy.sizing.numbers import align

_MIB = 1024**2
# Left at 0.95 less what was free then: the programs loaded before structured decoding, 459.5 MiB.
_LOADED = int(0.05 * 16_909_336_576) - int(346.77 * _MIB)
# Left at 0.92, less structured decoding: with this much beside it a boot is known to succeed, 906 MiB.
_PROVEN = int(0.08 * 16_909_336_576) - 6 * 256 * 262_144
_TORCHAX = 6 * 1024 * _MIB
# By generation, what was loaded on one chip in a boot that died, with this many token buckets for text and for images.
_LOADED_ON = {"v5e": _LOADED, "v6e": int(0.02 * 33_550_237_696) - 380 * _MIB}
_BUCKETS_MEASURED = 9


@frozen
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
    largest = max(structured_decode_bytes(engine, vocabulary), speculation_bytes(engine, vocabulary))
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
    arrays = structured_decode_bytes(engine, align(model.vocabulary, engine.tensor_parallel))
    as_measured = (
        model.implementation is Implementation.JAX
        and engine.is_multimodal
        and engine.tensor_parallel == 1
        and len(token_buckets(engine)) >= _BUCKETS_MEASURED
    )
    return arrays + (_LOADED_ON.get(generation, 0) if as_measured else 0)


def structured_decode_bytes(engine: EngineSettings, vocabulary: int) -> int:
    """Return max_num_seqs x vocabulary x 6 B: logits in bfloat16 and float32.

    256 x 262,144 x 6 B = 384.0 MiB, as logged.
    """
    return engine.max_num_seqs * vocabulary * 6


def speculation_bytes(engine: EngineSettings, vocabulary: int) -> int:
    """Return (positions + max_num_seqs) x vocabulary x 4 B, in and out (compilation_manager.py:1199-1264).

    Not measured. 256 requests, 3 tokens: (1,024 + 256) x 262,144 x 4 B x 2 = 2.5 GiB.
    """
    if engine.speculation is None:
        return 0
    return 2 * (logit_buckets(engine)[-1] + engine.max_num_seqs) * vocabulary * 4
