"""Compare what the profile declares with what its servers do; exit with 13 if a declared setting is not in effect.

With --accuracy, ask questions with known answers instead; exit with 13 if quality fell.
"""

from __future__ import annotations

import argparse
import os

from tpudeploy.cli import operation_command
from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import UsageError
from tpudeploy.operations.accuracy import OPERATION as ACCURACY
from tpudeploy.operations.verify import OPERATION


def arguments(parser: argparse.ArgumentParser) -> None:
    operation_command.add_arguments(parser, OPERATION)
    operation_command.add_options(parser, ACCURACY)


def run(args: argparse.Namespace, context: Context) -> int:
    values = operation_command.option_values(ACCURACY, args)
    if args.questions is not None:
        (profile,) = context.load([args.profile], args)
        result = context.workspace([args.profile]).accuracy(
            profile,
            **values,
            api_key=os.environ.get("VLLM_API_KEY"),
            folder=context.folder,
            on_message=context.terminal.talk,
        )
        operation_command.show(result, context)
        return result.exit_code
    for name, value in values.items():
        if value is not None:
            option = ACCURACY.argument(name).option_name
            raise UsageError(f"--{option} needs --accuracy.", hint="Try --accuracy arithmetic.")
    return operation_command.run(OPERATION, args, context)
