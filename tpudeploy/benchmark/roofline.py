"""What the chips can do at most, held against figures: the least arithmetic and reading that these tokens need.

Both are lower bounds. Arithmetic leaves out attention over the context, sampling and everything padded; reading leaves
out the KV cache, and counts the weights that one token needs, whatever the batch. So a share above 1 cannot be, and
one above `core.bench.judge`'s limit has never been seen of a real server.
"""

from __future__ import annotations

from tpudeploy import catalog
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.benchmark import Figures
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.model import LanguageModel
from tpudeploy.sizing.numbers import itemsize
from tpudeploy.sizing.weights import active_parameters, head_parameters

_FLOPS = 2  # for each parameter and token: a multiplication and an addition
_TERA, _GIGA = 1e12, 1e9


@frozen
class Roofline:
    """`chips` work on one model together: those of a tensor-parallel rank. `ranks` are as many engines beside it."""

    model: LanguageModel
    accelerator: AcceleratorType
    chips: int
    ranks: int = 1
    dtype: str = "bfloat16"

    def peak_share(self, of: Figures) -> float | None:
        """Of the arithmetic that all chips do in bfloat16; None where the figures have no rates."""
        if of.input_tokens_per_second is None and of.output_tokens_per_second is None:
            return None
        given, made = of.input_tokens_per_second or 0.0, of.output_tokens_per_second or 0.0
        peak = catalog.generation(self.accelerator.generation).peak_bf16_tflops * _TERA * self.chips * self.ranks
        needed = active_parameters(self.model) * (given + made) + head_parameters(self.model) * made
        return _FLOPS * needed / peak

    def bandwidth_share(self, of: Figures) -> float | None:
        """Of a rank's memory bandwidth: every piece of a stream is a step, which reads the weights of a token once."""
        if of.itl_seconds is None or of.itl_seconds.mean <= 0:
            return None
        read = (active_parameters(self.model) + head_parameters(self.model)) * itemsize(self.dtype)
        most = catalog.generation(self.accelerator.generation).hbm_gbytes_per_second * _GIGA * self.chips
        return read / most / of.itl_seconds.mean
