"""Define the tools that query a running deployment: its model, metrics, logs and settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tpudeploy.cli import documents
from tpudeploy.cli.mcp.offline import OneProfile
from tpudeploy.cli.mcp.session import Call, session


def query(
    ctx: Call,
    profile: OneProfile,
    prompt: Annotated[str, Field(min_length=1)],
    max_tokens: Annotated[int, Field(ge=1, le=65536)] = 256,
) -> documents.Document:
    """Ask a deployment's endpoint a question: the answer, and how fast it came."""
    with session(ctx).project.opened(profile) as at:
        return documents.answer(at.workspace.ask(at.profile, prompt, max_tokens=max_tokens))


def metrics(ctx: Call, profile: OneProfile) -> documents.Document:
    """Show the current metrics of a deployment's servers, each with its meaning and what to do."""
    with session(ctx).project.opened(profile) as at:
        return documents.metrics(at.workspace.metrics(at.profile))


def logs(ctx: Call, profile: OneProfile) -> documents.Document:
    """Explain a deployment's boot logs: the root cause of a failure and what to do, or the duration of each phase."""
    from tpudeploy.cli.commands.logs import read_all

    with session(ctx).project.opened(profile) as at:
        log_lines = at.workspace.logs(at.profile.spec.name)
        readings = read_all({name: "\n".join(lines) for name, lines in log_lines.items()}, at.profile)
        addresses = at.workspace.addresses(at.profile.spec.name)
    return documents.logs(readings, addresses)


def diagnose(
    ctx: Call,
    profile: OneProfile,
    colleague: Annotated[str | None, Field(description="the profile of another deployment, which serves")] = None,
) -> documents.Document:
    """Explain the boot logs as the tool logs does, and add a served model's unverified draft from redacted evidence."""
    from tpudeploy.cli.commands.logs import read_all
    from tpudeploy.operations.diagnose import draft

    project = session(ctx).project
    with project.opened(profile) as at, project.opened(colleague or profile) as colleague_at:
        texts = {name: "\n".join(lines) for name, lines in at.workspace.logs(at.profile.spec.name).items()}
        readings = read_all(texts, at.profile)
        draft_ = draft(colleague_at.workspace, texts, readings, profile=at.profile, author=colleague_at.profile)
        addresses = at.workspace.addresses(at.profile.spec.name)
    return documents.logs(readings, addresses) | documents.draft(draft_)


def verify(ctx: Call, profile: OneProfile) -> documents.Document:
    """Compare a profile's settings with those of its engines, from their API, metrics and boot logs."""
    with session(ctx).project.opened(profile) as at:
        return documents.verify(at.workspace.verify(at.profile))
