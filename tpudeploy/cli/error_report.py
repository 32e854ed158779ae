"""Turn errors into text and exit codes: an expected error (its own code), an interrupt (130), a bug (70)."""

from __future__ import annotations

import argparse
import platform
import tempfile
import traceback
from contextlib import ExitStack
from pathlib import Path

from tpudeploy.adapters.project import absolute
from tpudeploy.adapters.system_clock import SystemClock
from tpudeploy.cli.context import Context
from tpudeploy.cli.terminal import Terminal
from tpudeploy.config.tokens import masked
from tpudeploy.config.trust import Trust
from tpudeploy.domain import errors
from tpudeploy.domain.excerpt import describe_diagnostics, describe_error
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.together import PARALLELISM
from tpudeploy.operations import OPERATIONS, operation
from tpudeploy.operations.declaration import Access
from tpudeploy.ports import Clock
from tpudeploy.version import VERSION
from tpudeploy.views import jsonl
from tpudeploy.views.jsonl import first

# The commands that may have requested something when they are interrupted.
_REQUESTING = frozenset({"ab", "apply", "ci", "destroy", "emulator", "mcp", "rehearse"})


def run_guarded(options: argparse.Namespace, *, clock: Clock | None, patience: Patience | None) -> int:
    """Run the command and return its exit code. Errors are printed on stderr, and with --json as a document too."""
    terminal = Terminal.of_process(no_color=options.no_color, as_json=options.json)
    streams = options.json and is_stream(options)
    try:
        with ExitStack() as at_exit:
            context = Context(
                terminal=terminal,
                clock=clock if clock is not None else SystemClock(),
                patience=patience,
                folder=options.chdir,
                backend=getattr(options, "backend", None),
                parallelism=getattr(options, "parallelism", PARALLELISM),
                at_exit=at_exit,
                trust=Trust(
                    is_trusted=not getattr(options, "untrusted", False),
                    allowed=frozenset(getattr(options, "allow_env", ())),
                ),
            )
            if streams:
                terminal.document(_first_line())
            if hasattr(options, "profiles"):
                options.profiles = context.expand_folders(options.profiles)
            code: int = options.command.run(options, context)
            if options.json and context.reply.text:
                terminal.document(context.reply.text)
    except errors.TpudeployError as error:
        if error.guess and _only_looks(options):
            error.hint = f"{error.guess}\n{error.hint}"
        return _report_stop(terminal, error, streams=streams)
    except KeyboardInterrupt:
        stop = interrupted() if options.command_name in _REQUESTING else errors.Interrupted("Interrupted.")
        return _report_stop(terminal, stop, streams=streams)
    except Exception:  # noqa: BLE001 - the boundary: any other exception is a bug of ours, and is reported as one
        return _report_stop(terminal, _deleted_folder() or bug(), streams=streams)
    return code


def _only_looks(options: argparse.Namespace) -> bool:
    """Return whether a command neither ends nor buys nor changes anything: a guess by spelling can do no harm there."""
    name = "_".join(filter(None, (options.command_name, options.verb))).replace("-", "_")
    row = operation(name) if name in OPERATIONS else None
    return row is not None and row.approval is None and row.access in {Access.OFFLINE, Access.LOOK, Access.LOAD}


def is_stream(options: argparse.Namespace) -> bool:
    """Return whether --json prints one line per event instead of one document, because the run may take hours."""
    return any(getattr(options, name, False) for name in ("streams", "watch", "follow"))


def report_usage_error(error: errors.UsageError, *, as_json: bool, streams: bool) -> int:
    """Report a command line that cannot be parsed, and return the exit code."""
    terminal = Terminal.of_process(no_color=False, as_json=as_json)
    terminal.explain("\n".join([f"Error: {error.message}", *(f"  {line}" for line in error.hint.splitlines())]))
    if as_json:
        _print_document(terminal, error, streams=streams, is_first=True)
    return error.exit_code


def _first_line() -> str:
    return first()


def _report_stop(terminal: Terminal, error: errors.TpudeployError, *, streams: bool) -> int:
    """Print the error, with --json also as the document or as the last line of the stream; return its exit code."""
    if terminal.as_json and not isinstance(error, errors.OutputFailed):
        _print_document(terminal, error, streams=streams)
    report_error(terminal, error)
    return error.exit_code


def _print_document(terminal: Terminal, error: errors.TpudeployError, *, streams: bool, is_first: bool = False) -> None:
    try:
        if streams and is_first:
            terminal.document(jsonl.first())
        terminal.document(jsonl.error(error) if streams else jsonl.error_document(error))
    except errors.OutputFailed:
        pass  # the error itself matters more, and is on stderr


def report_error(terminal: Terminal, error: errors.TpudeployError) -> None:
    """Print an error: what happened, why, and what to do. Diagnostics show their lines of YAML."""
    paint = terminal.paint.styled
    if isinstance(error, errors.ConfigError) and error.diagnostics:
        terminal.explain(describe_diagnostics(error.diagnostics, paint))
    else:
        terminal.explain(describe_error(error.message, error.code, error.hint, paint))


def interrupted() -> errors.Interrupted:
    return errors.Interrupted(
        "Interrupted. Work in progress is saved.",
        hint="Run the same command again to continue, or `tpudeploy destroy` to delete everything.",
    )


def _deleted_folder() -> errors.UsageError | None:
    """Return the error for a working directory that was deleted, which no path can be resolved from, or None."""
    try:
        absolute(Path())
    except errors.UsageError as error:
        return error
    return None


def bug() -> errors.Bug:
    """Return the exception that is being handled as `errors.Bug`, with a report in a file."""
    with tempfile.NamedTemporaryFile("w", prefix="tpudeploy-bug-", suffix=".txt", delete=False) as file:
        file.write(f"tpudeploy {VERSION}, Python {platform.python_version()}, {platform.platform()}\n\n")
        file.write(masked(traceback.format_exc()))
    last = masked(traceback.format_exc()).strip().splitlines()[-1]
    return errors.Bug(
        f"this is a bug in tpudeploy: {last}",
        hint="The state is saved after each step, so running the command again is safe.\n"
        f"Please report it with {Path(file.name)}",
    )
