"""Clients of a deployment: they find it by `endpoints/NAME.json`, ask it for completions, and count what fails."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from command_line import CommandLine

_TIMEOUT = 30.0  # real seconds


@dataclass(kw_only=True)
class Sender:
    """Sends `each` requests whenever time passes on the clock. It goes by what it read for `holds` seconds at most."""

    at: CommandLine
    each: int
    holds: float = 0.0
    sent: int = 0
    _read_at: float = float("-inf")
    _is_busy: bool = False

    def on_advance(self) -> None:
        # A request may let time pass, which begins no other request.
        if self._is_busy:
            return
        self._is_busy = True
        try:
            for _ in range(self.each):
                self._send()
        finally:
            self._is_busy = False

    def _send(self) -> None:
        raise NotImplementedError


@dataclass(kw_only=True)
class Client(Sender):
    """Asks the published endpoint for completions, and looks at each.

    While there is no endpoint, nothing can be sent, which is counted too: as `unserved` moments. `waits`: it begins once
    there is one.
    """

    waits: bool = False
    name: str = "gemma"
    unserved: int = 0
    failed: list[str] = field(default_factory=list)
    requests_by_url: dict[str, int] = field(default_factory=dict)
    _url: str = ""

    def _send(self) -> None:
        now, url = self.at.clock.now(), self._next_url()
        if not url:
            self.unserved += not (self.waits and not self.sent)
            return
        self.sent += 1
        self.requests_by_url[url] = self.requests_by_url.get(url, 0) + 1
        try:
            answer = complete(url)
        except (OSError, http.client.HTTPException, ValueError) as failure:
            self.failed.append(f"{now:.0f} {url}: {failure!r}")
            return
        if not answer["choices"][0]["text"]:
            self.failed.append(f"{now:.0f} {url}: {answer}")

    def _next_url(self) -> str:
        now = self.at.clock.now()
        if self.holds == 0.0 or now - self._read_at > self.holds:
            self._url, self._read_at = _endpoint(self.at, self.name), now
        return self._url


@dataclass(kw_only=True)
class Router(Client):
    """A model of a router: it reads the list of replicas, up to `holds` seconds late, and sends requests to each in turn.

    It neither checks health nor retries, so each request that a replica cannot serve is counted.
    """

    _urls: list[str] = field(default_factory=list)

    def _next_url(self) -> str:
        now = self.at.clock.now()
        if self.holds == 0.0 or now - self._read_at > self.holds:
            self._urls, self._read_at = replica_urls(self.at, self.name), now
        return self._urls[self.sent % len(self._urls)] if self._urls else ""


@contextmanager
def load(at: CommandLine, *clients: Client) -> Iterator[None]:
    """While this lasts, they ask."""
    for client in clients:
        at.clock.on_advance.append(client.on_advance)
    try:
        yield
    finally:
        for client in clients:
            at.clock.on_advance.remove(client.on_advance)


def lost_nothing(clients: Sequence[Client], *, at_least: int) -> None:
    """Whatever they asked was answered, and there was somebody to ask at every moment."""
    assert not [failure for client in clients for failure in client.failed]
    assert not sum(client.unserved for client in clients), "there was nobody to ask"
    total = sum(client.sent for client in clients)
    assert total >= at_least, total


class Reader:
    """One long answer, read token by token while the world goes on."""

    def __init__(self, at: CommandLine, tokens: int, *, url: str = "") -> None:
        """Ask the published endpoint, or the server at `url`. Raise OSError or HTTPException if it is not answered."""
        self.tokens = 0
        self.error = ""
        self.ended_at = 0.0
        self._at = at
        self._connection, response = _send(url or _endpoint(at), tokens)
        self._thread = threading.Thread(target=self._read, args=(response,), daemon=True)
        self._thread.start()

    def _read(self, response: http.client.HTTPResponse) -> None:
        done = False
        try:
            for line in response:
                done = done or line.startswith(b"data: [DONE]")
                self.tokens += line.startswith(b"data: {")
        except (OSError, http.client.HTTPException) as failure:
            self.error = repr(failure)
        self.ended_at = self._at.clock.now()
        if not done and not self.error:
            self.error = "cut off"
        self._connection.close()

    def join(self) -> None:
        self._thread.join(_TIMEOUT)
        assert not self._thread.is_alive(), "it is still being answered"


def complete(url: str) -> dict[str, Any]:
    """Raise OSError, HTTPException or ValueError for whatever is no answer."""
    connection, response = _posted(url, {"prompt": "Say hello."})
    try:
        tree: dict[str, Any] = json.loads(response.read())
    finally:
        connection.close()
    return tree


def _send(url: str, tokens: int) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    return _posted(url, {"prompt": "Go on.", "stream": True, "ignore_eos": True, "max_tokens": tokens})


def _posted(url: str, body: dict[str, Any]) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port or 80, timeout=_TIMEOUT)
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    if response.status != http.HTTPStatus.OK:
        connection.close()
        raise http.client.HTTPException(f"HTTP {response.status}")
    return connection, response


def _endpoint(at: CommandLine, name: str = "gemma") -> str:
    """What the file says at this moment; "" where there is none."""
    return str(published(at, name).get("url", ""))


def replica_urls(at: CommandLine, name: str = "gemma") -> list[str]:
    """Return the URLs of the replicas that take requests at this moment, by the file."""
    return [row["url"] for row in published(at, name).get("replicas", [])]


def published(at: CommandLine, name: str) -> dict[str, Any]:
    """Return what the endpoint file says at this moment, or nothing where there is none."""
    try:
        text = (at.folder / "endpoints" / f"{name}.json").read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    tree: dict[str, Any] = json.loads(text)
    return tree
