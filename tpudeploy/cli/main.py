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
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tpudeploy.cli.commands import COMMANDS, GROUPS, command
from tpudeploy.cli.options import TRUE, environment_value
from tpudeploy.cli.parsers import Parser, first_argument, help_text, needs_verb, parser_of, split_verb, verbs_of
from tpudeploy.cli.usage import Usage
from tpudeploy.cli.verbs import advice
from tpudeploy.domain import exits
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.patience import Patience

if TYPE_CHECKING:
    from tpudeploy.ports import Clock

# Terraform's one-dash long options: -auto-approve, -out=FILE.
_ONE_DASH = re.compile(r"-[a-z][a-z-]+(=.*)?", re.DOTALL)


# Commands that end in seconds, however large the fleet. Others may run for hours.
_SHORT_COMMANDS = {"plan", "validate"}
_STREAM_COMMANDS = {"apply", "destroy"}  # commands whose --json is always a stream


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
    if is_help and _wants_json(ours):
        # A program that parses it would get text.
        raise Usage("Help is text and has no JSON form.", hint="Leave --json out, or see `tpudeploy schema --help`.")
    if name is None:
        _overview()
        return None
    if name not in COMMANDS:
        from tpudeploy.cli.suggestions import did_you_mean_command

        is_file = name.endswith((".yaml", ".yml"))
        raise Usage(
            f"There is no command `{name}`.{did_you_mean_command(name, COMMANDS)}",
            hint=f"A command comes first: `tpudeploy plan {name}`."
            if is_file
            else "Run `tpudeploy --help` for all commands.",
        )
    verb, others = split_verb(name, rest)
    if is_help:
        sys.stdout.write(help_text(name, verb))
        return None
    if not verb:
        _check_verb(name, rest)
    parser = parser_of(name, verb)
    options = _parse(parser, others, name)
    options.command, options.command_name, options.verb = command(name), name, verb
    return options


def _parse(parser: Parser, words: Sequence[str], name: str) -> argparse.Namespace:
    # The words after `emulator run --` are another command line, which argparse must not parse.
    end = words.index("--") if "--" in words and parser.get_default("argv") is not None else len(words)
    # Options may come between the words: `state list -json gemma`.
    try:
        options, unknown = parser.parse_known_intermixed_args(words[:end])
    except Usage as error:
        from tpudeploy.cli.suggestions import about_overlay

        raise Usage(f"{error.message}{about_overlay(words[:end], name)}", hint=error.hint) from error
    if unknown:
        raise _unknown(parser, words[:end], unknown[0], name)
    if end < len(words):
        options.argv = words[end + 1 :]
    return options


def _unknown(parser: Parser, words: Sequence[str], word: str, name: str) -> Usage:
    """Return the error for an option or an argument that a command does not have."""
    from tpudeploy.cli.suggestions import did_you_mean_option

    hint = f"Run `{parser.prog} --help` for its options."
    if word.startswith("-"):
        suggestion = did_you_mean_option(parser, words, word)
        return Usage(f"`{parser.prog}` has no option `{word}`.{suggestion}", hint=hint)
    position = first_argument(name, words)
    first = "" if position is None else words[position]
    sentence = advice(first, name)
    if sentence:  # `logs tail PROFILE`: the first word is a verb of another tool
        return Usage(f"`{parser.prog}` has no verb `{first}`. {sentence}", hint=hint)
    return Usage(f"`{parser.prog}` takes no argument `{word}`.", hint=hint)


def _check_verb(name: str, words: Sequence[str]) -> None:
    """Raise `Usage` for a command that needs a verb and has none, or has another tool's where it takes a profile."""
    chosen = command(name)
    position = first_argument(name, words)
    word = "" if position is None else words[position]
    if not needs_verb(chosen):
        sentence = advice(word, name)
        if sentence and _takes_profile(name) and not _folder(words).joinpath(word).exists():
            hint = f"Run `tpudeploy {name} --help` for its options."
            raise Usage(f"There is no profile `{word}`. {sentence}", hint=hint)
        return
    from tpudeploy.cli.suggestions import did_you_mean_command

    table = verbs_of(chosen)
    if not word:
        raise Usage(f"`tpudeploy {name}` needs a verb.", hint=f"There are: {', '.join(table)}.")
    suggestion = did_you_mean_command(word, table, name)
    hint = f"Run `tpudeploy {name} --help` for its verbs." if suggestion else f"There are: {', '.join(table)}."
    raise Usage(f"`tpudeploy {name}` has no verb `{word}`.{suggestion}", hint=hint)


def _takes_profile(name: str) -> bool:
    """Return whether the first argument of a command is a file, and not the name of a deployment."""
    arguments = parser_of(name).positionals
    return bool(arguments) and arguments[0].metavar == "PROFILE"


def _folder(words: Sequence[str]) -> Path:
    """Return the folder in which a command runs."""
    return Path(words[words.index("--chdir") + 1] if "--chdir" in words[:-1] else ".")


def _wants_json(words: Sequence[str]) -> bool:
    return "--json" in words or environment_value("json").lower() in TRUE


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
        topics = [words[n] for n in positions[1:]]
        return (topics[0], ("--help", *topics[1:])) if topics else (None, ())
    return words[position], [*before, *words[position + 1 :]]


def two_dashes(arguments: Sequence[str]) -> list[str]:
    """Return the words with two dashes before each long option; words after a bare `--` are unchanged."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    ours = [f"-{a}" if _ONE_DASH.fullmatch(a) else a for a in arguments[:end]]
    return [*ours, *arguments[end:]]


def _overview() -> None:
    """Print all commands in their groups, each summary wrapped beside its command."""
    columns = max(_terminal_columns() - 2, 40)
    indent = max(map(len, COMMANDS)) + 4
    lines = ["Usage: tpudeploy COMMAND [OPTIONS] [PROFILE...]", "", "vLLM on Cloud TPU, from one YAML profile."]
    for title, names in GROUPS.items():
        lines += ["", f"{title}:"]
        for name in names:
            lines += _wrapped(f"  {name}".ljust(indent), COMMANDS[name], columns)
    end = (
        "Options may be written with one dash or two. `tpudeploy COMMAND --help` shows its options, and "
        "`tpudeploy completion --help` how your shell completes them."
    )
    sys.stdout.write("\n".join([*lines, "", *_wrapped("", end, columns), ""]))


def _terminal_columns() -> int:
    """Return what `shutil.get_terminal_size` does, without the import of compression libraries."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _wrapped(first: str, text: str, columns: int) -> list[str]:
    """Return the text after `first`, in lines of at most `columns`, the others indented as far."""
    indent, lines, line = " " * len(first), list[str](), first
    for word in text.split():
        gap = " " if line.strip() and line not in {first, indent} else ""
        if gap and len(f"{line}{gap}{word}") > columns:
            lines.append(line)
            line, gap = indent, ""
        line += f"{gap}{word}"
    return [*lines, line]


def _report_write_failure(cause: OSError) -> int:
    """Return the exit code after help could not be written. Python must not report that again at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exits.SUCCESS if isinstance(cause, BrokenPipeError) else exits.ERROR


def _report_usage(words: Sequence[str], usage: Usage) -> int:
    from tpudeploy.cli.error_report import report_usage_error

    ours = words[: words.index("--")] if "--" in words else words
    as_json = _wants_json(ours)
    streams = _split(ours)[0] in _STREAM_COMMANDS or bool({"--watch", "--follow"} & set(ours))
    return report_usage_error(UsageError(usage.message, hint=usage.hint), as_json=as_json, streams=streams)
