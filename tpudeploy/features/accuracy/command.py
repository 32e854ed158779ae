"""With --accuracy, ask questions with known answers instead; exit with 13 if quality fell."""

from __future__ import annotations

import argparse
import os

from tpudeploy.cli import operation_command
from tpudeploy.cli.context import Context
from tpudeploy.domain.deployment import API_KEY
from tpudeploy.domain.errors import UsageError
from tpudeploy.features.accuracy.operation import OPERATION


def arguments(parser: argparse.ArgumentParser) -> None:
    operation_command.add_options(parser, OPERATION)


def run(args: argparse.Namespace, context: Context) -> int | None:
    values = operation_command.option_values(OPERATION, args)
    if args.questions is not None:
        (profile,) = context.load([args.profile], args)
        result = context.workspace([args.profile]).accuracy(
            profile,
            **values,
            api_key=os.environ.get(API_KEY),
            folder=context.folder,
            on_message=context.terminal.talk,
        )
        operation_command.show(result, context)
        return result.exit_code
    for name, value in values.items():
        if value is not None:
            option = OPERATION.argument(name).option
            raise UsageError(f"--{option} needs --accuracy.", hint="Try --accuracy arithmetic.")
    return None
