"""The emulator's HTTP server, over sockets: a client that is killed while it sends has asked for nothing."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import closing

import pytest
from real_time import DEADLINE

from tpudeploy.emulator.http_server import HttpRequest, HttpServer, Reply

REQUEST = b"DELETE /nodes/n HTTP/1.0\r\nContent-Length: 2\r\nX-Key: k\r\n\r\n{}"
LONG = 65_537 * b"a"  # one byte more than a line may have, and nothing behind it that would stay unread


def test_a_request_that_is_cut_off_anywhere_is_not_carried_out() -> None:
    requests: list[HttpRequest] = []

    def answer(request: HttpRequest) -> Reply:
        requests.append(request)
        return Reply(http=200, body={})

    with closing(HttpServer(0, answer)) as server:
        for length in range(1, len(REQUEST)):
            assert b" 200 " not in _send(server.port, REQUEST[:length]), REQUEST[:length]
        assert requests == []
        assert _send(server.port, REQUEST).startswith(b"HTTP/1.1 200 ")
    assert [request.body for request in requests] == [b"{}"]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /\r\n\r\n", b"400 Bad Request"),
        (b"hello\r\n", b"400 Bad Request"),
        (b"GET / HTTP/1.1\r\nContent-Length: two\r\n\r\n", b"400 Bad Request"),
        (b"BREW / HTTP/1.1\r\n\r\n", b"501 Not Implemented"),
        ((b"GET /" + LONG)[: len(LONG)], b"414 "),
        (b"GET / HTTP/1.1\r\n" + (b"X-Long: " + LONG)[: len(LONG)], b"431 "),
    ],
    ids=["HTTP 0.9", "no HTTP", "no length", "no method", "a long path", "a long header"],
)
def test_what_is_not_a_request_is_refused_and_its_connection_closed(data: bytes, status: bytes) -> None:
    requests: list[HttpRequest] = []

    def answer(request: HttpRequest) -> Reply:
        requests.append(request)
        return Reply(http=200, body={})

    with closing(HttpServer(0, answer)) as server:
        assert _send(server.port, data).startswith(b"HTTP/1.1 " + status)
    assert requests == []


def test_requests_of_one_connection_are_answered_one_after_the_other() -> None:
    def answer(request: HttpRequest) -> Reply:
        return Reply(http=200, body=f"{request.method} {request.path} {request.headers['x-key']} {len(request.body)}")

    first = b"POST //a?b=c HTTP/1.1\r\nX-KEY:  k \r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}"
    last = b"GET /d HTTP/1.1\r\nX-Key: l\r\nConnection: close\r\n\r\n"
    with closing(HttpServer(0, answer)) as server:
        replies = _send(server.port, first + b"HEAD /h HTTP/1.1\r\nx-key: k\r\n\r\n" + last + last)
    assert replies.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    bodies = [reply.partition(b"\r\n\r\n")[2] for reply in replies.split(b"HTTP/1.1 200 OK\r\n")[1:]]
    assert bodies == [b"POST /a k 2", b"", b"GET /d l 0"]


def _send(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_each_server_takes_one_descriptor() -> None:
    """Otherwise a fleet's emulator has none left for half of its machines, whose clients wait for ever."""
    code = """\
import resource, sys, urllib.request
from tpudeploy.emulator.http_server import Reply, HttpServer
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
servers = []
for number in range(70):
    servers.append(HttpServer(0, lambda request: Reply(http=200, body=str(number))))
    with urllib.request.urlopen(f"http://127.0.0.1:{servers[0].port}/", timeout=float(sys.argv[1])) as reply:
        print(reply.read().decode(), flush=True)
"""
    words = [sys.executable, "-c", code, str(DEADLINE)]
    result = subprocess.run(words, check=False, capture_output=True, text=True)
    assert result.stdout.split() == [str(number) for number in range(70)], result.stderr
