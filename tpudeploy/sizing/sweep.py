"""The other settings that would serve this model: the best of them, and why others fail.

An option is among the best if no other is at least as good in tokens, length, price and start, and better in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from tpudeploy import catalog
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.budget import EngineSettings, HbmBudget, Unsized
from tpudeploy.sizing.budget import compute_budget
from tpudeploy.sizing.search import starts

_KV_DTYPES = ("auto", "fp8")
_UTILIZATIONS = (0.80, 0.90, 0.92, 0.95)
_LENGTHS = (8_192, 16_384, 32_768, 65_536, 131_072)
_WEIGHTS, _LENGTH, _PROGRAMS = "the weights do not fit", "one request does not fit", "no proven room for programs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One that serves. `usd_per_hour` is the list price of the whole slice, None where none is known."""

    budget: HbmBudget
    usd_per_hour: float | None

    def to_dict(self) -> dict[str, object]:
        budget, engine = self.budget, self.budget.engine
        return {
            "accelerator_type": budget.accelerator.name,
            "tensor_parallel_size": engine.tensor_parallel,
            "data_parallel_size": engine.data_parallel,
            "kv_cache_dtype": engine.kv_dtype,
            "hbm_utilization": engine.utilization,
            "max_model_len": engine.max_model_len,
            "kv_cache_tokens": budget.kv_cache_tokens,
            "max_concurrency": budget.max_concurrency,
            "usd_per_hour": self.usd_per_hour,
            "cold_start_seconds": round(budget.start.cold_seconds),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """`settings` names what was tried, as far as the reason depends on it; `because` says why it does not serve."""

    accelerator_type: str
    settings: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeSweep:
    best: tuple[Option, ...]
    failures: tuple[Failure, ...]
    tried: int


def sweep(budget: HbmBudget, *, usd_per_chip_hour: float | None) -> SizeSweep:
    """Try every slice of one host of the same generation, every split of it, and the tables above."""
    options: list[Option] = []
    values_by_failure: dict[tuple[str, str, str], dict[str, None]] = {}
    tried = 0
    for kind, engine in _settings(budget):
        tried += 1
        other = compute_budget(budget.model, kind, engine)
        because = fault(other)
        if isinstance(other, HbmBudget) and not because:
            price = None if usd_per_chip_hour is None else round(usd_per_chip_hour * kind.chips, 4)
            options.append(Option(budget=other, usd_per_hour=price))
        else:
            settings, value = _decisive(engine, because)
            values_by_failure.setdefault((kind.name, settings, because), {})[value] = None
    failures = (
        Failure(accelerator_type=kind_name, settings=f"{settings} {', '.join(values)}".strip(), because=because)
        for (kind_name, settings, because), values in values_by_failure.items()
    )
    return SizeSweep(best=tuple(_best(options)), failures=tuple(failures), tried=tried)


def _settings(budget: HbmBudget) -> Iterator[tuple[AcceleratorType, EngineSettings]]:
    lengths = sorted({budget.engine.max_model_len, *(n for n in _LENGTHS if n <= budget.model.max_position)})
    utilizations = sorted({budget.engine.utilization, *_UTILIZATIONS})
    for kind in catalog.generation(budget.accelerator.generation).types:
        splits = [n for n in range(1, kind.devices + 1) if kind.devices % n == 0] if kind.hosts == 1 else []
        for tensor, dtype, share, length in product(splits, _KV_DTYPES, utilizations, lengths):
            split = replace(
                budget.engine, tensor_parallel=tensor, data_parallel=kind.devices // tensor, pipeline_parallel=1
            )
            yield kind, replace(split, kv_dtype=dtype, utilization=share, max_model_len=length)


def fault(budget: HbmBudget | Unsized) -> str:
    """Return why this does not serve, or ""."""
    if isinstance(budget, Unsized):
        return budget.because
    if budget.num_blocks == 0:
        return _WEIGHTS
    if not budget.holds_a_request:
        return _LENGTH
    return "" if starts(budget) else _PROGRAMS


def _decisive(engine: EngineSettings, because: str) -> tuple[str, str]:
    """Return the settings that the reason depends on, and the value of the one of which there may be several."""
    split, share = f"TP {engine.tensor_parallel} x DP {engine.data_parallel}", f"{engine.utilization:g}"
    decisive = {
        _PROGRAMS: ("utilization", share),
        _LENGTH: (f"{split}, max_model_len", str(engine.max_model_len)),
        _WEIGHTS: (f"{split}, utilization", share),
    }
    return decisive.get(because, (split, ""))


def _best(options: Iterable[Option]) -> Iterator[Option]:
    """Yield the best first in tokens, so that one better in all is met before what it beats; of equals, the first."""
    better: list[tuple[float, ...]] = []
    for option in sorted(options, key=_merits, reverse=True):
        merits = _merits(option)
        if not any(all(a >= b for a, b in zip(other, merits, strict=True)) for other in better):
            better.append(merits)
            yield option


def _merits(option: Option) -> tuple[float, ...]:
    """Return what is better if larger: tokens, length, fewer chips (which is the price), a quicker start."""
    budget = option.budget
    seconds = round(budget.start.cold_seconds)
    return (budget.kv_cache_tokens, budget.engine.max_model_len, -budget.accelerator.chips, -seconds)
