"""A response has a size and an end, whoever sends it and whichever client reads it."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import requests
from answering import answering, http
from endless import Drip, endless
from real_time import DEADLINE

from tpudeploy.adapters.google.transport import OnceHttp
from tpudeploy.adapters.http_budget import Budget, Unanswered, connect_to, fetch, is_public, is_remote, within
from tpudeploy.adapters.requests_budget import limit
from tpudeploy.emulator import VirtualClock
from tpudeploy.wiring import Adapters

OK = b"HTTP/1.1 200 OK\r\n"
SHORT, LONG = Budget(seconds=0.3, size=1 << 30), Budget(seconds=DEADLINE, size=1 << 20)
# Each reply never ends. What comes slowly is cut off by the clock, what comes fast by its size.
DRIPS = {
    "a byte of the body now and then": Drip(OK + b"Content-Length: 100000\r\n\r\n", b" "),
    "a header now and then": Drip(OK, b"X: y\r\n"),
    "100 Continue, for ever": Drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a chunk now and then": Drip(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "not even a whole status line": Drip(b"HTTP", b"x"),
}
FLOODS = {
    "a body as long as it says": Drip(OK + b"Content-Length: 10000000000\r\n\r\n", b" " * 65536),
    "a body without a length": Drip(OK + b"\r\n", b"A" * 65536),
    "a chunk of a terabyte": Drip(OK + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFF\r\n", b"A" * 65536),
    "chunks": Drip(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"FFFF\r\n" + b"A" * 65535 + b"\r\n"),
    "100 Continue": Drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "trailers": Drip(OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n" * 1000),
}


def by_fetch(url: str, budget: Budget) -> bytes:
    return fetch(url, budget.begin()).body


def by_requests(url: str, budget: Budget) -> bytes:
    with requests.Session() as session:
        limit(session, budget)
        return session.get(url, timeout=DEADLINE).content


def by_httplib2(url: str, budget: Budget) -> bytes:
    client = OnceHttp(timeout=budget.seconds)
    try:
        content: bytes = client.request(url)[1]
    finally:
        client.close()
    return content


CLIENTS = (by_fetch, by_requests, by_httplib2)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("pieces", DRIPS.values(), ids=DRIPS.keys())
def test_a_reply_that_drips_is_not_waited_for(client: Any, pieces: Iterable[bytes]) -> None:
    with endless(pieces, every=0.02) as url, pytest.raises((OSError, Unanswered)):
        client(url, SHORT)


@pytest.mark.parametrize("client", [by_fetch, by_requests])
@pytest.mark.parametrize("pieces", FLOODS.values(), ids=FLOODS.keys())
def test_a_reply_that_floods_is_cut_off(client: Any, pieces: Iterable[bytes]) -> None:
    with endless(pieces) as url, pytest.raises((OSError, Unanswered)):
        client(url, LONG)


def test_a_reply_of_googles_that_floods_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpudeploy.adapters.google.transport.MOST_BYTES", 1 << 20)
    for pieces in FLOODS.values():
        with endless(pieces) as url, pytest.raises(OSError):  # noqa: PT011  what the caller translates
            by_httplib2(url, LONG)


@pytest.mark.parametrize("client", [by_requests, by_httplib2])
def test_a_reply_that_is_small_until_it_is_decoded_is_cut_off(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpudeploy.adapters.google.transport.MOST_BYTES", 1 << 20)
    body = gzip.compress(b"A" * 50_000_000)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    with answering({"/": head.encode() + body}) as url, pytest.raises(OSError):  # noqa: PT011  as above
        client(f"{url}/", LONG)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_reply_within_its_budget_is_read_whole(client: Any) -> None:
    with answering({"/": http("x" * 500_000)}) as url:
        assert client(f"{url}/", LONG) == b"x" * 500_000


def test_a_deadline_of_the_command_ends_a_request_that_may_take_longer() -> None:
    pieces = DRIPS["a byte of the body now and then"]
    with endless(pieces, every=0.02) as url, within(0.3), pytest.raises(Unanswered, match="timed out"):
        fetch(url, Budget(seconds=DEADLINE, size=1 << 20, least_seconds=0.1).begin())


def test_the_timeout_of_a_command_is_a_deadline_of_its_requests(tmp_path: Path) -> None:
    pieces = DRIPS["a header now and then"]
    with (
        endless(pieces, every=0.02) as url,
        Adapters(tmp_path).within(0.3),
        pytest.raises(Unanswered, match="timed out"),
    ):
        fetch(url, Budget(seconds=DEADLINE, size=1 << 20, least_seconds=0.1).begin())


def test_virtual_time_is_no_deadline_of_a_real_server(tmp_path: Path) -> None:
    with answering({"/": http("x")}) as url, Adapters(tmp_path, clock=VirtualClock()).within(0.0):
        assert fetch(f"{url}/", LONG.begin()).body == b"x"


def test_several_requests_share_a_budget() -> None:
    meter = Budget(seconds=DEADLINE, size=1000).begin()
    with answering({"/": http("x" * 100_000)}) as url:
        fetch(f"{url}/", meter)
        with pytest.raises(Unanswered, match="longer"):
            fetch(f"{url}/", meter)


@pytest.mark.parametrize(
    ("location", "status"),
    [
        ("/moved", 200),
        ("http://127.0.0.2:9/moved", 307),
        ("https://127.0.0.1/moved", 307),
        ("file:///etc/passwd", 307),
        ("/", 307),  # for ever
    ],
)
def test_a_redirect_is_followed_within_its_host_alone(location: str, status: int) -> None:
    there = f"HTTP/1.1 307 Moved\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
    with answering({"/": there, "/moved": http("{}")}) as url:
        assert fetch(f"{url}/", LONG.begin(), follow=True).status == status


@pytest.mark.parametrize("answer", [b"HTTP/9.9 200 OK\r\n\r\n", b"NONSENSE \x1b[2J\r\n\r\n", b"\x00\xff", b""])
def test_what_is_no_http_is_unanswered(answer: bytes) -> None:
    with answering({"/": answer}) as url, pytest.raises(Unanswered):
        fetch(f"{url}/", LONG.begin())


@pytest.mark.parametrize(
    ("number", "public", "remote"),
    [
        ("34.1.2.3", True, True),
        ("2a00:1450:4001::1", True, True),
        ("10.0.0.5", False, True),
        ("192.168.1.1", False, True),
        ("100.64.0.1", False, True),
        ("fd00::1", False, True),
        ("127.0.0.1", False, False),
        ("::1", False, False),
        ("0.0.0.0", False, False),
        ("169.254.169.254", False, False),
        ("fe80::1%eth0", False, False),
        ("224.0.0.1", False, False),
        ("::ffff:127.0.0.1", False, False),
        ("::ffff:169.254.169.254", False, False),
        ("64:ff9b::a9fe:a9fe", False, False),
        ("2002:7f00:1::", False, False),
    ],
)
def test_an_address_is_public_or_of_another_machine_or_neither(number: str, *, public: bool, remote: bool) -> None:
    assert (is_public(number), is_remote(number)) == (public, remote)


def test_the_address_that_is_connected_to_is_the_one_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that resolves to another address a moment later is not resolved again."""
    answers = iter([["34.1.2.3"], ["127.0.0.1"]])
    connected: list[str] = []

    def resolve(*_: object, **__: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (number, 443)) for number in next(answers)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "create_connection", lambda address, *_: connected.append(address[0]))
    connect_to(is_public, ("auth.example", 443), DEADLINE)
    assert connected == ["34.1.2.3"]
    with pytest.raises(OSError, match=r"127\.0\.0\.1"):
        connect_to(is_public, ("auth.example", 443), DEADLINE)
