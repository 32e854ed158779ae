"""Define the tool that shows a plan and stores it for the tools that apply it."""

from __future__ import annotations

from argparse import Namespace
from typing import Annotated

from pydantic import Field

from tpudeploy.cli import documents, planning
from tpudeploy.cli.mcp.offline import Profiles
from tpudeploy.cli.mcp.session import Call, session
from tpudeploy.views.paint import Paint
from tpudeploy.views.plan import plan as view

Addresses = tuple[str, ...]


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
    args = Namespace(refresh_only=refresh_only, target=list(target), replace=list(replace))
    arguments = planning.plan_arguments(args, destroy=destroy)
    with session(ctx).project.opened(*profiles) as at:
        new_plan = at.workspace.plan(at.profiles, **arguments)
    stored = session(ctx).plans.keep(new_plan, profiles)
    return {
        **new_plan.to_dict(),
        "plan_id": stored.id,
        "needs_consent": bool(stored.ends),
        "text": view(new_plan, Paint()),
    }
