"""Command-line options of a sweep, and its live rows. `bench` and `compare --ab` share both."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from tpudeploy.cli import options
from tpudeploy.cli.terminal import Terminal
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.frozen import frozen

if TYPE_CHECKING:
    from tpudeploy.domain.benchmark import Cell, Run
    from tpudeploy.domain.load import Point

WINDOW = 60.0  # seconds
_DRIVERS = ("vllm", "guidellm", "aiperf")
_ERASE = "\r\033[K"  # the row of a cell replaces the line that was shown during it


@frozen
class Grid:
    """The default cells of a command."""

    streams: tuple[int, ...]
    contexts: tuple[int, ...]
    outputs: tuple[int, ...]


def grid(parser: argparse.ArgumentParser, default: Grid) -> None:
    several: dict[str, Any] = {"metavar": "N,N…", "type": _numbers}
    streams, contexts, outputs = (
        ",".join(map(str, axis)) for axis in (default.streams, default.contexts, default.outputs)
    )
    options.option(parser, "concurrency", f"Concurrent streams, e.g. 1..2048 (default {streams}).", **several)
    options.option(parser, "context", f"Tokens in a prompt (default {contexts}).", **several)
    options.option(parser, "output", f"Tokens in an answer (default {outputs}).", **several)
    options.option(
        parser, "window", "Measure each cell for at most TIME (default 60s).", metavar="TIME", type=options.seconds
    )


def max_cost(parser: argparse.ArgumentParser, help_: str) -> None:
    options.option(parser, "max-cost", help_, metavar="USD", type=usd)


def client(parser: argparse.ArgumentParser) -> None:
    options.option(parser, "driver", "Measure with an installed client: vllm, guidellm or aiperf.", choices=_DRIVERS)
    options.option(
        parser, "tokenizer", "With --driver: a model id, or a folder (default: the model's).", metavar="NAME"
    )


def points(args: argparse.Namespace, default: Grid) -> tuple[Point, ...]:
    from tpudeploy.benchmark.cells import grid as cells

    return cells(args.concurrency or default.streams, args.context or default.contexts, args.output or default.outputs)


def check_price(args: argparse.Namespace, usd_per_hour: float | None) -> None:
    """Raise `errors.UsageError` for a bound that needs an unknown price."""
    if args.max_cost is not None and usd_per_hour is None:
        hint = "Use --duration instead."
        if hasattr(args, "usd_per_hour"):
            hint = "Set it with --usd-per-hour, or use --duration."
        raise UsageError("--max-cost needs a price, and it is unknown.", hint=hint)


class Rows:
    """Prints a row for each cell on stderr, and at a terminal also the cell that is being measured."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def begin(self) -> None:
        from tpudeploy.benchmark.view import row_header

        self.talk(row_header(self._terminal.paint))

    def begin_cell(self, run: Run, point: Point) -> None:
        from tpudeploy.benchmark.view import unfinished_row

        self.passing(unfinished_row(run, point))

    def end_cell(self, run: Run, cell: Cell) -> None:
        from tpudeploy.benchmark.view import row

        self.talk(row(run, cell, self._terminal.paint))

    def passing(self, text: str) -> None:
        """Show a line that the next one replaces, at a terminal in the foreground."""
        terminal = self._terminal
        if terminal.is_drawable and terminal.is_in_foreground:
            from tpudeploy.text.words import cut

            terminal.draw(_ERASE + cut(text, terminal.size.columns - 1))

    def talk(self, text: str) -> None:
        self.clear()
        self._terminal.talk(text)

    def clear(self) -> None:
        if self._terminal.is_drawable:
            self._terminal.draw(_ERASE)


def index(text: str) -> int:
    """Parse a number from 0 on."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"`{text}` is not an index; write 0, 1, 2, …")
    return int(text)


def usd(text: str) -> float:
    try:
        amount = float(text.removeprefix("$"))
    except ValueError:
        amount = -1.0
    if not 0 < amount < float("inf"):
        raise argparse.ArgumentTypeError(f"`{text}` is not an amount of USD; write 2.50")
    return amount


def _numbers(text: str) -> tuple[int, ...]:
    from tpudeploy.benchmark.cells import numbers

    try:
        return numbers(text)
    except ValueError as cause:
        raise argparse.ArgumentTypeError(f"{cause}; write 1,2,8, or 1..64 for 1, 2, 4 … 64") from cause
