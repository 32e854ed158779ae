"""A flag for fast prefill that nothing on TPU reads."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.core.finding import argument, warning
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic

CODE = "TPU2113"
MEANING = """--kv-sharing-fast-prefill has no effect on TPU

vLLM takes the flag, and on GPUs it skips prefill work for layers that share a cache; nothing in the TPU code reads it.
Its published gains are a GPU's. Leave it out."""


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    path, value = argument(deployment, "kv-sharing-fast-prefill")
    if value is True:
        message = "--kv-sharing-fast-prefill has no effect on TPU: nothing there reads it."
        yield warning(deployment, CODE, message, path=path, hint="Leave it out.")
