"""Google's wire: error bodies, times, durations. Shapes only; the texts stand in texts.py."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

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
class Status:
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


class Refusal(Exception):
    """Ends a request with an error body."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


def refuse(code: int, message: str, *details: Mapping[str, Any]) -> Refusal:
    return Refusal(Status(code=code, message=message, details=details))


def timestamp(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment(text: str) -> float:
    """Raise ValueError for a text that is no RFC 3339 time."""
    parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is None:
        raise ValueError(text)
    return parsed.timestamp()


def seconds(text: str) -> float:
    """A protobuf duration, e.g. `7200s`. Raise ValueError for anything else."""
    match = _DURATION.fullmatch(text)
    if match is None or abs(float(match[1])) > _LONGEST:
        raise ValueError(text)
    return float(match[1])
