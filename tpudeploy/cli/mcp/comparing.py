"""Define the tools that compare benchmark runs and recommend a profile for a workload."""

from __future__ import annotations

from argparse import Namespace
from typing import Annotated

from pydantic import Field

from tpudeploy.benchmark.published import published
from tpudeploy.cli import documents
from tpudeploy.cli.commands.recommend import laid_over
from tpudeploy.cli.context import AS_WRITTEN
from tpudeploy.cli.mcp.offline import OneProfile
from tpudeploy.cli.mcp.session import Call, session

Count = Annotated[int, Field(ge=1)]


def compare(
    ctx: Call,
    run_ids: Annotated[tuple[str, ...], Field(min_length=2, description="ids of runs, or names of published tables")],
) -> documents.Document:
    """Compare benchmarks point by point: throughput, latency, tokens per dollar, and the gain from more chips."""
    from tpudeploy.benchmark.compare import compare as compared

    tables = published()
    with session(ctx).project.opened() as at:
        return documents.comparison(compared([tables.get(id_) or at.workspace.runs.find(id_) for id_ in run_ids]))


def recommend(
    ctx: Call,
    profile: OneProfile,
    *,
    users: Annotated[Count, Field(description="requests at once")],
    context: Annotated[Count, Field(description="tokens of a prompt")],
    output: Annotated[Count, Field(description="tokens of an answer")],
    ttft_seconds: Annotated[
        float | None, Field(gt=0, description="the limit for the 95th percentile of the time to first token")
    ] = None,
    usd_per_month: Annotated[float | None, Field(gt=0, description="at list prices")] = None,
    emulated: Annotated[bool, Field(description="accept runs measured on the emulator, where no model runs")] = False,
) -> documents.Document:
    """Recommend what would serve a workload, and a profile for it, from measured runs; says if there are none."""
    from tpudeploy.benchmark.recommend import recommend as recommended
    from tpudeploy.domain.recommendation import Workload
    from tpudeploy.loading import sized

    workload = Workload(
        users=users,
        context_tokens=context,
        output_tokens=output,
        ttft_seconds=ttft_seconds,
        usd_per_month=usd_per_month,
    )
    with session(ctx).project.opened(profile) as at:
        recommendation = recommended(sized(at.profile), workload, at.workspace.runs.all(), takes_emulated=emulated)
        args = Namespace(profile=profile, **vars(AS_WRITTEN))
        text = laid_over(args, at.context, recommendation.choices[0]) if recommendation.choices else None
    return documents.recommendation(recommendation, text)
