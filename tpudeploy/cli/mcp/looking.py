"""Tools that look at the cloud and at what is remembered, and change nothing."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tpudeploy.cli import documents
from tpudeploy.cli.commands.output import outputs_of
from tpudeploy.cli.mcp.offline import OneProfile, Profiles
from tpudeploy.cli.mcp.session import Asked, session

SomeProfiles = Annotated[
    tuple[str, ...], Field(description="paths inside the project; none for all that is remembered")
]
Name = Annotated[str, Field(min_length=1, description="a deployment's name")]


def zones(
    ctx: Asked,
    profiles: Annotated[
        tuple[str, ...], Field(description="paths inside the project; none to ask for `type` alone")
    ] = (),
    type: Annotated[str | None, Field(description="e.g. v6e-4; otherwise the profile's, else v6e-1")] = None,  # noqa: A002 - the command line's word
) -> documents.Document:
    """Where a slice type can be had, zone by zone: hardware, provisioning models, quota, price, recent luck."""
    with session(ctx).project.opened(*profiles) as at:
        found = at.workspace.zones(at.profiles, type=type)
        return documents.zones(found, emulated=at.workspace.is_emulated)


def doctor(ctx: Asked, profile: OneProfile) -> documents.Document:
    """Every precondition of a profile in its Google Cloud project, checked, with what to do. Creates nothing."""
    with session(ctx).project.opened(profile) as at:
        return documents.doctor(at.workspace.doctor(at.profile), emulated=at.workspace.is_emulated)


def status(ctx: Asked, profiles: SomeProfiles = ()) -> documents.Document:
    """What is there, how far it has come, where it answers, its health. Without profiles no endpoint is probed."""
    with session(ctx).project.opened(*profiles) as at:
        found = at.workspace.status(at.profiles) if profiles else at.workspace.status_of_all()
        return documents.status(found, emulated=at.workspace.is_emulated)


def memory_layout(ctx: Asked, profile: OneProfile) -> documents.Document:
    """What a deployment's chips hold, planned beside measured, and what its engines run with."""
    with session(ctx).project.opened(profile) as at:
        return documents.details(at.workspace.details(at.profile))


def output(ctx: Asked, name: Name) -> documents.Document:
    """Where a deployment answers, as the last apply published it."""
    with session(ctx).project.opened() as at:
        return documents.output(name, outputs_of(at.workspace, name))


def drift(ctx: Asked, profiles: Profiles) -> documents.Document:
    """What changed outside since the last apply, what serves included: a plan that would only write it down."""
    with session(ctx).project.opened(*profiles) as at:
        return at.workspace.plan(at.profiles, refresh_only=True, attest=True).to_dict()


def gc_list(ctx: Asked, profiles: SomeProfiles = ()) -> documents.Document:
    """What stands in the cloud under our mark and nothing needs; it is billed. Removes nothing."""
    with session(ctx).project.opened(*profiles) as at:
        return at.workspace.gc(at.profiles).to_dict()
