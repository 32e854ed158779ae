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
from tpudeploy.cli.options import TRUE, everywhere, written

if TYPE_CHECKING:
    from tpudeploy.domain.patience import Patience
    from tpudeploy.ports import Clock

# Terraform's one-dash long options: -auto-approve, -out=FILE.
_ONE_DASH = re.compile(r"-[a-z][a-z-]+(=.*)?", re.DOTALL)


class Usage(Exception):
    """A command line that cannot be understood. argparse would exit 2, which here means "changes"."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message = f"{message[0].upper()}{message[1:]}"
        self.hint = hint


# Over in seconds, however large the fleet. Every other may wait for hours, or measure for as long.
_BRIEF = {"plan", "validate"}
_STREAMS = {"apply", "destroy"}  # whose --json is a stream, whatever else is written


class Parser(argparse.ArgumentParser):
    @property
    def option_names(self) -> Iterable[str]:
        """Every option that the command has, with its dashes."""
        return self._option_string_actions

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Raise argparse.ArgumentError for what is not one of the choices, with the one that was meant."""
        if action.choices is None or value in action.choices:
            return
        from tpudeploy.cli.suggestions import did_you_mean

        choices = [str(choice) for choice in action.choices]
        meant = did_you_mean(str(value), choices)
        raise argparse.ArgumentError(action, f"`{value}` is not one of {', '.join(choices)}.{meant}")

    def error(self, message: str) -> NoReturn:
        sentence = message if message.endswith((".", "?")) else f"{message}."
        raise Usage(sentence, hint=f"Run `{self.prog} --help` for its options.")


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
        return _refused(words, usage)
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
        from tpudeploy.cli.suggestions import did_you_mean

        raise Usage(
            f"There is no command `{name}`.{did_you_mean(name, COMMANDS)}",
            hint="Run `tpudeploy --help` for all commands.",
        )
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
        from tpudeploy.cli.suggestions import did_you_mean_option

        meant = did_you_mean_option(parser, rest[:end], unknown[0])
        raise Usage(
            f"`{parser.prog}` has no option `{unknown[0]}`.{meant}",
            hint=f"Run `{parser.prog} --help` for its options.",
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
        return "version", [word for word in words if word == "--json"]
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


def _refused(words: Sequence[str], usage: Usage) -> int:
    from tpudeploy.cli.boundary import refused
    from tpudeploy.domain.errors import UsageError

    ours = words[: words.index("--")] if "--" in words else words
    as_json = "--json" in ours or written("json").lower() in TRUE
    streams = _split(ours)[0] in _STREAMS or bool({"--watch", "--follow"} & set(ours))
    return refused(UsageError(usage.message, hint=usage.hint), as_json=as_json, streams=streams)
