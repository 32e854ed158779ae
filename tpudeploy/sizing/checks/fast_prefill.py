"""A flag for fast prefill that nothing on TPU reads."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.sizing.finding import argument, warning

CODE = "TPU2113"
EXPLANATION = Explanation(
    "--kv-sharing-fast-prefill has no effect on TPU",
    "vLLM accepts the flag. On GPUs it skips prefill work for layers that share a cache; the TPU code does not "
    "read it. Its published gains are those of GPUs.",
    "serving: {args: {kv_sharing_fast_prefill: false}}",
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    path, value = argument(deployment, "kv-sharing-fast-prefill")
    if value is True:
        message = "--kv-sharing-fast-prefill has no effect on TPU: nothing there reads it."
        yield warning(deployment, CODE, message, path=path, hint="Leave it out.")
