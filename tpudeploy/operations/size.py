"""Show the HBM plan: what fits, how many tokens, how long to compile; --sweep shows which other slices would do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Annotated, Any

from tpudeploy import loading
from tpudeploy.catalog.engines import numbers
from tpudeploy.catalog.support import ModelSupport, deployment_support
from tpudeploy.domain.boots import BootRecord
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.engine import Engine
from tpudeploy.domain.errors import CheckFailed
from tpudeploy.domain.excerpt import describe_diagnostics
from tpudeploy.domain.pins import Pins
from tpudeploy.domain.task import TaskOrigin
from tpudeploy.loading import OneProfile
from tpudeploy.operations.arguments import AProfile, Arg
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.results import Result, document, part, result
from tpudeploy.sizing.sweep import SizeSweep, sweep
from tpudeploy.text.paint import Paint
from tpudeploy.views import size as view
from tpudeploy.workspace import Workspace


@result
class Size(Result):
    """What a profile's chips would hold. `warnings` are those of the profile, which are `diagnostics` too."""

    FORMAT = "size"
    name: str
    task: TaskOrigin
    engine: Engine
    budget: HbmBudget | Unsized
    diagnostics: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]
    boots: tuple[BootRecord, ...]
    support: ModelSupport
    sweep: SizeSweep | None

    @property
    def exit_code(self) -> int:
        """Return 13 for a server that would not start, as `fits: false` and the text say."""
        return CheckFailed.exit_code if self.budget.fits is False else 0

    def values(self) -> dict[str, Any]:
        keys: dict[str, Any] = {
            "name": self.name,
            "task": self.task.task.value,
            "task_origin": self.task.because,
            "engine": self.engine.to_dict(),
            "support": self.support.to_dict(),
            "boots": [asdict(record) for record in self.boots],
            **self.budget.to_dict(),
        }
        keys["diagnostics"] = [asdict(diagnostic) for diagnostic in self.diagnostics]
        if self.sweep is not None:
            keys["sweep"] = {
                "best": [option.to_dict() for option in self.sweep.best],
                "failures": [asdict(failure) for failure in self.sweep.failures],
                "tried": self.sweep.tried,
            }
        return keys

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        budget = _budget_schema()
        keys = {
            "name": str,
            "task": {"type": "string", "description": "generate, embed, score, classify, pool or unknown"},
            "task_origin": {"type": "string", "description": "what decided the task"},
            "engine": part({"kind": str, "release": str | None, "known_from": str}),
            "support": {},  # what the tests of tpu-inference say of the model on this generation
            "boots": {"type": "array", "description": "verified boots of this engine, release, model and slice"},
            "fits": {
                "type": ["boolean", "null"],
                "description": "whether the server starts with this memory; null if unknown: `cannot_size_because` "
                "says why, or `free_bytes_per_chip` is negative and compiled programs may run out of memory",
            },
            "would_not_start": tuple[str, ...],
            "diagnostics": tuple[Diagnostic, ...],
            **budget,
        }
        return document("size", keys, optional=[*budget, "task", "task_origin", "engine", "boots", "support"])

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        about_engine = f"{view.engine(self.engine)}{view.boots(self.boots)}{view.support(self.support)}"
        text = f"{view.size(self.name, self.budget, paint)}{about_engine}{view.task(self.task)}"
        return text if self.sweep is None else f"{text}\n\n{view.sweep(self.sweep, paint, width=width)}"

    def messages(self, paint: Paint) -> str:
        """Return the diagnostics that loading the profile has not shown."""
        new = [diagnostic for diagnostic in self.diagnostics if diagnostic not in self.warnings]
        return "\n" + describe_diagnostics(new, paint.styled) if new else ""


