"""A receiver of notifications on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """`received` are the requests that came, in order. `statuses` are the answers to the first of them, then 200.

    One that `drips` answers a byte at a time, without end.
    """

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    drips: bool = False
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.received]

    def events_of(self, name: str) -> list[dict[str, Any]]:
        """Return the documents of one event, each id once, as a receiver is to do."""
        return list({each["id"]: each for each in self.events if each["event"] == name}.values())


@contextmanager
def receiving(*statuses: int, drips: bool = False) -> Iterator[Receiver]:
    receiver = Receiver(statuses=list(statuses), drips=drips)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.received.append(({name.lower(): value for name, value in self.headers.items()}, body))
            status = receiver.statuses.pop(0) if receiver.statuses else 200
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.send_header("Content-Length", "1000" if receiver.drips else "0")
            self.end_headers()
            while receiver.drips and not receiver.over.wait(0.05):
                self.wfile.write(b".")
                self.wfile.flush()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    try:
        yield receiver
    finally:
        receiver.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
