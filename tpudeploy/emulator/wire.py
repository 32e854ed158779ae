"""Google's wire: calls, pages of lists, error bodies, times, durations. The texts of errors are in texts.py."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:  # it imports this module
    from tpudeploy.emulator.trouble import Trouble

# google.rpc.Code: number -> (status, HTTP code).
CODES = {
    1: ("CANCELLED", 499),
    2: ("UNKNOWN", 500),
    3: ("INVALID_ARGUMENT", 400),
    4: ("DEADLINE_EXCEEDED", 504),
    5: ("NOT_FOUND", 404),
    6: ("ALREADY_EXISTS", 409),
    7: ("PERMISSION_DENIED", 403),
    8: ("RESOURCE_EXHAUSTED", 429),
    9: ("FAILED_PRECONDITION", 400),
    10: ("ABORTED", 409),
    12: ("UNIMPLEMENTED", 501),
    13: ("INTERNAL", 500),
    14: ("UNAVAILABLE", 503),
    16: ("UNAUTHENTICATED", 401),
}
_LONGEST = 315_576_000_000  # protobuf: ten thousand years
_DURATION = re.compile(r"(-?\d+(?:\.\d{1,9})?)s")


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcStatus:
    """google.rpc.Status: the same refusal fits an HTTP error, an operation and a failed resource."""

    code: int
    message: str
    details: Sequence[Mapping[str, Any]] = ()

    @property
    def http(self) -> int:
        return CODES[self.code][1]

    @property
    def name(self) -> str:
        return CODES[self.code][0]

    def rpc(self) -> dict[str, Any]:
        body: dict[str, Any] = {"code": self.code, "message": self.message}
        return body | ({"details": list(self.details)} if self.details else {})

    def error_body(self) -> dict[str, Any]:
        return {"error": self.rpc() | {"code": self.http, "status": self.name}}


class ApiError(Exception):
    """Ends a request with an error body."""

    def __init__(self, status: RpcStatus) -> None:
        super().__init__(status.message)
        self.status = status


def refuse(code: int, message: str, *details: Mapping[str, Any]) -> ApiError:
    return ApiError(RpcStatus(code=code, message=message, details=details))


def timestamp(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment(text: str) -> float:
    """Return the seconds since the epoch of an RFC 3339 time. Raise ValueError for another text."""
    parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is None:
        raise ValueError(text)
    return parsed.timestamp()


def seconds(text: str) -> float:
    """Return the seconds of a protobuf duration, e.g. `7200s`. Raise ValueError for anything else."""
    match = _DURATION.fullmatch(text)
    if match is None or abs(float(match[1])) > _LONGEST:
        raise ValueError(text)
    return float(match[1])


_PAGE = 100  # Google's default and most are UNVERIFIED
_MOST = 1000
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """`method` as in the discovery document, e.g. `nodes.get`; `name` the resource, or the parent of a collection.

    `many` has the query's parameters that may be repeated. For another service than Cloud TPU, `method` begins with
    its name. `troubles` are the rows of trouble that strike this call, by fault.
    """

    version: str
    method: str
    name: str
    project: str
    zone: str
    query: Mapping[str, str]
    body: Any
    service: str = "tpu"
    many: Mapping[str, Sequence[str]] = field(default_factory=dict)
    troubles: Mapping[str, Trouble] = field(default_factory=dict)

    @property
    def parent(self) -> str:
        return f"projects/{self.project}/locations/{self.zone}"

    @property
    def resource_id(self) -> str:
        """Return the short name of the resource that the call is about, also of one that it creates."""
        created = self.query.get("queuedResourceId")
        if self.service == "compute" and self.method.endswith(".insert") and isinstance(self.body, Mapping):
            created = str(self.body.get("name", ""))
        return created or self.query.get("instance") or self.name.rpartition("/")[2]

    def covers(self, name: str) -> bool:
        """Return whether this resource is in the collection of the call, in which `-` is every zone."""
        _, project, _, zone, *_ = name.split("/")
        return project == self.project and self.zone in ("-", zone)

    def flag(self, name: str) -> bool:
        return self.query.get(name, "false").lower() in ("true", "1")


def page(
    call: ApiCall,
    key: str,
    items: Sequence[T],
    render: Callable[[T], dict[str, Any]],
    *,
    most: int = _MOST,
    usual: int = _PAGE,
) -> dict[str, Any]:
    """Return one page of `items`, which come in a stable order. Raise ApiError for a token that is not from here.

    `usual` is its length where the call names none, `most` its greatest.
    """
    size = min(_size(call.query.get("pageSize") or call.query.get("maxResults", "0")) or usual, most)
    start = _position(call.query.get("pageToken", ""))
    body: dict[str, Any] = {key: [render(item) for item in items[start : start + size]]}
    if start + size < len(items):
        body["nextPageToken"] = urlsafe_b64encode(f"from:{start + size}".encode()).decode()
    return body


def _size(text: str) -> int:
    if not text.isdecimal():
        raise refuse(3, f"Invalid value at 'page_size' (TYPE_INT32), \"{text}\"")
    return min(int(text), _MOST)


def _position(token: str) -> int:
    if not token:
        return 0
    try:
        return int(urlsafe_b64decode(token).decode().removeprefix("from:"))
    except ValueError:
        raise refuse(3, "Invalid page token.") from None
