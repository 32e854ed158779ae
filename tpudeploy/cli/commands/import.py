"""Take a queued resource that stands in the cloud into the state; the next plan says what of it would change."""  # noqa: N999 - a keyword only where Python is written

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tpudeploy.cli import exits, options
from tpudeploy.cli.context import Context
from tpudeploy.cli.progress import teller
from tpudeploy.cli.states.words import address
from tpudeploy.domain.address import Address
from tpudeploy.domain.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from tpudeploy.domain.found import Found
    from tpudeploy.domain.state import Attempt
    from tpudeploy.loading import Profile


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("address", metavar="ADDR", help="The address in the state: NAME, or NAME[INDEX].")
    parser.add_argument("id", metavar="ID", help="projects/P/locations/Z/queuedResources/N, P/Z/N, Z/N or N")
    parser.add_argument("profile", metavar="PROFILE", nargs="?", help="the profile of NAME (default: NAME.yaml here)")
    options.overlays(parser)
    options.flag(parser, "generate", "Write PROFILE first, from the existing slice.")
    options.option(parser, "model", "With -generate: the model, if nothing on the slice says it.", metavar="ID")
    options.flag(parser, "foreign", "Import it even if it belongs to another lineage.")
    options.lock_timeout(parser)
    options.backend(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    where = _replica(address(given.address))
    given.profile = given.profile or f"{where.deployment}.yaml"
    workspace = context.workspace([given.profile], lock_timeout=given.lock_timeout)
    if given.generate:
        found = workspace.find_slice(given.id)
        workspace.check_import(where, found, foreign=given.foreign)
        _write(context.folder / given.profile, found, where, given)
        profile = _profile(where, given, context)
    else:
        profile = _profile(where, given, context)
        found = workspace.find_slice(given.id, profile)
    attempt = workspace.import_slice(where, profile, found, foreign=given.foreign, on_event=teller(context.terminal))
    _tell(given, context, found, attempt)
    return exits.SUCCESS


def _replica(of: Address) -> Address:
    return of if of.replica is not None else Address(deployment=of.deployment, replica=0)


def _profile(where: Address, given: argparse.Namespace, context: Context) -> Profile:
    """Raise `errors.ConfigError` where there is none, or it is another deployment's."""
    path: str = given.profile
    if not (context.folder / path).exists():
        raise ConfigError(
            f"There is no profile {path}, and what a slice is to be stands in one.",
            hint=f"Name it: tpudeploy import '{where}' ID PROFILE\nOr write it from what is there: -generate",
        )
    (profile,) = context.load([path], given)
    if profile.spec.name != where.deployment:
        raise ConfigError(
            f"{path} is the profile of {profile.spec.name}, not of {where.deployment}.",
            hint=f"Name {where.deployment}'s, or import to {profile.spec.name}[{where.replica}].",
        )
    return profile


def _write(path: Path, found: Found, where: Address, given: argparse.Namespace) -> None:
    """Raise `errors.UsageError` where there is a file, or nothing tells the model."""
    from tpudeploy.core.generated import profile

    text = profile(found, where, model=given.model)
    if text is None:
        raise UsageError(
            f"What {found.ref.name} serves is not known: its startup script is none of ours.",
            hint="Say it: -model google/gemma-4-E2B-it",
        )
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as cause:
        raise UsageError(f"{path} exists.", hint="Leave out -generate, or name another file.") from cause
    except OSError as cause:
        raise UsageError(f"{path} cannot be written: {cause.strerror}.") from cause


def _tell(given: argparse.Namespace, context: Context, found: Found, attempt: Attempt) -> None:
    from tpudeploy.core.outstanding import outstanding
    from tpudeploy.domain.tree import tree

    where = _replica(address(given.address))
    if given.json:
        known = {"format": "tpudeploy.import/1", "type": "import", "address": str(where), "slice": tree(attempt)}
        context.reply.set(known, on_one_line=True)
        return
    wrote = f"Wrote {given.profile}. " if given.generate else ""
    told = f"{outstanding(attempt, context.clock.now())}, {found.slice.raw_state}"
    context.terminal.data(f"{wrote}Imported to {where}: {told}.")
    if not any(path.startswith("serving.") for path in attempt.spec):
        context.terminal.data("What it serves is not known to be what the profile says: it is restarted in place.")
    context.terminal.data(f"Nothing was changed. To see what would be: tpudeploy plan {given.profile}")
