"""Parse the command line and run its command.

Why: decision 12 in docs/decisions.md.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import signal
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tpudeploy.cli import exits
from tpudeploy.cli.commands import COMMANDS, command
from tpudeploy.cli.options import TRUE, common, environment_value
from tpudeploy.domain.pattern import pattern

if TYPE_CHECKING:
    from tpudeploy.domain.patience import Patience
    from tpudeploy.ports import Clock

# Terraform's one-dash long options: -auto-approve, -out=FILE.
_ONE_DASH = pattern(r"-[a-z][a-z-]+(=.*)?", re.DOTALL)


class Usage(Exception):
    """Raised for a command line that cannot be parsed. argparse would exit 2, which here means "changes"."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message = f"{message[0].upper()}{message[1:]}"
        self.hint = hint


# Commands that end in seconds, however large the fleet. Others may run for hours.
_SHORT_COMMANDS = {"plan", "validate"}
_STREAM_COMMANDS = {"apply", "destroy"}  # commands whose --json is always a stream


class Parser(argparse.ArgumentParser):
    @property
    def option_names(self) -> Iterable[str]:
        """Return every option of the command, with its dashes."""
        return self._option_string_actions

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Raise argparse.ArgumentError for a value that is not one of the choices, with a suggestion."""
        if action.choices is None or value in action.choices:
            return
        from tpudeploy.cli.suggestions import did_you_mean

        choices = [str(choice) for choice in action.choices]
        suggestion = did_you_mean(str(value), choices)
        raise argparse.ArgumentError(action, f"`{value}` is not one of {', '.join(choices)}.{suggestion}")

    def error(self, message: str) -> NoReturn:
        sentence = message if message.endswith((".", "?")) else f"{message}."
        raise Usage(sentence, hint=f"Run `{self.prog} --help` for its options.")


def run() -> NoReturn:
    """Run the console script. SIGTERM ends it as Ctrl-C does: the progress is saved."""
    _open_closed_streams()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    arguments = sys.argv[1:]
    # Modules and profiles live until the end, so that a collection finds nothing. Commands that may run for hours
    # still collect, but seldom.
    if _split(arguments)[0] in _SHORT_COMMANDS:
        gc.disable()
    else:
        gc.set_threshold(50_000)
    _end(main(arguments))


def _end(code: int) -> NoReturn:
    """Exit at once: everything is printed, saved and closed, and the system frees memory faster than Python."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _open_closed_streams() -> None:
    """Open /dev/null as any closed standard stream: otherwise the next opened file would get its descriptor."""
    for name, mode in {"stdin": "r", "stdout": "w", "stderr": "w"}.items():
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open to the end


def main(arguments: Sequence[str], *, clock: Clock | None = None, patience: Patience | None = None) -> int:
    """Run one command and return its exit code. Tests pass `clock` and `patience`."""
    words = two_dashes(arguments)
    try:
        options = parse(words)
        sys.stdout.flush()
    except Usage as usage:
        return _report_usage(words, usage)
    except OSError as cause:
        return _report_write_failure(cause)
    if options is None:
        return exits.SUCCESS
    from tpudeploy.cli.error_report import run_guarded

    return run_guarded(options, clock=clock, patience=patience)


def parse(words: Sequence[str]) -> argparse.Namespace | None:
    """Return the options of one command, or None if help was printed. Raise `Usage`."""
    name, rest = _split(words)
    ours = words[: words.index("--")] if "--" in words else words
    is_help = name is None or bool({"--help", "-h"} & {*ours, *rest[:1]})
    if is_help and "--json" in ours:
        # A program that parses it would get text.
        raise Usage("Help is text and has no JSON form.", hint="Leave --json out, or see `tpudeploy schema --help`.")
    if name is None:
        _overview()
        return None
    if name not in COMMANDS:
        from tpudeploy.cli.suggestions import did_you_mean

        raise Usage(
            f"There is no command `{name}`.{did_you_mean(name, COMMANDS)}",
            hint="Run `tpudeploy --help` for all commands.",
        )
    chosen = command(name)
    parser = Parser(prog=f"tpudeploy {name}", description=chosen.__doc__, allow_abbrev=False)
    common(parser)
    chosen.arguments(parser)
    # The words after `emulator run --` are another command line, which argparse must not parse.
    end = rest.index("--") if "--" in rest and parser.get_default("argv") is not None else len(rest)
    try:
        # Options may come between the words: `state list -json gemma`.
        options, unknown = parser.parse_known_intermixed_args(rest[:end])
    except SystemExit:
        return None  # argparse printed the help
    if unknown:
        from tpudeploy.cli.suggestions import did_you_mean_option

        suggestion = did_you_mean_option(parser, rest[:end], unknown[0])
        raise Usage(
            f"`{parser.prog}` has no option `{unknown[0]}`.{suggestion}",
            hint=f"Run `{parser.prog} --help` for its options.",
        )
    if end < len(rest):
        options.argv = rest[end + 1 :]
    options.command = chosen
    return options


def _split(words: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """Return the command and the other words. `help plan` is `plan --help`; `--version` is `version`."""
    folders = {n + 1 for n, word in enumerate(words) if word == "--chdir"}
    positions = [n for n, word in enumerate(words) if n not in folders and not word.startswith("-")]
    position = positions[0] if positions else None
    before = words[:position]
    if "--version" in before:
        return "version", [word for word in words if word == "--json"]
    if position is None:
        return None, ()
    if words[position] == "help":
        return next((words[n] for n in positions[1:]), None), ("--help",)
    return words[position], [*before, *words[position + 1 :]]


def two_dashes(arguments: Sequence[str]) -> list[str]:
    """Return the words with two dashes before each long option; words after a bare `--` are unchanged."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    ours = [f"-{a}" if _ONE_DASH.fullmatch(a) else a for a in arguments[:end]]
    return [*ours, *arguments[end:]]


def _overview() -> None:
    width = max(map(len, COMMANDS))
    lines = "".join(f"  {name.ljust(width)}  {summary}\n" for name, summary in COMMANDS.items())
    sys.stdout.write(
        "Usage: tpudeploy COMMAND [OPTIONS] [PROFILE...]\n\n"
        f"vLLM on Cloud TPU, from one YAML profile.\n\nCommands:\n{lines}\n"
        "Options may be written with one dash or two. `tpudeploy COMMAND --help` shows its options.\n"
    )


def _report_write_failure(cause: OSError) -> int:
    """Return the exit code after help could not be written. Python must not report that again at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exits.SUCCESS if isinstance(cause, BrokenPipeError) else exits.ERROR


def _report_usage(words: Sequence[str], usage: Usage) -> int:
    from tpudeploy.cli.error_report import report_usage_error
    from tpudeploy.domain.errors import UsageError

    ours = words[: words.index("--")] if "--" in words else words
    as_json = "--json" in ours or environment_value("json").lower() in TRUE
    streams = _split(ours)[0] in _STREAM_COMMANDS or bool({"--watch", "--follow"} & set(ours))
    return report_usage_error(UsageError(usage.message, hint=usage.hint), as_json=as_json, streams=streams)