def size(
    workspace: Workspace,
    profile: AProfile,
    *,
    sweep: Annotated[bool, Arg("Try other slices, splits, KV types, utilizations and lengths.")] = False,
) -> Size:
    """Predict the HBM plan of a profile: what fits, how many tokens the cache holds, how long it compiles.

    With `sweep`, try other slices too. Raise `errors.ConfigError` for `model.config`.
    """
    adapters = workspace.adapters
    return predict_size(profile, sweep=sweep, pins=adapters.pins.read(), boots=adapters.boots.read())


def predict_size(
    profile: OneProfile, *, sweep: bool = False, pins: Pins | None = None, boots: Iterable[BootRecord] = ()
) -> Size:
    """Return what `Workspace.size` returns, without a workspace: this is `tpudeploy.size`."""
    profile = loading.profile(profile)
    profile = profile if pins is None else loading.judge(profile, pins)
    deployment, diagnostics = loading.checked(profile, pins)
    return Size(
        name=deployment.name,
        task=deployment.task,
        engine=deployment.engine,
        budget=deployment.budget,
        diagnostics=diagnostics,
        warnings=profile.warnings,
        support=deployment_support(deployment),
        boots=tuple(record for record in boots if _is_alike(record, deployment)),
        sweep=_sweep(deployment) if sweep else None,
    )


def _is_alike(record: BootRecord, deployment: Deployment) -> bool:
    """Return whether a boot was of this engine, release, model and slice."""
    engine = deployment.engine
    is_same_release = engine.release is None or numbers(record.release) == numbers(engine.release)
    alike = (record.engine, record.model, record.accelerator_type)
    return is_same_release and alike == (engine.kind.value, deployment.model_id, deployment.accelerator.name)


def _sweep(deployment: Deployment) -> SizeSweep | None:
    if isinstance(deployment.budget, Unsized):
        return None
    prices = [c.usd_per_chip_hour for c in deployment.candidates if c.usd_per_chip_hour is not None]
    return sweep(deployment.budget, usd_per_chip_hour=min(prices, default=None))


def _budget_schema() -> Mapping[str, Any]:
    """Return the keys of a model that can be sized; otherwise `cannot_size_because` replaces them."""
    option = part(
        {
            **dict.fromkeys(("accelerator_type", "kv_cache_dtype"), str),
            **dict.fromkeys(("tensor_parallel_size", "data_parallel_size", "max_model_len", "kv_cache_tokens"), int),
            **dict.fromkeys(("hbm_utilization", "max_concurrency", "cold_start_seconds"), float),
            "usd_per_hour": float | None,
        }
    )
    sweep = part(
        {
            "best": {"type": "array", "items": option},
            "failures": [{"accelerator_type": str, "settings": str, "because": str}],
            "tried": int,
        }
    )
    # The keys for a model that can be sized; otherwise `cannot_size_because` replaces them.
    return {
        **dict.fromkeys(("model", "accelerator_type", "start_basis"), str),
        **dict.fromkeys(("tensor_parallel_size", "data_parallel_size", "pipeline_parallel_size"), int),
        **dict.fromkeys(("max_model_len", "block_size", "num_blocks"), int),
        **dict.fromkeys(("hbm_bytes_per_chip", "weights_bytes_per_chip", "kv_bytes_per_chip"), int),
        **dict.fromkeys(("kv_bytes_per_token_per_chip", "program_bytes_per_chip", "free_bytes_per_chip"), float),
        **dict.fromkeys(("kv_cache_tokens", "cold_start_seconds", "warm_start_seconds"), int),
        "max_concurrency": float,
        "weights": Mapping[str, int],
        "precision": part({"weights": str, "kv": str, "compute": str}),
        "token_buckets": tuple[int, ...],
        "request_buckets": tuple[int, ...],
        "graphs": part({"total": int, "by_category": Mapping[str, int]}),
        "estimates": tuple[str, ...],
        "cannot_size_because": str,
        "at_least": {},  # the budget without what only adds to the memory
        "weights_bytes_at_least": int | None,
        "sweep": sweep,
    }


OPERATION = Operation(
    run=size,
    results=(Size,),
    access=Access.OFFLINE,
    title="Predict memory",
    tool="size",
)
