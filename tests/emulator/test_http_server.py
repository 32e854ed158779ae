"""The emulator's HTTP server, over sockets: a client that is killed while it sends has asked for nothing."""

from __future__ import annotations

import socket
from contextlib import closing

from tpudeploy.emulator.http_server import Reply, Request, Server

REQUEST = b"DELETE /nodes/n HTTP/1.0\r\nContent-Length: 2\r\nX-Key: k\r\n\r\n{}"


def test_a_request_that_is_cut_off_anywhere_is_not_carried_out() -> None:
    requests: list[Request] = []

    def answer(request: Request) -> Reply:
        requests.append(request)
        return Reply(http=200, body={})

    with closing(Server(0, answer)) as server:
        for length in range(1, len(REQUEST)):
            assert b" 200 " not in _send(server.port, REQUEST[:length]), REQUEST[:length]
        assert requests == []
        assert _send(server.port, REQUEST).startswith(b"HTTP/1.1 200 ")
    assert [request.body for request in requests] == [b"{}"]


def _send(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))
