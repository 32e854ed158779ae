"""Respond to the tools that need the server's session: some read invalid profiles, others keep what they show."""

from __future__ import annotations

from tpudeploy.cli.context import AS_WRITTEN
from tpudeploy.cli.documents import Document
from tpudeploy.cli.mcp.operation_tool import ToolCall
from tpudeploy.cli.mcp.session import Trial
from tpudeploy.text.paint import Paint
from tpudeploy.views.plan import plan as view


def validate_profiles(call: ToolCall) -> Document:
    from tpudeploy.cli.commands.validate import check_profiles

    paths = call.session.project.expand_folders(call.values["profiles"])
    return check_profiles(paths, AS_WRITTEN, call.opened.context).to_dict()


def keep_plan(call: ToolCall) -> Document:
    """Return the plan, which this server keeps under an id, so that exactly this plan can be applied."""
    plan = call.result()
    stored = call.session.plans.keep(plan, call.paths)
    return {**plan.to_dict(), "plan_id": stored.id, "needs_consent": bool(stored.ends), "text": view(plan, Paint())}


def keep_trial(call: ToolCall) -> Document:
    """Return the proposal of an A/B, which this server keeps under its id."""
    result, (path,) = call.result(), call.paths
    trial = call.session.trials.keep(lambda _: Trial(path=path, arms=result.arms, proposal=result.proposal))
    return {**result.to_dict(), "ab_id": trial.id, "text": str(result)}
