"""httplib2 without its silent second try.

When a connection closes before the reply, httplib2 sends the request again, whatever it was and whatever `num_retries`
says. For a create that is the fault which bills two slices: the first was carried out, the second meets a full quota,
and we would move on to the next zone. Here the close is an error; the next look says what it did.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httplib2

# A connection kept for longer may be closed at the other end; then the first look after a pause would fail.
_KEPT = 30.0
_checks: ContextVar[Callable[[], None] | None] = ContextVar("checks", default=None)


@contextmanager
def guarded(check: Callable[[], None]) -> Iterator[None]:
    """Call `check` before each request of this thread, once credentials and connection are there: all that is left is
    to write the bytes. What it raises stops the request.
    """
    before = _checks.set(check)
    try:
        yield
    finally:
        _checks.reset(before)


class _Once:
    """Says "reset" where http.client says "bad status line", which httplib2 takes for leave to send again."""

    def request(self, *arguments: Any, **options: Any) -> None:
        check = _checks.get()
        if check is not None:
            check()
        super().request(*arguments, **options)  # type: ignore[misc]  # a mix-in, see below

    def getresponse(self, *arguments: Any, **options: Any) -> Any:
        try:
            return super().getresponse(*arguments, **options)  # type: ignore[misc]  # a mix-in, see below
        except http.client.BadStatusLine as cause:
            raise ConnectionResetError("the connection closed before the reply") from cause


class _Plain(_Once, httplib2.HTTPConnectionWithTimeout):  # type: ignore[misc]  # httplib2 ships no types
    pass


class _Tls(_Once, httplib2.HTTPSConnectionWithTimeout):  # type: ignore[misc]  # httplib2 ships no types
    pass


class OnceHttp(httplib2.Http):  # type: ignore[misc]  # httplib2 ships no types
    """Sends each request once. Not thread-safe, as its parent."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._used = 0.0

    def request(self, uri: str, *arguments: Any, **options: Any) -> Any:
        if time.monotonic() - self._used > _KEPT:
            self.close()
        kind = _Tls if uri.startswith("https:") else _Plain
        try:
            return super().request(uri, *arguments, **{**options, "connection_type": kind})
        finally:
            self._used = time.monotonic()
