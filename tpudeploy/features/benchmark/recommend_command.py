"""What only the command line has of `recommend`: the operating points of a run, and several models at once."""

from __future__ import annotations

import argparse

from tpudeploy.cli import options
from tpudeploy.cli.context import Context
from tpudeploy.cli.operation_command import add_arguments, option_values, prepare, show
from tpudeploy.domain.errors import UsageError
from tpudeploy.features.benchmark.recommend_models_operation import OPERATION, profile_of_model
from tpudeploy.features.benchmark.recommend_operation import OPERATION as OF_ONE
from tpudeploy.features.benchmark.recommend_operation import Recommended

_REQUIRED = ("users", "context", "output")


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, OPERATION)
    options.option(parser, "run", "Show the operating points of this run instead.", metavar="ID")


def run(args: argparse.Namespace, context: Context) -> int:
    count = len(args.profiles) + len(args.models)
    if args.run is not None and count:
        raise UsageError(
            "`--run` shows the operating points of a run, which has its model.", hint="Leave the others out."
        )
    if args.run is not None:
        points = context.workspace().operating_points(args.run)
        show(points, context)
        return points.exit_code
    if not count or any(getattr(args, name) is None for name in _REQUIRED):
        raise UsageError(
            "`recommend` needs a profile or a model, and a workload.",
            hint="tpudeploy recommend PROFILE --users 64 --context 4096 --output 256, or recommend --run ID.",
        )
    if args.overlays and not args.profiles:
        raise UsageError("`--file` merges an overlay on a profile, and none is named.", hint="Leave it out.")
    return _recommend_one(args, context) if count == 1 else _recommend_models(args, context)


def _recommend_one(args: argparse.Namespace, context: Context) -> int:
    """Print the choices for one model, and the profile for the best."""
    if args.profiles:
        profile, workspace = context.load(args.profiles, args)[0], context.workspace(args.profiles)
    else:
        profile, workspace = profile_of_model(args.models[0], args.sets), context.workspace()
    result: Recommended = workspace.recommend(profile, **option_values(OF_ONE, args))
    if not args.json:
        context.terminal.explain(result.messages(context.terminal.paint))
    show(result, context, with_messages=False)
    return result.exit_code


def _recommend_models(args: argparse.Namespace, context: Context) -> int:
    """Print a table of models. The values of `--set` are those of all of them."""
    drafts = [profile_of_model(each, args.sets) for each in dict.fromkeys(args.models)]
    call = prepare(OPERATION, args, context)
    profiles = (*call.values.pop("profiles"), *drafts)
    result = call.opened.recommend_models(**{**call.values, "models": ()}, profiles=profiles)
    show(result, context)
    return result.exit_code
