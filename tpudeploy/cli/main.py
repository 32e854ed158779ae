"""Arguments → command; the one place where errors become text and an exit code."""

from __future__ import annotations

import argparse
import gc
import re
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tpudeploy.cli import exits
from tpudeploy.cli.commands import COMMANDS

if TYPE_CHECKING:
    from tpudeploy.domain.patience import Patience
    from tpudeploy.ports import Clock

# Terraform's one-dash long options: -auto-approve, -out=FILE.
_ONE_DASH = re.compile(r"-[a-z][a-z-]+(=.*)?", re.DOTALL)


class Usage(Exception):
    """A command line that cannot be understood. argparse would exit 2, which here means "changes"."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Usage(f"{message}\n{self.format_usage().strip()}")


def run() -> NoReturn:
    """The console script. SIGTERM ends it as Ctrl-C does: saved, and said so."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # What start-up imports stays: collections would only look at it again and again.
    gc.set_threshold(50_000)
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str], *, clock: Clock | None = None, patience: Patience | None = None) -> int:
    """One command, start to end; its exit code. `clock` and `patience` are handed in by tests."""
    words = two_dashes(arguments)
    try:
        options = parse(words)
    except Usage as usage:
        sys.stderr.write(f"Error: {usage}\n")
        return exits.ERROR
    if options is None:
        return exits.SUCCESS
    from tpudeploy.cli.boundary import guarded

    return guarded(options, clock=clock, patience=patience)


def parse(words: Sequence[str]) -> argparse.Namespace | None:
    """The options of one command, or None where help was asked for and given. Raise `Usage`."""
    name = next((w for w in words if not w.startswith("-")), None)
    if name is None or (words and words[0] in {"-h", "--help", "help"}):
        _overview()
        return None
    if name not in COMMANDS:
        raise Usage(f"there is no command `{name}`.{_meant(name)}\nRun `tpudeploy --help` for those there are.")
    at = list(words).index(name)
    command = import_module(f"tpudeploy.cli.commands.{name}")
    parser = Parser(prog=f"tpudeploy {name}", description=command.__doc__, allow_abbrev=False)
    parser.add_argument("--chdir", metavar="DIR", type=Path, default=Path(), help="work in this folder")
    parser.add_argument("--no-color", action="store_true", help="plain text (NO_COLOR does the same)")
    command.arguments(parser)
    try:
        options = parser.parse_args([*words[:at], *words[at + 1 :]])
    except SystemExit:
        return None  # argparse printed the help
    options.command = command
    return options


def two_dashes(arguments: Sequence[str]) -> list[str]:
    """`-auto-approve` as `--auto-approve`; what follows a bare `--` is somebody else's."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    ours = [f"-{a}" if _ONE_DASH.fullmatch(a) else a for a in arguments[:end]]
    return [*ours, *arguments[end:]]


def _overview() -> None:
    width = max(map(len, COMMANDS))
    lines = "".join(f"  {name.ljust(width)}  {summary}\n" for name, summary in COMMANDS.items())
    sys.stdout.write(
        "Usage: tpudeploy COMMAND [OPTIONS] [PROFILE...]\n\n"
        f"vLLM on Cloud TPU, from one YAML profile.\n\nCommands:\n{lines}\n"
        "Options may be written with one dash or two. `tpudeploy COMMAND --help` tells more.\n"
    )


def _meant(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, n=1)
    return f" Did you mean `{near[0]}`?" if near else ""
