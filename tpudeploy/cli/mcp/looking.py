"""Define the tools that read the cloud and the states and change nothing."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tpudeploy.cli import documents
from tpudeploy.cli.commands.output import outputs_of
from tpudeploy.cli.mcp.offline import OneProfile, Profiles
from tpudeploy.cli.mcp.session import Call, session

SomeProfiles = Annotated[
    tuple[str, ...], Field(description="paths inside the project; none for everything in the states")
]
Name = Annotated[str, Field(min_length=1, description="a deployment's name")]


def zones(
    ctx: Call,
    profiles: Annotated[
        tuple[str, ...], Field(description="paths inside the project; none to ask for `type` alone")
    ] = (),
    type: Annotated[str | None, Field(description="e.g. v6e-4; otherwise the profile's, else v6e-1")] = None,  # noqa: A002 - the command line's word
) -> documents.Document:
    """List where a slice type is available, by zone: hardware, provisioning models, quota, price, recent results."""
    with session(ctx).project.opened(*profiles) as at:
        tables = at.workspace.zones(at.profiles, type=type)
        return documents.zones(tables, emulated=at.workspace.is_emulated)


def doctor(ctx: Call, profile: OneProfile) -> documents.Document:
    """Check every precondition of a profile in its Google Cloud project, with what to do. Creates nothing."""
    with session(ctx).project.opened(profile) as at:
        return documents.doctor(at.workspace.doctor(at.profile), emulated=at.workspace.is_emulated)


def status(ctx: Call, profiles: SomeProfiles = ()) -> documents.Document:
    """Show deployments, their progress, endpoints and health. Without profiles, no endpoint is probed."""
    with session(ctx).project.opened(*profiles) as at:
        deployments = at.workspace.status(at.profiles) if profiles else at.workspace.status_of_all()
        return documents.status(deployments, emulated=at.workspace.is_emulated)


def memory_layout(ctx: Call, profile: OneProfile) -> documents.Document:
    """Show what a deployment's chips hold, planned beside measured, and the settings of its engines."""
    with session(ctx).project.opened(profile) as at:
        return documents.details(at.workspace.details(at.profile))


def output(ctx: Call, name: Name) -> documents.Document:
    """Return a deployment's endpoint as the last apply published it."""
    with session(ctx).project.opened() as at:
        return documents.output(name, outputs_of(at.workspace, name))


def drift(ctx: Call, profiles: Profiles) -> documents.Document:
    """Show what changed outside since the last apply, including server settings: a plan that would only record it."""
    with session(ctx).project.opened(*profiles) as at:
        return at.workspace.plan(at.profiles, refresh_only=True, attest=True).to_dict()


def gc_list(ctx: Call, profiles: SomeProfiles = ()) -> documents.Document:
    """List orphans: resources with our mark that no deployment needs, which are billed. Removes nothing."""
    with session(ctx).project.opened(*profiles) as at:
        return at.workspace.gc(at.profiles).to_dict()
