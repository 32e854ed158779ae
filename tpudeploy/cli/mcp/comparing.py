"""Tools that conclude from what was measured: runs beside each other, and what would serve a workload."""

from __future__ import annotations

from argparse import Namespace
from typing import Annotated

from pydantic import Field

from tpudeploy.cli import documents
from tpudeploy.cli.commands.recommend import laid_over
from tpudeploy.cli.context import AS_WRITTEN
from tpudeploy.cli.mcp.offline import OneProfile
from tpudeploy.cli.mcp.session import Asked, session
from tpudeploy.core.bench.published import published

Count = Annotated[int, Field(ge=1)]


def compare(
    ctx: Asked,
    run_ids: Annotated[tuple[str, ...], Field(min_length=2, description="ids of runs, or names of published tables")],
) -> documents.Document:
    """Benchmarks beside each other, point by point: throughput, latency, tokens per dollar, what more chips bring."""
    from tpudeploy.core.bench.compare import compare as compared

    known = published()
    with session(ctx).project.opened() as at:
        return documents.comparison(compared([known.get(id_) or at.workspace.runs.find(id_) for id_ in run_ids]))


def recommend(
    ctx: Asked,
    profile: OneProfile,
    *,
    users: Annotated[Count, Field(description="requests at once")],
    context: Annotated[Count, Field(description="tokens of a prompt")],
    output: Annotated[Count, Field(description="tokens of an answer")],
    ttft_seconds: Annotated[float | None, Field(gt=0, description="95 of 100 requests begin within")] = None,
    usd_per_month: Annotated[float | None, Field(gt=0, description="at list prices")] = None,
    emulated: Annotated[bool, Field(description="accept runs measured on the emulator, where no model runs")] = False,
) -> documents.Document:
    """What would serve a workload, and the profile for it. Measured runs decide; where there are none, it is said."""
    from tpudeploy.core.bench.recommend import recommend as recommended
    from tpudeploy.domain.recommendation import Workload
    from tpudeploy.loading import sized

    asked = Workload(
        users=users,
        context_tokens=context,
        output_tokens=output,
        ttft_seconds=ttft_seconds,
        usd_per_month=usd_per_month,
    )
    with session(ctx).project.opened(profile) as at:
        found = recommended(sized(at.profile), asked, at.workspace.runs.all(), takes_emulated=emulated)
        given = Namespace(profile=profile, **vars(AS_WRITTEN))
        text = laid_over(given, at.context, found.choices[0]) if found.choices else None
    return documents.recommendation(found, text)
