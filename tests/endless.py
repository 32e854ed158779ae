"""A server on loopback whose replies have no end: it sends the next piece until the other side is gone.

Nobody waits for the end of such a reply: a test that reaches its last line has waited for none.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, repeat


@dataclass(frozen=True)
class Drip:
    """A reply that goes on and on."""

    head: bytes
    piece: bytes

    def __iter__(self) -> Iterator[bytes]:
        return chain([self.head], repeat(self.piece))


@contextmanager
def endless(pieces: Iterable[bytes], *, every: float = 0.0) -> Iterator[str]:
    """Yield the URL of a server that answers each connection with these pieces, one in `every` seconds."""
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65536)
                for piece in pieces:
                    connection.sendall(piece)
                    if over.wait(every):
                        return
            except OSError:
                return  # the client is gone, as it should be

    def serve() -> None:
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
