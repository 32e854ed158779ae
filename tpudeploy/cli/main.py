"""Arguments → command; the one place where errors become text and an exit code."""

from __future__ import annotations

import argparse
import gc
import os
import re
import signal
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tpudeploy.cli import exits
from tpudeploy.cli.commands import COMMANDS
from tpudeploy.cli.options import everywhere

if TYPE_CHECKING:
    from tpudeploy.domain.patience import Patience
    from tpudeploy.ports import Clock

# Terraform's one-dash long options: -auto-approve, -out=FILE.
_ONE_DASH = re.compile(r"-[a-z][a-z-]+(=.*)?", re.DOTALL)


class Usage(Exception):
    """A command line that cannot be understood. argparse would exit 2, which here means "changes"."""


# Over in seconds, however large the fleet. Every other may wait for hours, or measure for as long.
_BRIEF = {"plan", "validate"}


class Parser(argparse.ArgumentParser):
    @property
    def known(self) -> Iterable[str]:
        """Every option there is."""
        return self._option_string_actions

    def error(self, message: str) -> NoReturn:
        raise Usage(f"{message}.\n  Run `{self.prog} --help` for what it takes.")


def run() -> NoReturn:
    """The console script. SIGTERM ends it as Ctrl-C does: saved, and said so."""
    _open_what_is_closed()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    arguments = sys.argv[1:]
    # What start-up imports and profiles hold stays: a collection only looks at it again and again. Who may last
    # collects, but seldom.
    if _split(arguments)[0] in _BRIEF:
        gc.disable()
    else:
        gc.set_threshold(50_000)
    _end(main(arguments))


def _end(code: int) -> NoReturn:
    """At once: all is said, saved and closed, and the system takes memory back sooner than Python frees it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _open_what_is_closed() -> None:
    """A closed stdin, stdout or stderr is /dev/null: else the next file that is opened would stand in its place."""
    for name, mode in {"stdin": "r", "stdout": "w", "stderr": "w"}.items():
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open to the end


def main(arguments: Sequence[str], *, clock: Clock | None = None, patience: Patience | None = None) -> int:
    """One command, start to end; its exit code. `clock` and `patience` are handed in by tests."""
    words = two_dashes(arguments)
    try:
        options = parse(words)
        sys.stdout.flush()
    except Usage as usage:
        sys.stderr.write(f"Error: {str(usage)[0].upper()}{str(usage)[1:]}\n")
        return exits.ERROR
    except OSError as cause:
        return _unheard(cause)
    if options is None:
        return exits.SUCCESS
    from tpudeploy.cli.boundary import guarded

    return guarded(options, clock=clock, patience=patience)


def parse(words: Sequence[str]) -> argparse.Namespace | None:
    """The options of one command, or None where help was asked for and given. Raise `Usage`."""
    name, rest = _split(words)
    if name is None:
        _overview()
        return None
    if name not in COMMANDS:
        raise Usage(f"There is no command `{name}`.{_meant(name, COMMANDS)}\n  Run `tpudeploy --help` for all of them.")
    command = import_module(f"tpudeploy.cli.commands.{name.replace('-', '_')}")
    parser = Parser(prog=f"tpudeploy {name}", description=command.__doc__, allow_abbrev=False)
    everywhere(parser)
    command.arguments(parser)
    # What follows `emulator run --` is somebody else's command line: argparse never sees it.
    end = rest.index("--") if "--" in rest and parser.get_default("argv") is not None else len(rest)
    try:
        # Options may stand between the words: `state list -json gemma`.
        options, unknown = parser.parse_known_intermixed_args(rest[:end])
    except SystemExit:
        return None  # argparse printed the help
    if unknown:
        raise Usage(
            f"`{parser.prog}` knows no `{unknown[0]}`.{_meant(unknown[0], parser.known)}\n"
            f"  Run `{parser.prog} --help` for what it takes."
        )
    if end < len(rest):
        options.argv = rest[end + 1 :]
    options.command = command
    return options


def _split(words: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """The command, and what else was written. `help plan` is `plan --help`; `--version` is `version`."""
    folders = {n + 1 for n, word in enumerate(words) if word == "--chdir"}
    named = [n for n, word in enumerate(words) if n not in folders and not word.startswith("-")]
    at = named[0] if named else None
    before = words[:at]
    if "--version" in before:
        return "version", ()
    if at is None:
        return None, ()
    if words[at] == "help":
        return next((words[n] for n in named[1:]), None), ("--help",)
    return words[at], [*before, *words[at + 1 :]]


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


def _unheard(cause: OSError) -> int:
    """Help that nobody reads any more, or that there is no room for. Python must not say so again at its own exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exits.SUCCESS if isinstance(cause, BrokenPipeError) else exits.ERROR


def _meant(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), n=1)
    return f" Did you mean `{near[0]}`?" if near else ""
