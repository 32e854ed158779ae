"""Configurations that vLLM refuses before it loads anything. Each text is its own last line, as people quote it.

No whole log of such an end is at hand: that nothing else stands around the line is constructed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tpudeploy.emulator.machine.vllm.arguments import Arguments
from tpudeploy.emulator.machine.vllm.sizes import read_size


def refusal(arguments: Arguments, task: Mapping[str, Any]) -> str:
    """The first error that such a server dies of, or ""."""
    return next(filter(None, (check(arguments, task) for check in CHECKS)), "")


def _devices(arguments: Arguments, task: Mapping[str, Any]) -> str:
    found = int(re.sub(r".*-", "", task["accelerator_type"]))
    wanted = int(arguments.text("tensor-parallel-size", "1"))
    return f"ValueError: Insufficient devices for 2D mesh: found {found}, expected {wanted}" if wanted > found else ""


def _batch(arguments: Arguments, _task: Mapping[str, Any]) -> str:
    tokens = read_size(arguments.text("max-num-batched-tokens", "2048"))
    seqs = read_size(arguments.text("max-num-seqs", "256"))
    if tokens >= seqs:
        return ""
    return f"ValueError: max_num_batched_tokens ({tokens}) must be greater than or equal to max_num_seqs ({seqs})."


def _tools(arguments: Arguments, _task: Mapping[str, Any]) -> str:
    lacks_parser = arguments.has("enable-auto-tool-choice") and not arguments.has("tool-call-parser")
    return "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser" if lacks_parser else ""


def _weights(arguments: Arguments, task: Mapping[str, Any]) -> str:
    """In the words of transformers (UNVERIFIED: vLLM may say it before)."""
    if task["has_weights"]:
        return ""
    return f"OSError: {arguments.model} does not appear to have a file named config.json."


CHECKS: tuple[Callable[[Arguments, Mapping[str, Any]], str], ...] = (_tools, _batch, _devices, _weights)
