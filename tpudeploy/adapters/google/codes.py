"""google.rpc.Code, and the code of an HTTP status whose body names none."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from http import HTTPStatus


class Code(IntEnum):
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


CODE_BY_STATUS: Mapping[int, Code] = {
    HTTPStatus.BAD_REQUEST: Code.INVALID_ARGUMENT,
    HTTPStatus.UNAUTHORIZED: Code.UNAUTHENTICATED,
    HTTPStatus.FORBIDDEN: Code.PERMISSION_DENIED,
    HTTPStatus.NOT_FOUND: Code.NOT_FOUND,
    HTTPStatus.REQUEST_TIMEOUT: Code.DEADLINE_EXCEEDED,
    HTTPStatus.CONFLICT: Code.ALREADY_EXISTS,
    HTTPStatus.PRECONDITION_FAILED: Code.FAILED_PRECONDITION,
    HTTPStatus.TOO_MANY_REQUESTS: Code.RESOURCE_EXHAUSTED,
    HTTPStatus.INTERNAL_SERVER_ERROR: Code.INTERNAL,
    HTTPStatus.NOT_IMPLEMENTED: Code.UNIMPLEMENTED,
    HTTPStatus.BAD_GATEWAY: Code.UNAVAILABLE,
    HTTPStatus.SERVICE_UNAVAILABLE: Code.UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT: Code.DEADLINE_EXCEEDED,
}
# The reasons beside the text of an error of Compute Engine that say more than its HTTP status: 403 stands for a quota
# and a rate limit too, and 503 for a zone without capacity (cloud.google.com/compute/docs, on bulk creation and on
# quotas).
CODE_BY_REASON: Mapping[str, Code] = {
    "insufficientCapacity": Code.RESOURCE_EXHAUSTED,
    "quotaExceeded": Code.RESOURCE_EXHAUSTED,
    "rateLimitExceeded": Code.RESOURCE_EXHAUSTED,
    "userRateLimitExceeded": Code.RESOURCE_EXHAUSTED,
    "QUOTA_EXCEEDED": Code.RESOURCE_EXHAUSTED,
    "RATE_LIMIT_EXCEEDED": Code.RESOURCE_EXHAUSTED,
    "ZONE_RESOURCE_POOL_EXHAUSTED": Code.RESOURCE_EXHAUSTED,
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": Code.RESOURCE_EXHAUSTED,
}
TRANSIENT = frozenset({Code.CANCELLED, Code.DEADLINE_EXCEEDED, Code.ABORTED, Code.INTERNAL, Code.UNAVAILABLE})
