"""What else would serve this model: slices, splits, KV types, utilizations, lengths; the best, and why others fail.

An option is among the best if no other is at least as good in tokens, length, price and start, and better in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product

from tpudeploy import catalog
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.budget import Engine, HbmBudget, Unsized
from tpudeploy.domain.frozen import frozen
from tpudeploy.sizing.advice import starts
from tpudeploy.sizing.budget import budget

_KV_DTYPES = ("auto", "fp8")
_UTILIZATIONS = (0.80, 0.90, 0.92, 0.95)
_LENGTHS = (8_192, 16_384, 32_768, 65_536, 131_072)


@frozen
class Option:
    """One that serves. `usd_per_hour` is the list price of the whole slice, None where none is known."""

    budget: HbmBudget
    usd_per_hour: float | None

    def to_dict(self) -> dict[str, object]:
        of, engine = self.budget, self.budget.engine
        return {
            "accelerator_type": of.accelerator.name,
            "tensor_parallel_size": engine.tensor_parallel,
            "data_parallel_size": engine.data_parallel,
            "kv_cache_dtype": engine.kv_dtype,
            "hbm_utilization": engine.utilization,
            "max_model_len": engine.max_model_len,
            "kv_cache_tokens": of.kv_cache_tokens,
            "max_concurrency": of.max_concurrency,
            "usd_per_hour": self.usd_per_hour,
            "cold_start_seconds": round(of.start.cold_seconds),
        }


@frozen
class Failure:
    """`settings` names what was tried, as far as the reason hangs on it; `because` says why it does not serve."""

    accelerator_type: str
    settings: str
    because: str


@frozen
class Sweep:
    best: tuple[Option, ...]
    failures: tuple[Failure, ...]
    tried: int


def sweep(of: HbmBudget, *, usd_per_chip_hour: float | None) -> Sweep:
    """Every slice of one host of the same generation, every split of it, and the tables above."""
    options: list[Option] = []
    failed: dict[tuple[str, str, str], dict[str, None]] = {}
    tried = 0
    for kind, engine in _settings(of):
        tried += 1
        found = budget(of.model, kind, engine)
        because = fault(found)
        if isinstance(found, HbmBudget) and not because:
            price = None if usd_per_chip_hour is None else round(usd_per_chip_hour * kind.chips, 4)
            options.append(Option(budget=found, usd_per_hour=price))
        else:
            what, value = _told(engine, because)
            failed.setdefault((kind.name, what, because), {})[value] = None
    return Sweep(best=tuple(_best(options)), failures=tuple(_failures(failed)), tried=tried)


def _failures(failed: Mapping[tuple[str, str, str], Iterable[str]]) -> Iterator[Failure]:
    for (kind, what, because), values in failed.items():
        yield Failure(accelerator_type=kind, settings=f"{what} {', '.join(values)}".strip(), because=because)


def _settings(of: HbmBudget) -> Iterator[tuple[AcceleratorType, Engine]]:
    lengths = sorted({of.engine.max_model_len, *(n for n in _LENGTHS if n <= of.model.max_position)})
    utilizations = sorted({of.engine.utilization, *_UTILIZATIONS})
    for kind in catalog.generation(of.accelerator.generation).types:
        if kind.hosts == 1:
            splits = [(n, kind.chips // n) for n in range(1, kind.chips + 1) if kind.chips % n == 0]
            for (tensor, data), dtype, share, length in product(splits, _KV_DTYPES, utilizations, lengths):
                yield (
                    kind,
                    replace(
                        of.engine,
                        tensor_parallel=tensor,
                        data_parallel=data,
                        kv_dtype=dtype,
                        utilization=share,
                        max_model_len=length,
                    ),
                )


_WEIGHTS, _LENGTH, _PROGRAMS = "the weights do not fit", "one request does not fit", "no proven room for programs"


def fault(found: HbmBudget | Unsized) -> str:
    if isinstance(found, Unsized):
        return found.because
    if found.num_blocks == 0:
        return _WEIGHTS
    if not found.holds_a_request:
        return _LENGTH
    return "" if starts(found) else _PROGRAMS


def _told(engine: Engine, because: str) -> tuple[str, str]:
    """As much of the settings as the reason hangs on, and the value of which there may be several."""
    split = f"TP {engine.tensor_parallel} x DP {engine.data_parallel}"
    if because == _PROGRAMS:
        return "utilization", f"{engine.utilization:g}"
    if because == _LENGTH:
        return f"{split}, max_model_len", str(engine.max_model_len)
    return (f"{split}, utilization", f"{engine.utilization:g}") if because == _WEIGHTS else (split, "")


def _best(options: Iterable[Option]) -> Iterator[Option]:
    """Best first in tokens, so that one better in all is met before what it beats; of equals, the first tried."""
    kept: list[tuple[float, ...]] = []
    for option in sorted(options, key=_merits, reverse=True):
        merits = _merits(option)
        if not any(all(a >= b for a, b in zip(other, merits, strict=True)) for other in kept):
            kept.append(merits)
            yield option


def _merits(option: Option) -> tuple[float, ...]:
    """Larger is better: tokens, length, fewer chips (which is the price), a quicker start."""
    of = option.budget
    return (of.kv_cache_tokens, of.engine.max_model_len, -of.accelerator.chips, -round(of.start.cold_seconds))
