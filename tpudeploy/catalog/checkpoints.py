"""The least that a checkpoint weighs: parameters x bits, whether or not a family can size the model.

Parameters come, best first, from the tensors of the checkpoint that the hub lists, from the shapes in a config.json,
or from the model's class. A number in a name (405B, 8x7B) is a hint, never evidence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tpudeploy.domain.budget import LeastWeights

Config = Mapping[str, Any]

# Parameters and bits of each, of models that neither a family nor an answer of the engine sizes, by the names of their
# repositories in lower case. The parameters are those of Transformers' class on PyTorch's meta device, without layers
# for multi-token prediction, for: its own defaults (DeepSeek-V3.2); the config.json of GLM-4.7 and Kimi-K2-Thinking in
# ai-dynamo/aiconfigurator; and Maverick's in TensorRT-LLM's tests, with its 48 layers. The bits are as commonly stated
# (unverified): fp8 for DeepSeek and Kimi-K2, int4 for later Kimis, bfloat16 for the others.
_COUNTED = """
deepseek-v3.2 671877929216 8
deepseek-v3.2-exp 671877929216 8
kimi-k2-instruct-0905 1026408209408 8
kimi-k2-thinking 1026408209408 4
kimi-k2.5 1026408209408 4
kimi-k2.6 1026408209408 4
llama-4-maverick-17b-128e-instruct 401167027200 16
llama-4-maverick-17b-128e-instruct-fp8 401167027200 8
glm-4.5 352797814784 16
glm-4.5-fp8 352797814784 8
glm-4.6 352797814784 16
glm-4.6-fp8 352797814784 8
glm-4.7 352797814784 16
glm-4.7-fp8 352797814784 8
"""
_BITS = {
    "BOOL": 8,
    "F4": 4,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
    "I8": 8,
    "U8": 8,
    "BF16": 16,
    "F16": 16,
    "I16": 16,
    "F32": 16,  # vLLM loads these in the dtype that the platform prefers, unless a dtype is set
    "I32": 32,
    "U32": 32,
    "F64": 16,
    "I64": 64,
}
_LEAST_BITS = 4  # no quantization that runs on TPU has fewer
_BITS_OF_METHOD = {
    "fp8": 8,
    "mxfp4": 4,
    "awq": 4,
    "gptq": 4,
    "modelopt_fp4": 4,
    "bitsandbytes": 4,
    "compressed-tensors": 4,
}
# Parts that no chip loads (layers for multi-token prediction, audio towers, vision of a server for text alone) are less
# than a tenth of every checkpoint that was looked at.
_LOADED = 0.9
_MATRICES = 2  # of a feed-forward: gated ones have three
_IN_NAME = re.compile(
    r"(?:^|[-_.])(?:(?P<experts>\d{1,3})x)?(?P<billions>\d{1,4}(?:\.\d+)?)b(?:$|[-_.])", re.IGNORECASE
)
_SHARED = 0.8  # experts of 8x7B share their attention: 46.7 billion parameters are 0.83 of 56


def least_weights(
    model_id: str, config: Config, tensors: Mapping[str, int], *, is_requantized: bool = False
) -> LeastWeights | None:
    """Return the least bytes of all weights together, or None if nothing but the name tells them.

    `tensors` are the parameters of the checkpoint by their type. Where weights are quantized as they are loaded, each
    parameter counts with the fewest bits.
    """
    elements = sum(count for kind, count in tensors.items() if kind in _BITS)
    if elements:
        bits = sum(count * _BITS[kind] for kind, count in tensors.items() if kind in _BITS)
        bits = _LEAST_BITS * elements if is_requantized else bits
        return least_of_bytes(bits / 8, f"{elements / 1e9:,.1f} billion elements in its checkpoint, by the hub's index")
    shapes = parameters_of_shapes(config)
    if shapes:
        width = _LEAST_BITS if is_requantized else bits_of(config)
        return least_of_bytes(
            shapes * width / 8, f"{shapes / 1e9:,.1f} billion parameters by its config.json x {width} bits"
        )
    row = _count_of(model_id)
    if row is None:
        return None
    count, width = row[0], _LEAST_BITS if is_requantized else row[1]
    source = f"{count / 1e9:,.1f} billion parameters as Transformers' class counts them x {width} bits"
    return least_of_bytes(count * width / 8, source)


def least_of_parameters(count: float) -> LeastWeights:
    """Return the least bytes of this number of parameters in any type."""
    return least_of_bytes(count * _LEAST_BITS / 8, f"{count / 1e9:,.1f} billion parameters x {_LEAST_BITS} bits")


def least_of_bytes(count: float, source: str) -> LeastWeights:
    """Return the part of these bytes that chips certainly hold."""
    return LeastWeights(size=int(count * _LOADED), source=source)


def parameters_of_shapes(config: Config) -> int:
    """Return the fewest parameters that the shapes of a config.json mean, or 0 without them."""
    nested = config.get("text_config")
    part: Config = nested if isinstance(nested, Mapping) else config
    hidden, layers, vocabulary = (
        _whole(part, "hidden_size"),
        _whole(part, "num_hidden_layers"),
        _whole(part, "vocab_size"),
    )
    if not hidden or not layers:
        return 0
    experts = _whole(part, "n_routed_experts", "num_local_experts", "num_experts")
    if experts:
        width = _whole(part, "moe_intermediate_size", "intermediate_size")
        sparse = max(layers - _whole(part, "first_k_dense_replace"), 0)
        if isinstance(part.get("decoder_sparse_step"), int) and part["decoder_sparse_step"] > 1:
            sparse //= int(part["decoder_sparse_step"])
        inner = 3 * experts * width * hidden * sparse
    else:
        inner = _MATRICES * _whole(part, "intermediate_size") * hidden * layers
    return vocabulary * hidden + inner


def bits_of(config: Config) -> int:
    """Return the fewest bits of a parameter that a config.json allows."""
    section = config.get("quantization_config")
    if isinstance(section, Mapping):
        return _BITS_OF_METHOD.get(str(section.get("quant_method", "")), _LEAST_BITS)
    return _BITS["F32"]


def parameters_in_name(model_id: str) -> float:
    """Return the billions of parameters that a name tells, or 0: `405B`, `8x7B`, and not the 22B of `235B-A22B`."""
    most = 0.0
    for match in _IN_NAME.finditer(model_id.rpartition("/")[2]):
        billions = float(match["billions"])
        most = max(most, billions * int(match["experts"]) * _SHARED if match["experts"] else billions)
    return most


def _count_of(model_id: str) -> tuple[int, int] | None:
    name = model_id.rpartition("/")[2].lower()
    for line in _COUNTED.split("\n"):
        row, *figures = line.split() or [""]
        if row == name:
            return int(figures[0]), int(figures[1])
    return None


def _whole(config: Config, *names: str) -> int:
    """Return the first of these fields that is a positive whole number of a plausible size, or 0."""
    values = (config.get(name) for name in names)
    return next((value for value in values if type(value) is int and 0 < value < 10**8), 0)
