"""How Cloud Storage says no: an older shape of error than Cloud TPU's, and plain text where media was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpudeploy.emulator.server import Reply

# The service's word for each status. Those of 500 and above, and 501's, are UNVERIFIED.
_REASONS: Mapping[int, str] = {
    400: "invalid",
    401: "authError",
    403: "forbidden",
    404: "notFound",
    412: "conditionNotMet",
    429: "rateLimitExceeded",
    500: "internalError",
    501: "notImplemented",
    503: "backendError",
}
_NOT_MODIFIED = 304


class Refused(Exception):
    """Ends a request with this status."""

    def __init__(self, http: int, message: str) -> None:
        super().__init__(message)
        self.http = http
        self.message = message


def refusal(http: int, message: str, *, media: bool) -> Reply:
    if http == _NOT_MODIFIED:
        return Reply(http=http, body="")
    if media:
        return Reply(http=http, body=message, content_type="text/html; charset=UTF-8")
    row: dict[str, Any] = {"message": message, "domain": "global", "reason": _REASONS.get(http, "invalid")}
    return Reply(http=http, body={"error": {"code": http, "message": message, "errors": [row]}})
