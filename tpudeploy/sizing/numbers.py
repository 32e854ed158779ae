"""Small arithmetic that several features share: rounding, powers of two, the size of a type, numbers in a log."""

from __future__ import annotations

from math import isfinite

# Bytes an element; vLLM's names for what the TPU maps (tpu_inference 0.32.0 utils.py to_jax_dtype).
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
    """Return `value` rounded up to a multiple of `to`."""
    return ceil_div(value, to) * to


def padded_head_dim(head_dim: int) -> int:
    """Return the size of a head in the kernels: 64 has a kernel, others are padded to 128 lanes (utils.py)."""
    return head_dim if head_dim == HALF_LANES else align(head_dim, LANES)


def power_of_two(value: int) -> int:
    """Return the smallest power of two that is not below `value`."""
    return 1 << max(value - 1, 0).bit_length()


def parse_number(text: str | None) -> float | None:
    """Return a number as a log writes it, or None; None too for the rest of one that a cut log may have."""
    try:
        value = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return value if isfinite(value) else None
