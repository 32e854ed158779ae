"""The limits of the chips: the least arithmetic and reading that the measured tokens need, as a share of what they do.

Both are lower bounds. Arithmetic leaves out attention over the context, sampling and everything padded; reading leaves
out the KV cache, and counts the weights that one token needs, whatever the batch. So a share above 1 cannot be, and
one above the limit of `benchmark.cells` has never been seen of a real server.
"""

from __future__ import annotations

from dataclasses import dataclass

from tpudeploy import catalog
from tpudeploy.catalog import families
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.model import LanguageModel, NotCovered
from tpudeploy.features.benchmark.run import Figures, Subject
from tpudeploy.sizing.numbers import ITEMSIZE, itemsize
from tpudeploy.sizing.weights import active_parameters, head_parameters

_FLOPS = 2  # for each parameter and token: a multiplication and an addition
_TERA, _GIGA = 1e12, 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """A model on the `devices` of one tensor-parallel rank, and the number of such `ranks`."""

    model: LanguageModel
    accelerator: AcceleratorType
    devices: int
    ranks: int = 1
    dtype: str = "bfloat16"

    def peak_share(self, figures: Figures) -> float | None:
        """Return the share of the bfloat16 arithmetic of all chips, or None for figures without rates."""
        if figures.input_tokens_per_second is None and figures.output_tokens_per_second is None:
            return None
        prompt, answer = figures.input_tokens_per_second or 0.0, figures.output_tokens_per_second or 0.0
        needed = active_parameters(self.model) * (prompt + answer) + head_parameters(self.model) * answer
        return _FLOPS * needed / (self._rank_flops * self.ranks)

    def bandwidth_share(self, figures: Figures) -> float | None:
        """Return the share of a rank's memory bandwidth: each piece of a stream is a step that reads all weights."""
        if figures.itl_seconds is None or figures.itl_seconds.mean <= 0:
            return None
        return self._read_seconds / figures.itl_seconds.mean

    def step_seconds(self, sequences: float) -> float:
        """Return the least time of a step of one rank that gives each of these sequences its next token."""
        needed = sequences * (active_parameters(self.model) + head_parameters(self.model))
        return max(self._read_seconds, _FLOPS * needed / self._rank_flops)

    def prompt_seconds(self, tokens: float) -> float:
        """Return the least time in which one rank computes a prompt of this length."""
        needed = active_parameters(self.model) * tokens + head_parameters(self.model)
        return max(self._read_seconds, _FLOPS * needed / self._rank_flops)

    @property
    def _read_seconds(self) -> float:
        """The seconds in which a rank reads the weights that one token needs."""
        linear = itemsize(self.model.linear_dtype or self.dtype)
        weights = active_parameters(self.model) * linear + head_parameters(self.model) * itemsize(self.dtype)
        bandwidth = catalog.generation(self.accelerator.generation).hbm_gbytes_per_second * _GIGA * self._chips
        return weights / bandwidth

    @property
    def _rank_flops(self) -> float:
        return catalog.generation(self.accelerator.generation).peak_bf16_tflops * _TERA * self._chips

    @property
    def _chips(self) -> float:
        """The chips of a rank: half a chip is one of its two devices."""
        return self.devices / self.accelerator.devices_per_chip


def roofline(subject: Subject, deployment: Deployment | None) -> Roofline | None:
    """Return the limits for a subject, or None if its model or its chips are unknown.

    Without a deployment, bfloat16 and tensor parallelism over all devices are assumed.
    """
    kind = catalog.accelerator_type(subject.accelerator_type)
    if kind is None:
        return None
    if deployment is None:
        try:
            model = families.find_model(subject.model_id)
        except NotCovered:
            return None
        return (
            None
            if model is None or model.linear_dtype not in ("", *ITEMSIZE)
            else Roofline(model=model, accelerator=kind, devices=kind.devices)
        )
    return roofline_of(kind, deployment, replicas=max(1, len(subject.replicas)))


def roofline_of(kind: AcceleratorType, deployment: Deployment, *, replicas: int = 1) -> Roofline | None:
    """Return the limits of the chips of a deployment, or None if its model or its layout is not known."""
    budget = deployment.budget
    model, engine = budget.model, budget.engine
    # The limits do not depend on how much memory a device has.
    is_certain = isinstance(budget, HbmBudget) or budget.lacks_limit_alone
    # Linear layers of four bits: how many bytes a step reads is not modelled.
    if not is_certain or model is None or engine is None or model.linear_dtype not in ("", *ITEMSIZE):
        return None
    return Roofline(
        model=model,
        accelerator=kind,
        devices=engine.tensor_parallel * engine.pipeline_parallel,
        ranks=engine.data_parallel * replicas,
        dtype=engine.dtype,
    )
