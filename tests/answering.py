"""A server on loopback that says what it is told to, to whoever asks: no vLLM, and not always HTTP."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def answering(
    replies: Mapping[str, bytes | Callable[[bytes], bytes]], *, at: tuple[str, int] = ("127.0.0.1", 0)
) -> Iterator[str]:
    """The server's URL. `replies` by path, raw, or made from the request; an unknown path is closed without a word."""
    listener = socket.create_server(at)

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                requests = _whole_request(connection)
                path = requests.split(b" ")[1].decode() if b" " in requests else ""
                reply = replies.get(path.partition("?")[0], b"")
                connection.sendall(reply if isinstance(reply, bytes) else reply(requests))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://{at[0]}:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _whole_request(connection: socket.socket) -> bytes:
    """Return a request with its body, which clients send apart from its head."""
    requests = connection.recv(65536)
    length = re.search(rb"content-length: (\d+)", requests, re.IGNORECASE)
    while length and len(requests.partition(b"\r\n\r\n")[2]) < int(length[1]):
        more = connection.recv(65536)
        if not more:
            break
        requests += more
    return requests


def http(body: str, *, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body.encode())}\r\nConnection: close\r\n\r\n{body}".encode()
