"""What only the command line has of `recommend`: the operating points of a run instead."""

from __future__ import annotations

import argparse

from tpudeploy.cli import options
from tpudeploy.cli.context import Context
from tpudeploy.cli.operation_command import add_arguments, prepare, show
from tpudeploy.domain.errors import UsageError
from tpudeploy.features.benchmark.recommend_operation import OPERATION

_REQUIRED = ("profile", "users", "context", "output")


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, OPERATION)
    options.option(parser, "run", "Show the operating points of this run instead.", metavar="ID")


def run(args: argparse.Namespace, context: Context) -> int:
    if args.run is not None:
        points = context.workspace().operating_points(args.run)
        show(points, context)
        return points.exit_code
    if any(getattr(args, name) is None for name in _REQUIRED):
        raise UsageError(
            "`recommend` needs a profile and a workload.",
            hint="tpudeploy recommend PROFILE --users 64 --context 4096 --output 256, or recommend --run ID.",
        )
    call = prepare(OPERATION, args, context)
    result = call.opened.recommend(**call.values)
    messages = result.messages(context.terminal.paint)
    if not args.json:
        context.terminal.explain(messages)
    show(result, context, with_messages=False)
    return result.exit_code
