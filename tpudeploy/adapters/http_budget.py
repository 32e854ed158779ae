"""The budget of every HTTP response: how many bytes it may have, and how long it may take, from request to last byte.

All clients of this package are http.client underneath: vLLM's, those of registries, the hub and GitHub, and Google's
(httplib2, requests). Its timeouts are per read, so a server that sends a byte a second is waited for without end. A
connection made with `MeteredConnection` reads through a meter instead, headers and interim responses included. JSON is
parsed by domain/strict_json.py.

A server that does not end raises TimeoutError, an answer that is too long `OverBudget`: both are OSErrors, as any other
trouble of a connection. `within` bounds every request of a block, also in the threads of `together`.

Why: decision 84 in docs/decisions.md.
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from tpudeploy.version import VERSION

_KIB = 1 << 10
_HEAD_BYTES = 128 * _KIB  # a hundred headers, as many as http.client accepts, are a tenth of it
_MOST_REDIRECTS = 5
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052
_deadline: ContextVar[Callable[[], float] | None] = ContextVar("deadline", default=None)


class OverBudget(OSError):
    """A response is longer than its budget."""


class Unanswered(Exception):
    """There was no HTTP response that can be used. The message completes "HOST cannot be asked: "."""


@contextmanager
def within(seconds_left: float | Callable[[], float]) -> Iterator[None]:
    """Let each request of this block end within the seconds that are left, given as a number or by a function."""
    if isinstance(seconds_left, (int, float)):
        ends = time.monotonic() + seconds_left
        own: Callable[[], float] = lambda: ends - time.monotonic()  # noqa: E731 - the same type as the other branch
    else:
        own = seconds_left
    outer = _deadline.get()
    token = _deadline.set(own if outer is None else lambda: min(own(), outer()))
    try:
        yield
    finally:
        _deadline.reset(token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The limits of one response. `seconds` count from the request to its last byte, `size` is in bytes.

    Within a command's deadline, a response may take what is left, or `least_seconds`: a state is saved however late.
    """

    seconds: float
    size: int
    least_seconds: float = 1.0

    def begin(self) -> BudgetMeter:
        return BudgetMeter(self)


class BudgetMeter:
    """What is left of a budget. Several requests may share one, such as those that a redirect leads to."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        remaining = _deadline.get()
        seconds = budget.seconds if remaining is None else min(budget.seconds, max(remaining(), budget.least_seconds))
        self._ends = time.monotonic() + seconds
        self.size = budget.size + _HEAD_BYTES

    def seconds(self) -> float:
        """Return the seconds that are left. Raise TimeoutError after the last one."""
        remaining = self._ends - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("timed out")
        return remaining

    @property
    def is_used_up(self) -> bool:
        return self.size < 0 or self._ends <= time.monotonic()

    def count(self, size: int) -> None:
        """Take the bytes off the budget. Raise `OverBudget` if there are not as many."""
        self.size -= size
        if self.size < 0:
            raise OverBudget(f"the response is longer than {_size(self._budget.size)}")


def _size(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


class _MeteredSocket(io.RawIOBase):
    """The bytes of one response as they arrive."""

    def __init__(self, raw: Any, sock: socket.socket, meter: BudgetMeter) -> None:
        self._raw = raw
        self._sock = sock
        self._idle = sock.gettimeout()
        self.meter = meter

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        remaining = self.meter.seconds()
        self._sock.settimeout(remaining if self._idle is None else min(self._idle, remaining))
        size: int = self._raw.readinto(buffer)
        self.meter.count(size)
        return size

    def close(self) -> None:
        self._raw.close()
        super().close()


class _MeteredReader(io.BufferedReader):
    """A reader that makes no room for more bytes than a response may have, whatever length it claims."""

    def read(self, size: int | None = -1, /) -> bytes:
        meter: BudgetMeter = self.raw.meter  # type: ignore[attr-defined]  # the class above
        if size is not None and size > meter.size + io.DEFAULT_BUFFER_SIZE:  # what is in the buffer was counted
            meter.count(size)
        return super().read(size)


class _MeteredResponse(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, meter: BudgetMeter, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp = _MeteredReader(_MeteredSocket(self.fp.detach(), sock, meter))


class MeteredConnection:
    """A mix-in for a connection of http.client, before that in the list of bases. `budget` is that of each response."""

    budget: Budget
    meter: BudgetMeter | None = None  # set, it counts instead of a new one for each request
    is_reached = False  # whether a server has ever accepted the connection

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]  # a mix-in
        self.is_reached = True

    def request(self, *arguments: Any, **options: Any) -> None:
        meter = self.meter or self.budget.begin()
        vars(self)["response_class"] = partial(_MeteredResponse, meter=meter)  # http.client calls what stands there
        sock, idle = getattr(self, "sock", None), getattr(self, "timeout", None)
        if sock is not None and isinstance(idle, (int, float)):
            sock.settimeout(min(idle, meter.seconds()))
        super().request(*arguments, **options)  # type: ignore[misc]  # a mix-in


class HttpConnection(MeteredConnection, http.client.HTTPConnection):
    pass


class TlsConnection(MeteredConnection, http.client.HTTPSConnection):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """A complete response. The names of headers are lowercase."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def outcome(self) -> str:
        """The status in words: `answered 503`, and where a redirect leads that was not followed."""
        target = redirect_of(self.headers.get("location", ""))
        return f"answered {self.status}" + (f", {target}" if target else "")


