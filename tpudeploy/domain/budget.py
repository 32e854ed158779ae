"""EngineSettings and HbmBudget: the settings that decide what a chip holds, and what it then holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.compilation import CompilePlan, PredictedStart
from tpudeploy.domain.model import LanguageModel

UTILIZATION = 0.92  # vLLM's default share of HBM (v1, config/cache.py)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """`tokens` are proposed each step."""

    method: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """The settings that the sizing depends on, with every default decided as vLLM decides it.

    `tensor_parallel` x `pipeline_parallel` x `data_parallel` devices are used; each data-parallel rank is an engine of
    its own, and each pipeline stage has some of the layers.
    `utilization` is a share of HBM. `block_size` None: the platform derives it. `is_multimodal`: the model is, and not
    every modality is limited to zero. `kv_dtype` and `dtype` are vLLM's names. `release` is the engine's, ""
    where it is not known.
    """

    tensor_parallel: int
    max_model_len: int
    data_parallel: int = 1
    pipeline_parallel: int = 1
    dtype: str = "bfloat16"
    kv_dtype: str = "auto"
    utilization: float = UTILIZATION
    block_size: int | None = None
    blocks_override: int | None = None
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 2048
    padding_gap: int = 0
    extra_token_buckets: tuple[int, ...] = ()
    min_token_bucket: int = 16
    attention_buckets: tuple[int, ...] | None = None
    speculation: Speculation | None = None
    is_multimodal: bool = False
    is_async: bool = True
    is_expert_parallel: bool = False
    is_vision_replicated: bool = False
    is_precompiled: bool = True
    release: str = ""
    has_prefix_caching: bool = True

    @property
    def cache_dtype(self) -> str:
        """The KV cache's type: `auto` is the model's own."""
        return self.dtype if self.kv_dtype == "auto" else self.kv_dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastWeights:
    """The bytes that all weights of a model together have at least, and the words of how that is known."""

    size: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsized:
    """The reason why there is no budget: the clause after "cannot size this, because". It is never an error by itself.

    `is_impossible`: not for want of knowledge, but because no engine would start like this.
    `settings` are the flags and variables that the reason is about, none where it is about the model.
    The rest is certain all the same: `model` and `engine`, each None where it is not known; `has_layout`, whether the
    KV cache has the shape that these two imply; and `at_least`, the budget without what only adds to the memory: the
    weights take at least as much, and the KV cache holds at most as many tokens.
    `lacks_limit_alone`: nothing but the HBM limit of the runtime is not known, so that `model` and `engine` are certain
    and `at_least` is the budget of the nominal HBM.
    `least` is what the weights weigh at least, on all chips together, and `most` what these chips can hold of them;
    neither is known of every model.
    `is_refused`: the engine refuses the model, in the words of `because`.
    `fatal`: the codes of checks by which the server would not start.
    """

    because: str
    is_impossible: bool = False
    settings: tuple[str, ...] = ()
    model: LanguageModel | None = None
    engine: EngineSettings | None = None
    has_layout: bool = False
    at_least: HbmBudget | None = None
    lacks_limit_alone: bool = False
    least: LeastWeights | None = None
    most: int = 0
    is_refused: bool = False
    fatal: tuple[str, ...] = ()

    @property
    def fits(self) -> bool | None:
        """Whether it boots: False where it certainly does not, None where that is not known."""
        is_too_large = (self.at_least is not None and self.at_least.fits is False) or self.exceeds_chips
        return False if self.is_impossible or self.is_refused or self.fatal or is_too_large else None

    @property
    def exceeds_chips(self) -> bool:
        """Whether the least that the weights weigh is more than the chips hold."""
        return self.least is not None and 0 < self.most < self.least.size

    def to_dict(self) -> dict[str, object]:
        """What `tpudeploy size --json` prints where there is no budget; `fits` is null where it is not known."""
        return {
            "cannot_size_because": self.because,
            "at_least": None if self.at_least is None else self.at_least.to_dict(),
            "weights_bytes_at_least": None if self.least is None else self.least.size,
            "fits": self.fits,
            "would_not_start": list(self.fatal),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HbmBudget:
    """The memory of one chip, in bytes, and the load that it can serve. Where a chip has devices, of one of them.

    weights + kv + program + free = hbm. `program` is what compiled programs are known to need; `free` is negative
    where the engine would run out of memory while it compiles. With pipeline stages it is a chip of the stage with the
    fewest blocks, which limits the others. `num_blocks` is of one data-parallel rank,
    `kv_cache_tokens` and `max_concurrency` (requests of `max_model_len` at once) of the whole deployment.
    `fatal`: the codes of checks by which the server would not start, whatever the reason.
    """

    model: LanguageModel
    accelerator: AcceleratorType
    engine: EngineSettings
    hbm_bytes_per_chip: int
    weights: Mapping[str, int]
    bytes_per_block: int
    blocks_per_request: int
    block_size: int
    num_blocks: int
    kv_cache_tokens: int
    program_bytes_per_chip: int
    compilation: CompilePlan
    start: PredictedStart
    estimates: tuple[str, ...]
    fatal: tuple[str, ...] = ()
    state_bytes_per_chip: int = 0

    @property
    def weights_bytes_per_chip(self) -> int:
        return sum(self.weights.values())

    @property
    def kv_bytes_per_chip(self) -> int:
        return self.num_blocks * self.bytes_per_block + self.state_bytes_per_chip

    @property
    def kv_bytes_per_token_per_chip(self) -> int:
        """The blocks of a request of full length: layers with a window keep fewer than all of its tokens."""
        tokens = -(-self.engine.max_model_len // self.block_size) * self.block_size
        return self.bytes_per_block * self.blocks_per_request // tokens

    @property
    def free_bytes_per_chip(self) -> int:
        used_bytes = self.weights_bytes_per_chip + self.kv_bytes_per_chip + self.program_bytes_per_chip
        return self.hbm_bytes_per_chip - used_bytes

    @property
    def max_concurrency(self) -> float:
        if not self.blocks_per_request:
            return float(self.engine.max_num_seqs * self.engine.data_parallel)
        return self.num_blocks / self.blocks_per_request * self.engine.data_parallel

    @property
    def holds_a_request(self) -> bool:
        """Whether the weights and one request of `max_model_len` fit; room for programs is not part of it.

        The null block is set aside before vLLM checks (v1/core/kv_cache_utils.py, get_kv_cache_configs). An encoder
        caches nothing, so its weights decide.
        """
        if not self.blocks_per_request:
            return self.weights_bytes_per_chip < self.hbm_bytes_per_chip * self.engine.utilization
        return self.num_blocks >= self.blocks_per_request + 1

    @property
    def fits(self) -> bool | None:
        """The verdict of every command: whether the server starts with this memory.

        False where it certainly does not: one request does not fit, or a check says so. None where compiled programs
        are estimated to need more than is left, with which boots have failed and succeeded.
        """
        if not self.holds_a_request or self.fatal:
            return False
        return None if self.free_bytes_per_chip < 0 else True

    def to_dict(self) -> dict[str, object]:
        """What `tpudeploy size --json` prints, but for its diagnostics."""
        engine = self.engine
        return {
            "model": self.model.name,
            "accelerator_type": self.accelerator.name,
            "tensor_parallel_size": engine.tensor_parallel,
            "data_parallel_size": engine.data_parallel,
            "pipeline_parallel_size": engine.pipeline_parallel,
            "max_model_len": engine.max_model_len,
            "hbm_bytes_per_chip": self.hbm_bytes_per_chip,
            "weights_bytes_per_chip": self.weights_bytes_per_chip,
            "weights": dict(self.weights),
            "kv_bytes_per_chip": self.kv_bytes_per_chip,
            "kv_bytes_per_token_per_chip": self.kv_bytes_per_token_per_chip,
            "program_bytes_per_chip": self.program_bytes_per_chip,
            "free_bytes_per_chip": self.free_bytes_per_chip,
            "block_size": self.block_size,
            "num_blocks": self.num_blocks,
            "kv_cache_tokens": self.kv_cache_tokens,
            "max_concurrency": self.max_concurrency,
            "fits": self.fits,
            "would_not_start": list(self.fatal),
            "precision": {
                "weights": self.model.linear_dtype or engine.dtype,
                "kv": engine.cache_dtype,
                "compute": engine.dtype,
            },
            "token_buckets": list(self.compilation.token_buckets),
            "request_buckets": list(self.compilation.request_buckets),
            "graphs": {"total": self.compilation.total, "by_category": dict(self.compilation.graphs)},
            "cold_start_seconds": round(self.start.cold_seconds),
            "warm_start_seconds": round(self.start.warm_seconds),
            "start_basis": self.start.basis,
            "estimates": list(self.estimates),
        }
