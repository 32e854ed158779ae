"""Tools that ask what serves: the model, its logs, its settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tpudeploy.cli import documents
from tpudeploy.cli.mcp.offline import OneProfile
from tpudeploy.cli.mcp.session import Asked, session


def query(
    ctx: Asked,
    profile: OneProfile,
    prompt: Annotated[str, Field(min_length=1)],
    max_tokens: Annotated[int, Field(ge=1, le=65536)] = 256,
) -> documents.Document:
    """Ask a deployment's endpoint a question: the answer, and how fast it came."""
    with session(ctx).project.opened(profile) as at:
        return documents.answer(at.workspace.ask(at.profile, prompt, max_tokens=max_tokens))


def metrics(ctx: Asked, profile: OneProfile) -> documents.Document:
    """What a deployment's servers say of themselves at this moment, each figure with what it means and what to do."""
    with session(ctx).project.opened(profile) as at:
        return documents.metrics(at.workspace.metrics(at.profile))


def logs(ctx: Asked, profile: OneProfile) -> documents.Document:
    """The boot logs of a deployment, read: the first real cause of a failure and what to do, or the phases' seconds."""
    from tpudeploy.cli.commands.logs import read_all

    with session(ctx).project.opened(profile) as at:
        found = at.workspace.logs(at.profile.spec.name)
        readings = read_all({name: "\n".join(lines) for name, lines in found.items()}, at.profile)
        addresses = at.workspace.addresses(at.profile.spec.name)
    return documents.logs(readings, addresses)


def diagnose(
    ctx: Asked,
    profile: OneProfile,
    colleague: Annotated[str | None, Field(description="the profile of another deployment, which serves")] = None,
) -> documents.Document:
    """As logs, and beside our findings the draft of the served model, from redacted evidence. Nobody has checked it."""
    from tpudeploy.cli.commands.logs import read_all
    from tpudeploy.drafting import draft

    project = session(ctx).project
    with project.opened(profile) as at, project.opened(colleague or profile) as asked:
        found = {name: "\n".join(lines) for name, lines in at.workspace.logs(at.profile.spec.name).items()}
        readings = read_all(found, at.profile)
        drafted = draft(asked.workspace, found, readings, of=at.profile, by=asked.profile)
        addresses = at.workspace.addresses(at.profile.spec.name)
    return documents.logs(readings, addresses) | documents.draft(drafted)


def verify(ctx: Asked, profile: OneProfile) -> documents.Document:
    """What a profile declares against what its engines do, by their API, their metrics and their boot logs."""
    with session(ctx).project.opened(profile) as at:
        return documents.verify(at.workspace.verify(at.profile))
