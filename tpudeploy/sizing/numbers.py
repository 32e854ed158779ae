"""Small arithmetic that the sizing shares: rounding up, powers of two, the size of a type."""

from __future__ import annotations

# Bytes an element; vLLM's names for what the TPU maps (tpu_inference 0.32.0 utils.py:37-43,110-124).
ITEMSIZE = {
    "bfloat16": 2,
    "float16": 2,
    "half": 2,
    "float32": 4,
    "float": 4,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
}
LANES = 128
HALF_LANES = 64


def itemsize(dtype: str) -> int:
    return ITEMSIZE[dtype]


def ceil_div(value: int, by: int) -> int:
    return -(-value // by)


def align(value: int, to: int) -> int:
    """`value` rounded up to a multiple of `to`."""
    return ceil_div(value, to) * to


def padded_head_dim(head_dim: int) -> int:
    """As the kernels hold a head: 64 has one of its own, any other is padded to 128 lanes (utils.py:325-331)."""
    return head_dim if head_dim == HALF_LANES else align(head_dim, LANES)


def power_of_two(value: int) -> int:
    """The smallest power of two that is not below `value`."""
    return 1 << max(value - 1, 0).bit_length()
