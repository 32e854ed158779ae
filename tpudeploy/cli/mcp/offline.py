"""Tools that ask nobody: what profiles say, what their chips hold, what a code means."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import Field

from tpudeploy.cli import documents
from tpudeploy.cli.context import AS_WRITTEN
from tpudeploy.cli.mcp.session import Asked, session

Profiles = Annotated[
    list[str], Field(min_length=1, description="paths inside the project: profiles, or folders of them")
]
OneProfile = Annotated[str, Field(min_length=1, description="a profile's path inside the project")]


def validate(ctx: Asked, profiles: Profiles) -> documents.Document:
    """Check everything about profiles that can be known offline: format, flags, placement, memory, startup script."""
    from tpudeploy.cli.commands.validate import checked
    from tpudeploy.views.reports import REPORTS

    project = session(ctx).project
    known = project.written_out(profiles)
    with project.opened() as at:
        found: documents.Document = json.loads(REPORTS["json"](checked(known, AS_WRITTEN, at.context)))
    return found


def size(
    ctx: Asked,
    profile: OneProfile,
    sweep: Annotated[bool, Field(description="try other slices, splits, KV types, utilizations and lengths")] = False,
) -> documents.Document:
    """The HBM plan of a profile, predicted: what fits, how many tokens the cache holds, how long it compiles."""
    from tpudeploy.cli.commands.size import swept_around
    from tpudeploy.loading import checked

    with session(ctx).project.opened(profile) as at:
        deployment, found = checked(at.profile)
        return documents.size(deployment, found, swept_around(deployment) if sweep else None)


def alerts(
    ctx: Asked,
    profiles: Profiles,
    form: Annotated[
        Literal["rules", "prometheusrule", "gmp", "ops-agent", "dashboard"],
        Field(description="Prometheus rules, in three forms; how to collect metrics; a Grafana dashboard"),
    ] = "rules",
    ttft_seconds: Annotated[float | None, Field(gt=0, description="how late a first token may be")] = None,
) -> documents.Document:
    """Alert rules for what profiles serve, as the text of a file, and remarks on it. Writes nothing."""
    from tpudeploy.cli.commands.alerts import made

    with session(ctx).project.opened(*profiles) as at:
        text, remarks = made(form, at.profiles, ttft_seconds=ttft_seconds)
    return documents.alerts(text, remarks)


def explain(
    code: Annotated[str, Field(description="an error's code, a refusal such as `stockout`, or a text of Google's")],
) -> documents.Document:
    """What an error code, a refusal or an error text means, and what to do about it."""
    from tpudeploy.cli.commands.explain import explained
    from tpudeploy.cli.explanations import explanations

    found, text = explained(code.strip(), explanations())
    return documents.explanation(found, text)
