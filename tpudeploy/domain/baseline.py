"""Baseline: figures that somebody published, as they stand there."""

from __future__ import annotations

from tpudeploy.domain.frozen import frozen


@frozen
class Claim:
    """One cell of a published table. None is what it does not tell; `users` and `output_tokens` are 0 there."""

    users: int
    context_tokens: int
    output_tokens: int = 0
    requests_per_second: float | None = None
    input_tokens_per_second: float | None = None
    ttft_mean_seconds: float | None = None
    tpot_mean_seconds: float | None = None


@frozen
class Baseline:
    """`id` is what it is called on the command line. `accelerator_type` is "" for what is no TPU of ours."""

    id: str
    source: str
    model: str
    accelerator_type: str = ""
    caveats: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
