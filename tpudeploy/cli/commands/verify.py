"""Compare what the profile declares with what its servers do; exit with 13 if a declared setting is not in effect.

With --accuracy, ask questions with known answers instead; exit with 13 if quality fell.
"""

from __future__ import annotations

import argparse

from tpudeploy.cli import accuracy, operation_command
from tpudeploy.cli.context import Context
from tpudeploy.operations.verify import OPERATION


def arguments(parser: argparse.ArgumentParser) -> None:
    operation_command.add_arguments(parser, OPERATION)
    accuracy.arguments(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    accuracy.check(args)
    if args.accuracy is None:
        return operation_command.run(OPERATION, args, context)
    (profile,) = context.load([args.profile], args)
    return accuracy.run(args, context, profile)