def fetch(
    url: str,
    meter: BudgetMeter,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    follow: bool = False,
    allow: Callable[[str], bool] | None = None,
) -> HttpResponse:
    """Send one request, and return the response, whatever its status. Raise `Unanswered`.

    With `follow`, redirects within the same scheme and host are followed; one that leads elsewhere is the response.
    With `allow`, only IP addresses for which it is true are connected to, whatever the host's name resolves to. Plain
    HTTP is used only for the emulator, the operator's own address, which no proxy may come between.
    """
    handlers: list[urllib.request.BaseHandler] = [_Http(meter), _Https(meter, allow)]
    handlers.append(_WithinHost() if follow else _NoRedirects())
    if url.startswith("http://"):
        handlers.append(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(  # noqa: S310  only the two schemes have handlers
        url, body, method=method, headers={"User-Agent": f"tpudeploy/{VERSION}", **(headers or {})}
    )
    try:
        with _opened(urllib.request.build_opener(*handlers), request, meter.seconds()) as answer:
            names = {name.lower(): value for name, value in answer.headers.items()}
            return HttpResponse(status=answer.status, headers=names, body=answer.read())
    except (OSError, ValueError, http.client.HTTPException) as cause:
        raise Unanswered(reason(cause)) from cause


def _opened(opener: urllib.request.OpenerDirector, request: urllib.request.Request, seconds: float) -> Any:
    try:
        return opener.open(request, timeout=seconds)
    except urllib.error.HTTPError as refused:
        return refused


def redirect_of(location: str) -> str:
    """Return the words for a redirect to a host that is not followed, or "" without one."""
    try:
        host = urlsplit(location).netloc if location.isprintable() else "an invalid address"
    except ValueError:
        host = "an invalid address"
    return f"a redirect to {host}, which is not followed" if host else ""


def reason(cause: BaseException) -> str:
    """Return why a connection failed, in a few words."""
    inner = getattr(cause, "reason", cause)
    return str(getattr(inner, "strerror", None) or inner or type(cause).__name__)


class _Http(urllib.request.HTTPHandler):
    def __init__(self, meter: BudgetMeter) -> None:
        super().__init__()
        self._meter = meter

    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(partial(_connection, HttpConnection, self._meter, None), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, meter: BudgetMeter, allow: Callable[[str], bool] | None) -> None:
        super().__init__()
        self._meter = meter
        self._allow = allow

    def https_open(self, req: urllib.request.Request) -> Any:
        # A proxy resolves the name itself, and its own address is the operator's choice.
        tunnel = getattr(req, "_tunnel_host", None)
        allow = None if tunnel else self._allow
        number = (urlsplit(f"//{tunnel}").hostname or "") if tunnel else ""
        if self._allow is not None and _is_number(number) and not self._allow(number):
            raise OSError(f"{number} cannot be the registry of this profile")
        return self.do_open(partial(_connection, TlsConnection, self._meter, allow), req)


def _connection(
    kind: Callable[..., Any], meter: BudgetMeter, allow: Callable[[str], bool] | None, host: str, **options: Any
) -> Any:
    connection = kind(host, **options)
    connection.meter = meter
    if allow is not None:
        connection._create_connection = partial(connect_to, allow)  # noqa: SLF001  http.client has no other hook for it
    return connection


def connect_to(
    allow: Callable[[str], bool], address: tuple[str, int], timeout: float, source: Any = None
) -> socket.socket:
    """Connect to the first address of a host that is allowed. Raise OSError.

    The addresses are checked and connected to by number, so that a name cannot mean another one a moment later.
    """
    host, port = address
    numbers = dict.fromkeys(str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    allowed = [number for number in numbers if allow(number)]
    if not allowed:
        raise OSError(f"{host} is at {', '.join(numbers)}, which cannot be the registry of this profile")
    for number in allowed[:-1]:
        with suppress(OSError):
            return socket.create_connection((number, port), timeout, source)
    return socket.create_connection((allowed[-1], port), timeout, source)


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_public(number: str) -> bool:
    """Return whether an address is one of the public Internet, not of this machine or of a network around it."""
    address = _address(number)
    return address.is_global and not address.is_multicast


def is_remote(number: str) -> bool:
    """Return whether an address may be that of another machine, not of this one or of a cloud's metadata server."""
    address = _address(number)
    return not (address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast)


def _address(number: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the address, for one of IPv6 that stands for one of IPv4 the latter."""
    address = ipaddress.ip_address(number.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        return address.ipv4_mapped or address.sixtofour or _of_nat64(address) or address
    return address


def _of_nat64(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirects, because a token must not be sent to another host."""

    def redirect_request(self, *_: object) -> None:
        return None


class _WithinHost(urllib.request.HTTPRedirectHandler):
    """Follows redirects within one scheme and host."""

    max_redirections = _MOST_REDIRECTS

    def redirect_request(self, req: urllib.request.Request, *arguments: Any) -> urllib.request.Request | None:
        target = arguments[-1]
        return super().redirect_request(req, *arguments) if urlsplit(target)[:2] == urlsplit(req.full_url)[:2] else None
