"""Compile a profile's graphs for its slice without a chip: the room that its programs need, or libtpu's refusal.

The engine's own precompile loop runs in an environment that has vllm-tpu (--python), for chips that are absent. A
bucket takes minutes on two cores. The result is a file that grows with each graph: the same command continues it, with
a backend in a bucket on any computer. `tpudeploy size --compiled FILE` takes the program room from it.
"""

from __future__ import annotations

import argparse

from tpudeploy.cli.context import Context
from tpudeploy.cli.operation_command import add_arguments, prepare, show
from tpudeploy.features.compile.operation import OPERATION


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, OPERATION)


def run(args: argparse.Namespace, context: Context) -> int:
    call = prepare(OPERATION, args, context)
    result = call.opened.compile(**call.values, on_message=context.terminal.talk)
    show(result, context)
    return result.exit_code
