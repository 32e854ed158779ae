"""The event stream of a run, as lines: for people on stderr, or as JSON on stdout."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tpudeploy.cli.terminal import Terminal
from tpudeploy.domain.events import Event


def teller(terminal: Terminal, *, as_json: bool) -> Callable[[Event], None]:
    """A callback for `on_event`; safe to call from several threads."""
    from tpudeploy.views import events, jsonl
    from tpudeploy.views.repeats import Repeats

    lock, repeats = threading.Lock(), Repeats()

    def tell(event: Event) -> None:
        with lock:
            if as_json:
                terminal.data(jsonl.line(event))
            elif repeats.is_new(event):
                terminal.talk(events.line(event, terminal.paint))

    return tell
