"""A sweep's options and its rows: what `bench` and `compare --ab` share."""

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
_OVER = "\r\033[K"  # the line of the cell under way makes room for its row


@frozen
class Grid:
    """The cells of a command that names none."""

    streams: tuple[int, ...]
    contexts: tuple[int, ...]
    outputs: tuple[int, ...]


def grid(parser: argparse.ArgumentParser, usual: Grid) -> None:
    several: dict[str, Any] = {"metavar": "N,N…", "type": _numbers}
    options.option(
        parser, "concurrency", f"Concurrent streams, e.g. 1..2048 (default {_listed(usual.streams)}).", **several
    )
    options.option(parser, "context", f"Tokens in a prompt (default {_listed(usual.contexts)}).", **several)
    options.option(parser, "output", f"Tokens in an answer (default {_listed(usual.outputs)}).", **several)
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


def points(given: argparse.Namespace, usual: Grid) -> tuple[Point, ...]:
    from tpudeploy.benchmark.grid import grid as cells

    return cells(given.concurrency or usual.streams, given.context or usual.contexts, given.output or usual.outputs)


def check_price(given: argparse.Namespace, usd_per_hour: float | None) -> None:
    """Raise `errors.UsageError` for a bound that could not be kept."""
    if given.max_cost is not None and usd_per_hour is None:
        hint = "Bound it by time: --duration."
        if hasattr(given, "usd_per_hour"):
            hint = "Name it: --usd-per-hour. Or bound it: --duration."
        raise UsageError("--max-cost needs a price, and none is known.", hint=hint)


class Rows:
    """A line a cell on stderr; at a terminal also of the one that is under way."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def begin(self) -> None:
        from tpudeploy.views.bench import row_header

        self.talk(row_header(self._terminal.paint))

    def under_way(self, run: Run, point: Point) -> None:
        from tpudeploy.views.bench import unfinished_row

        self.passing(unfinished_row(run, point))

    def passing(self, text: str) -> None:
        """What the next line takes the place of: for a person who looks, and for nobody else."""
        terminal = self._terminal
        if terminal.is_drawable and terminal.is_in_foreground:
            from tpudeploy.views.words import cut

            terminal.draw(_OVER + cut(text, terminal.size.columns - 1))

    def done(self, run: Run, cell: Cell) -> None:
        from tpudeploy.views.bench import row

        self.talk(row(run, cell, self._terminal.paint))

    def talk(self, text: str) -> None:
        self.clear()
        self._terminal.talk(text)

    def clear(self) -> None:
        """Nothing passes by any more."""
        if self._terminal.is_drawable:
            self._terminal.draw(_OVER)


def index(text: str) -> int:
    """A count from 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"`{text}` is not an index; write 0, 1, 2, …")
    return int(text)


def usd(text: str) -> float:
    try:
        found = float(text.removeprefix("$"))
    except ValueError:
        found = -1.0
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"`{text}` is no amount of USD; write 2.50")
    return found


def _numbers(text: str) -> tuple[int, ...]:
    from tpudeploy.benchmark.grid import numbers

    try:
        return numbers(text)
    except ValueError as cause:
        raise argparse.ArgumentTypeError(f"{cause}; write 1,2,8, or 1..64 for 1, 2, 4 … 64") from cause


def _listed(of: tuple[int, ...]) -> str:
    return ",".join(map(str, of))
