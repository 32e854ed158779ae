"""Baseline: published figures, verbatim."""

from __future__ import annotations

from tpudeploy.domain.frozen import frozen


@frozen
class Claim:
    """One cell of a published table. Missing values are None."""

    users: int | None
    context_tokens: int
    output_tokens: int | None = None
    requests_per_second: float | None = None
    input_tokens_per_second: float | None = None
    ttft_mean_seconds: float | None = None
    tpot_mean_seconds: float | None = None


@frozen
class Baseline:
    """A published table. `id` is its name on the command line. `accelerator_type` is "" for other hardware."""

    id: str
    source: str
    model: str
    accelerator_type: str = ""
    caveats: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
