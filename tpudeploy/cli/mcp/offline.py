"""Define the tools that need no network: validate, size, alerts and explain."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import Field

from tpudeploy.cli import documents
from tpudeploy.cli.context import AS_WRITTEN
from tpudeploy.cli.mcp.session import Call, session

Profiles = Annotated[
    list[str], Field(min_length=1, description="paths inside the project: profiles, or folders of them")
]
OneProfile = Annotated[str, Field(min_length=1, description="a profile's path inside the project")]


def validate(ctx: Call, profiles: Profiles) -> documents.Document:
    """Check profiles offline: format, flags, placement, memory, startup script."""
    from tpudeploy.cli.commands.validate import check_profiles
    from tpudeploy.views.reports import REPORTS

    project = session(ctx).project
    paths = project.expand_folders(profiles)
    with project.opened() as at:
        document: documents.Document = json.loads(REPORTS["json"](check_profiles(paths, AS_WRITTEN, at.context)))
    return document


def size(
    ctx: Call,
    profile: OneProfile,
    sweep: Annotated[bool, Field(description="try other slices, splits, KV types, utilizations and lengths")] = False,
) -> documents.Document:
    """Predict the HBM plan of a profile: what fits, how many tokens the cache holds, how long it compiles."""
    from tpudeploy.cli.commands.size import swept_around
    from tpudeploy.loading import checked

    with session(ctx).project.opened(profile) as at:
        deployment, diagnostics = checked(at.profile)
        return documents.size(deployment, diagnostics, swept_around(deployment) if sweep else None)


def alerts(
    ctx: Call,
    profiles: Profiles,
    form: Annotated[
        Literal["rules", "prometheusrule", "gmp", "ops-agent", "dashboard"],
        Field(description="Prometheus rules, in three forms; how to collect metrics; a Grafana dashboard"),
    ] = "rules",
    ttft_seconds: Annotated[float | None, Field(gt=0, description="how late a first token may be")] = None,
) -> documents.Document:
    """Generate alert rules for profiles, as the text of a file with remarks. Writes nothing."""
    from tpudeploy.cli.commands.alerts import render

    with session(ctx).project.opened(*profiles) as at:
        text, remarks = render(form, at.profiles, ttft_seconds=ttft_seconds)
    return documents.alerts(text, remarks)


def explain(
    code: Annotated[str, Field(description="an error's code, a refusal such as `stockout`, or a text of Google's")],
) -> documents.Document:
    """Explain an error code, a refusal or an error text, and what to do about it."""
    from tpudeploy.cli.commands.explain import lookup
    from tpudeploy.cli.explanations import explanations

    code, text = lookup(code.strip(), explanations())
    return documents.explanation(code, text)
