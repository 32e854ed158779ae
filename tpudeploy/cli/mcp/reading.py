"""Define the tools that read and need the server's session: validate, whose profiles may be invalid, and plan."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tpudeploy.cli import documents
from tpudeploy.cli.context import AS_WRITTEN
from tpudeploy.cli.mcp.session import Call, session
from tpudeploy.text.paint import Paint
from tpudeploy.views.plan import plan as view

Profiles = Annotated[
    list[str], Field(min_length=1, description="paths inside the project: profiles, or folders of them")
]
OneProfile = Annotated[str, Field(min_length=1, description="a profile's path inside the project")]
Addresses = tuple[str, ...]


def validate(ctx: Call, profiles: Profiles) -> documents.Document:
    """Check profiles offline: format, flags, placement, memory, startup script."""
    from tpudeploy.cli.commands.validate import check_profiles

    project = session(ctx).project
    paths = project.expand_folders(profiles)
    with project.opened() as at:
        return check_profiles(paths, AS_WRITTEN, at.context).to_dict()


def plan(
    ctx: Call,
    profiles: Profiles,
    *,
    destroy: Annotated[bool, Field(description="plan the removal, for the tool destroy")] = False,
    refresh_only: Annotated[
        bool, Field(description="only record what changed outside, and change no resource")
    ] = False,
    target: Annotated[Addresses, Field(description="only these: NAME, or NAME[0] for one replica")] = (),
    replace: Annotated[Addresses, Field(description="another slice for these: NAME, or NAME[0]")] = (),
) -> documents.Document:
    """Show what would change, why, by which line, at what price. Changes nothing; pass plan_id to apply or destroy."""
    with session(ctx).project.opened(*profiles) as at:
        new_plan = at.workspace.plan(
            at.profiles, destroy=destroy, refresh_only=refresh_only, target=target, replace=replace
        )
    stored = session(ctx).plans.keep(new_plan, profiles)
    return {
        **new_plan.to_dict(),
        "plan_id": stored.id,
        "needs_consent": bool(stored.ends),
        "text": view(new_plan, Paint()),
    }
