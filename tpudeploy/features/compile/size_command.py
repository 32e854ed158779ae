"""With --engine, ask the engine itself (minutes, any model that it supports); with --compiled, use compiled programs.

Both need no chip: `tpudeploy compile` says more.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tpudeploy.cli import options
from tpudeploy.cli.context import Context
from tpudeploy.cli.operation_command import show
from tpudeploy.domain.errors import UsageError
from tpudeploy.features.compile.compiled import Compiled
from tpudeploy.features.compile.operation import RECORDS
from tpudeploy.features.compile.sizing import size_with
from tpudeploy.features.compile.store import CompiledStore

_MINUTES = 1_800.0


def arguments(parser: argparse.ArgumentParser) -> None:
    options.flag(parser, "engine", "Let the engine itself size the model, in the environment of --python.")
    options.option(parser, "python", "The Python of an environment with vllm-tpu.", metavar="PATH", default="")
    options.option(parser, "compiled", "Take the program room from this file.", metavar="FILE", type=Path)


def run(args: argparse.Namespace, context: Context) -> int | None:
    if not args.engine and args.compiled is None:
        if args.python:
            raise UsageError("--python needs --engine.", hint="Add --engine.")
        return None

    if args.engine and not args.python:
        raise UsageError("--engine needs --python PATH, a Python that has vllm-tpu.")
    (profile,) = context.load([args.profile], args)
    compiled = None if args.compiled is None else _read(args, context)
    adapters = context.workspace([args.profile]).adapters
    result = size_with(
        profile,
        pins=adapters.pins.read(),
        boots=adapters.boots.read(),
        python=args.python if args.engine else "",
        compiled=compiled,
        seconds=_MINUTES,
    )
    show(result, context)
    return result.exit_code


def _read(args: argparse.Namespace, context: Context) -> Compiled:
    shared = context.workspace([args.profile]).adapters.shared_records(RECORDS)
    return CompiledStore(context.folder, shared).read(context.folder / args.compiled)
