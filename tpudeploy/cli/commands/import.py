"""What only the command line has of `import`: the profile that is written from the slice."""  # noqa: N999 - a keyword only where Python is written

from __future__ import annotations

import argparse
from pathlib import Path

from tpudeploy.adapters.state.disk import Folder
from tpudeploy.cli import options
from tpudeploy.cli.context import Context
from tpudeploy.cli.operation_command import add_argument
from tpudeploy.cli.progress import event_printer
from tpudeploy.domain import exits
from tpudeploy.domain.errors import ConfigError, UsageError
from tpudeploy.domain.names import Address
from tpudeploy.domain.orphans import CloudResource
from tpudeploy.loading import Profile
from tpudeploy.operations.import_slice import OPERATION, check_import, find_slice, replica_address
from tpudeploy.planning.readback import write_profile


def arguments(parser: argparse.ArgumentParser) -> None:
    for name in ("address", "id"):
        add_argument(parser, OPERATION.argument(name))
    parser.add_argument(
        "profile", metavar="PROFILE", nargs="?", help="The profile of NAME (default: NAME.yaml in this folder)."
    )
    options.overlays(parser)
    options.flag(parser, "generate", "Write PROFILE first, from the existing slice.")
    options.option(parser, "model", "With -generate: the model, if the slice does not name it.", metavar="ID")
    add_argument(parser, OPERATION.argument("foreign"))
    options.lock_timeout(parser)
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    where = replica_address(args.address)
    args.profile = args.profile or f"{where.deployment}.yaml"
    workspace = context.workspace([args.profile], lock_timeout=args.lock_timeout)
    resource = None
    if args.generate:
        resource = find_slice(workspace, args.id)
        check_import(workspace, where, resource, foreign=args.foreign)
        _write(context.folder / args.profile, resource, where, args, context)
    result = workspace.import_slice(
        args.address,
        args.id,
        _profile(where, args, context),
        foreign=args.foreign,
        resource=resource,
        on_event=event_printer(context.terminal),
    )
    if args.json:
        context.reply.set(result.to_dict(), on_one_line=result.ON_ONE_LINE)
        return exits.SUCCESS
    file_note = f"Wrote {args.profile}. " if args.generate else ""
    context.terminal.data(f"{file_note}{result}")
    context.terminal.data(f"Nothing was changed. To see what would change: tpudeploy plan {args.profile}")
    return exits.SUCCESS


def _profile(where: Address, args: argparse.Namespace, context: Context) -> Profile:
    """Return the profile. Raise `errors.ConfigError` if it does not exist or belongs to another deployment."""
    path: str = args.profile
    if not (context.folder / path).exists():
        raise ConfigError(
            f"There is no profile {path}, and an import needs the deployment's profile.",
            hint=f"Name it: tpudeploy import '{where}' ID PROFILE\nOr generate it from the slice: -generate",
        )
    (profile,) = context.load([path], args)
    if profile.name != where.deployment:
        raise ConfigError(
            f"{path} is the profile of {profile.name}, not of {where.deployment}.",
            hint=f"Name {where.deployment}'s, or import to {profile.name}[{where.replica}].",
        )
    return profile


def _write(path: Path, resource: CloudResource, where: Address, args: argparse.Namespace, context: Context) -> None:
    """Write the profile of a slice. Raise `errors.UsageError` if the file exists or the model is unknown."""
    text = write_profile(resource, where, model=args.model)
    if text is None:
        raise UsageError(
            f"The model of {resource.ref.name} is unknown: tpudeploy did not write its startup script.",
            hint="Name the model: -model google/gemma-4-E2B-it",
        )
    try:
        is_new = Folder.for_file(path, here=context.folder).create(path.name, text)
    except OSError as cause:
        raise UsageError(f"{path} cannot be written: {cause.strerror}.") from cause
    if not is_new:
        raise UsageError(f"{path} exists.", hint="Leave out -generate, or name another file.")
