"""One HTTP call, taken apart once; and one page of a list."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from tpudeploy.emulator import wire

_PAGE = 100  # Google's default and most are UNVERIFIED
_MOST = 1000
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """`method` as in the discovery document, e.g. `nodes.get`; `name` the resource, or the parent of a collection.

    `many` has the query's parameters that may be repeated; of another service than Cloud TPU, `method` begins with it.
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

    @property
    def parent(self) -> str:
        return f"projects/{self.project}/locations/{self.zone}"

    def covers(self, name: str) -> bool:
        """Is this resource in the collection asked for? `-` stands for every zone."""
        _, project, _, zone, *_ = name.split("/")
        return project == self.project and self.zone in ("-", zone)

    def with_query(self, query: Mapping[str, str]) -> Call:
        """The same, where the body says what other calls say in their query."""
        return replace(self, query={**self.query, **query})

    def flag(self, name: str) -> bool:
        return self.query.get(name, "false").lower() in ("true", "1")


def page(
    call: Call, key: str, items: Sequence[T], render: Callable[[T], dict[str, Any]], *, most: int = _MOST
) -> dict[str, Any]:
    """One page of `items`, which come in a stable order. Raise Refusal for a token that we did not give."""
    size = min(_size(call.query.get("pageSize") or call.query.get("maxResults", "0")), most)
    start = _position(call.query.get("pageToken", ""))
    body: dict[str, Any] = {key: [render(item) for item in items[start : start + size]]}
    if start + size < len(items):
        body["nextPageToken"] = urlsafe_b64encode(f"from:{start + size}".encode()).decode()
    return body


def _size(written: str) -> int:
    if not written.isdecimal():
        raise wire.refuse(3, f"Invalid value at 'page_size' (TYPE_INT32), \"{written}\"")
    return min(int(written) or _PAGE, _MOST)


def _position(token: str) -> int:
    if not token:
        return 0
    try:
        return int(urlsafe_b64decode(token).decode().removeprefix("from:"))
    except ValueError:
        raise wire.refuse(3, "Invalid page token.") from None
