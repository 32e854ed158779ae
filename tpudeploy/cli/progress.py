"""Print the events of a run: lines on stderr, with a table at a terminal, or JSON on stdout."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tpudeploy.cli.live import Live
from tpudeploy.cli.terminal import Terminal
from tpudeploy.domain.events import Event
from tpudeploy.ports import Clock
from tpudeploy.views import jsonl
from tpudeploy.views.events import Repeats


@contextmanager
def event_printing(
    terminal: Terminal, clock: Clock, *, as_json: bool, is_emulated: bool
) -> Iterator[Callable[[Event], None]]:
    """Return a context with the `on_event` callback of a long run, which draws a table at a terminal."""
    if as_json or not terminal.is_drawable:
        yield event_printer(terminal, as_json=as_json)
        return

    live = Live(terminal, clock, is_emulated=is_emulated)
    with live.drawing():
        yield live.tell


def event_printer(terminal: Terminal, *, as_json: bool = False) -> Callable[[Event], None]:
    """Return a callback for `on_event`; with `as_json`, it prints a stream. Several threads may call it."""
    lock, repeats = threading.Lock(), Repeats()

    def tell(event: Event) -> None:
        with lock:
            if as_json:
                terminal.document(jsonl.line(event))
            elif (text := repeats.line(event, terminal.paint)) is not None:
                terminal.talk(text)

    return tell
