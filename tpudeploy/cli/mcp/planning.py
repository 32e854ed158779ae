"""The tool that shows what would change, and keeps it for those that do it."""

from __future__ import annotations

from argparse import Namespace
from typing import Annotated

from pydantic import Field

from tpudeploy.cli import documents, planning
from tpudeploy.cli.mcp.offline import Profiles
from tpudeploy.cli.mcp.session import Asked, session
from tpudeploy.views.paint import Paint
from tpudeploy.views.plan import plan as view

Addresses = tuple[str, ...]


def plan(
    ctx: Asked,
    profiles: Profiles,
    *,
    destroy: Annotated[bool, Field(description="plan the removal, for the tool destroy")] = False,
    refresh_only: Annotated[bool, Field(description="only write down what changed outside; touch nothing")] = False,
    target: Annotated[Addresses, Field(description="only these: NAME, or NAME[0] for one replica")] = (),
    replace: Annotated[Addresses, Field(description="another slice for these: NAME, or NAME[0]")] = (),
) -> documents.Document:
    """What would change, why, from which line, at what price. Changes nothing; its plan_id is for apply or destroy."""
    given = Namespace(refresh_only=refresh_only, target=list(target), replace=list(replace))
    asked = planning.asked(given, destroy=destroy)
    with session(ctx).project.opened(*profiles) as at:
        made = at.workspace.plan(at.profiles, **asked)
    kept = session(ctx).plans.keep(made, profiles)
    return {
        **made.to_dict(),
        "plan_id": kept.id,
        "needs_consent": bool(kept.ends),
        "text": view(made, Paint()),
    }
