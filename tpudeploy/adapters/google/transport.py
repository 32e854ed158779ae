"""httplib2 without its silent retry, and a check before each request of any client.

When a connection closes before the reply, httplib2 sends any request again, whatever `num_retries` says. For a create,
that fault leads to two billed slices: the first request succeeds, the second exceeds the quota, and we would move on
to the next zone. Here the close is an error, and the next observation shows the effect of the request.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tpudeploy.adapters.google.deferred import httplib2

# The other end may close a connection that is idle for longer; then the first request after a pause would fail.
_MAX_IDLE_SECONDS = 30.0
# Called after each reply: the HTTP method, the URL, the request's body, the status, the reply's body.
OnExchange = Callable[[str, str, Any, int, bytes], None]
_checks: ContextVar[Callable[[], None] | None] = ContextVar("checks", default=None)


@contextmanager
def guarded(check: Callable[[], None]) -> Iterator[None]:
    """Call `check` at the last moment before each request of this thread is sent.

    The credentials and the connection are ready by then. An exception of `check` stops the request.
    """
    token = _checks.set(check)
    try:
        yield
    finally:
        _checks.reset(token)


def call_check(request: Any) -> Any:
    """Call the check of `guarded`. A session of `requests` calls this as its `auth`, once the credentials are ready."""
    check = _checks.get()
    if check is not None:
        check()
    return request


class _Once:
    """Raises a connection reset in place of http.client's bad status line, on which httplib2 would send again."""

    def request(self, *arguments: Any, **options: Any) -> None:
        call_check(None)
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
    """Sends each request once. It is not thread-safe, like its parent class."""

    def __init__(self, *, on_exchange: OnExchange | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._used = 0.0
        self._on_exchange = on_exchange

    def request(self, uri: str, method: str = "GET", body: Any = None, **options: Any) -> Any:
        if time.monotonic() - self._used > _MAX_IDLE_SECONDS:
            self.close()
        kind = _Tls if uri.startswith("https:") else _Plain
        try:
            response, content = super().request(uri, method, body, **{**options, "connection_type": kind})
        finally:
            self._used = time.monotonic()
        if self._on_exchange is not None:
            self._on_exchange(method, uri, body, int(response.status), content)
        return response, content
