"""The event stream of a run: lines for people on stderr, with a table at a terminal, or JSON on stdout."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tpudeploy.cli.terminal import Terminal
from tpudeploy.domain.events import Event
from tpudeploy.ports import Clock


@contextmanager
def telling(terminal: Terminal, clock: Clock, *, as_json: bool) -> Iterator[Callable[[Event], None]]:
    """A callback for the `on_event` of a run that may take long."""
    if as_json or not terminal.is_drawable:
        yield teller(terminal, as_json=as_json)
        return
    from tpudeploy.cli.live import Live

    live = Live(terminal, clock)
    with live.shown():
        yield live.tell


def teller(terminal: Terminal, *, as_json: bool = False) -> Callable[[Event], None]:
    """A callback for `on_event`, `as_json` where the command prints a stream. Safe to call from several threads."""
    from tpudeploy.views import events, jsonl
    from tpudeploy.views.repeats import Repeats

    lock, repeats = threading.Lock(), Repeats()

    def tell(event: Event) -> None:
        with lock:
            if as_json:
                terminal.document(jsonl.line(event))
            elif repeats.is_new(event):
                terminal.talk(events.line(event, terminal.paint))

    return tell
