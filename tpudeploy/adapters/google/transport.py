"""httplib2 without its silent retry, with a budget for each response, and a check before each request of any client.

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

import httplib2

from tpudeploy.adapters.http_budget import Budget, MeteredConnection, OverBudget

try:
    from httplib2.decode import DecodeLimitError, DecodeRatioError
except ImportError:  # httplib2 before 0.32 has no limits
    _TOO_LONG: tuple[type[Exception], ...] = ()
else:
    _TOO_LONG = (DecodeLimitError, DecodeRatioError)
LEAST_SECONDS = 5.0  # so that a call is cut off only where Google is slow: its effect is then unknown
MOST_BYTES = 256 << 20  # a page of a list of 1,000 machines with their startup scripts has a tenth of it
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


class _Once(MeteredConnection):
    """Raises a connection reset in place of http.client's bad status line, on which httplib2 would send again."""

    timeout: float

    @property
    def budget(self) -> Budget:  # type: ignore[override]  # it is never set here
        return Budget(seconds=self.timeout, size=MOST_BYTES, least_seconds=LEAST_SECONDS)

    def request(self, *arguments: Any, **options: Any) -> None:
        call_check(None)
        super().request(*arguments, **options)

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
        self.limit_kwargs = {**getattr(self, "limit_kwargs", {}), "hard_limit": MOST_BYTES}  # of a decoded body
        self._used = 0.0
        self._on_exchange = on_exchange

    def request(self, uri: str, method: str = "GET", body: Any = None, **options: Any) -> Any:
        if time.monotonic() - self._used > _MAX_IDLE_SECONDS:
            self.close()
        kind = _Tls if uri.startswith("https:") else _Plain
        try:
            response, content = super().request(uri, method, body, **{**options, "connection_type": kind})
        except _TOO_LONG as cause:
            raise OverBudget(str(cause)) from cause
        except (OSError, http.client.HTTPException) as cause:
            self.close()  # what is left of the response must not be read as the next one
            if isinstance(cause, OSError):
                raise
            raise OSError(f"the reply is cut off, or not HTTP: {cause}") from cause
        finally:
            self._used = time.monotonic()
        if self._on_exchange is not None:
            self._on_exchange(method, uri, body, int(response.status), content)
        return response, content


class ClientPool:
    """Clients that are not thread-safe: a caller borrows one, and returns it. With `request`, it stands for an `Http`.

    So there are never more connections than requests at once. One of each thread would outlive its thread.
    """

    def __init__(self, new: Callable[[], Any]) -> None:
        self._new = new
        self._idle: list[Any] = []

    def request(self, *arguments: Any, **options: Any) -> Any:
        with self.lend() as http:
            return http.request(*arguments, **options)

    @contextmanager
    def lend(self) -> Iterator[Any]:
        """Yield a client that no other thread uses meanwhile."""
        try:
            client = self._idle.pop()
        except IndexError:
            client = self._new()
        try:
            yield client
        finally:
            self._idle.append(client)

    def close(self) -> None:
        """Close what is idle, which is everything once no request is in flight."""
        while self._idle:
            self._idle.pop().close()
