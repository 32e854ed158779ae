"""The error boundary: told you so (its own code), interrupted (130), a bug of ours (70, with a report to paste)."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tpudeploy.adapters.system_clock import SystemClock
from tpudeploy.cli import exits
from tpudeploy.cli.context import Context
from tpudeploy.cli.terminal import Terminal
from tpudeploy.domain import errors
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.together import PARALLELISM
from tpudeploy.version import VERSION
from tpudeploy.views.words import plain

if TYPE_CHECKING:
    from tpudeploy.ports import Clock


def guarded(options: argparse.Namespace, *, clock: Clock | None, patience: Patience | None) -> int:
    """Run the command; whatever it raises becomes text on stderr and an exit code."""
    terminal = Terminal.of_process(no_color=options.no_color)
    streams: bool = getattr(options, "streams", False) and options.json
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
            )
            if streams:
                terminal.data(_first_line())
            if hasattr(options, "profiles"):
                options.profiles = context.written_out(options.profiles)
            code: int = options.command.run(options, context)
    except errors.TpudeployError as error:
        return _stopped(terminal, error, streams=streams)
    except KeyboardInterrupt:
        return _stopped(terminal, interrupted(), streams=streams)
    except Exception:  # noqa: BLE001 - the boundary: whatever comes here is our bug, and is reported as one
        terminal.talk(bug())
        return exits.BUG
    return code


def _first_line() -> str:
    from tpudeploy.views.jsonl import first

    return first()


def _stopped(terminal: Terminal, error: errors.TpudeployError, *, streams: bool) -> int:
    """Said to the person, and last in the stream; its exit code."""
    if streams and not isinstance(error, errors.OutputFailed):
        from tpudeploy.views import jsonl

        terminal.data(jsonl.error(error))
    report(terminal, error)
    return error.exit_code


def report(terminal: Terminal, error: errors.TpudeployError) -> None:
    """What, why, what to do. Diagnostics show their lines."""
    paint = terminal.paint
    if isinstance(error, errors.ConfigError) and error.diagnostics:
        from tpudeploy.views.excerpt import diagnostics

        terminal.talk(diagnostics(error.diagnostics, paint))
        return
    terminal.talk(f"{paint.red('Error')}: {plain(error.message)} {paint.dim(f'[{error.code}]')}")
    for line in error.hint.splitlines():
        terminal.talk(f"  {plain(line)}")


def interrupted() -> errors.Interrupted:
    return errors.Interrupted(
        "Interrupted. What was begun is saved.",
        hint="Run the same command again to go on, or `tpudeploy destroy` to give everything back.",
    )


def bug() -> str:
    """The exception that is being handled, as ours: what is said of it, with a report in a file."""
    import platform
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="tpudeploy-bug-", suffix=".txt", delete=False) as file:
        file.write(f"tpudeploy {VERSION}, Python {platform.python_version()}, {platform.platform()}\n\n")
        file.write(traceback.format_exc())
    last = traceback.format_exc().strip().splitlines()[-1]
    return (
        f"Error: this is a bug in tpudeploy: {last}\n"
        f"  The state is saved after each step, so running the command again is safe.\n"
        f"  Please report it with {Path(file.name)}"
    )
