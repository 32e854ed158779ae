"""Run a local Cloud TPU, until Ctrl-C or while one command runs."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tpudeploy.cli import documents, options
from tpudeploy.cli.context import Context
from tpudeploy.domain import exits
from tpudeploy.domain.errors import UsageError
from tpudeploy.operations import argument_types

if TYPE_CHECKING:
    from tpudeploy.emulator import Emulator


VERBS: Mapping[str, str] = {
    "start": "Run until Ctrl-C, and print the variables that send every Google call there.",
    "run": "Run while one command runs, whose Google calls go there: emulator run -- COMMAND.",
}
NEEDS_VERB = True


def arguments(_parser: argparse.ArgumentParser) -> None:
    """Add nothing: each verb has its own arguments."""


def verb_arguments(parser: argparse.ArgumentParser, verb: str) -> None:
    options.option(parser, "scenario", "A file of scripted faults.", type=Path, metavar="FILE")
    if verb == "start":
        options.option(parser, "port", "The port to listen on.", type=argument_types.port)
    else:
        parser.set_defaults(argv=[])  # what follows a bare `--`
        parser.usage = "%(prog)s [OPTIONS] -- COMMAND"
    options.option(
        parser,
        "engine",
        "Run a real engine instead of the stand-in: the command line of a vLLM built for CPUs.",
        type=_engine,
        default=(),
        metavar="CMD",
    )
    options.option(parser, "speed", "Run its time this many times faster.", type=argument_types.speed, default=1.0)


def run(args: argparse.Namespace, context: Context) -> int:
    from tpudeploy.emulator import process

    scenario = None if args.scenario is None else context.folder / args.scenario
    if args.verb == "run":
        if not args.argv:
            raise UsageError(
                "`emulator run` needs a command.", hint="tpudeploy emulator run -- tpudeploy apply my.yaml"
            )
        pace = "" if args.speed == 1 else f" Its clock runs {args.speed:g} times as fast."
        context.terminal.talk(f"On a local emulator: no Google account, no chip, no bill.{pace}")
        return process.run(args.argv, scenario=scenario, speed=args.speed, engine=args.engine)

    def ready(emulator: Emulator) -> None:
        context.terminal.talk("The emulator is ready. In another terminal:")
        if args.json:  # at once, because the reader waits for it
            context.terminal.document(documents.text(documents.emulator(emulator.environment)))
        for name, value in emulator.environment.items():
            context.terminal.verbatim(f"export {name}={value}")
        context.terminal.talk("Ctrl-C stops it and every machine on it.")

    port = args.port if args.port is not None else process.DEFAULT_PORT
    process.serve(on_ready=ready, port=port, scenario=scenario, speed=args.speed, engine=args.engine)
    return exits.SUCCESS


def _engine(text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as cause:
        raise argparse.ArgumentTypeError(f"`{text}` is not a command: {cause}") from cause
    if not words:
        raise argparse.ArgumentTypeError("it is empty; write the command of a vLLM, e.g. vllm")
    return words
