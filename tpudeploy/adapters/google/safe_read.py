"""Reading facts that may be unreadable: the result is the fact, or `Unknown` with the reason. Also lists, by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from tpudeploy.adapters.google.translate import Absent, Exists, PreconditionFailed, translate_read_errors
from tpudeploy.adapters.google.verdicts import disabled_api
from tpudeploy.domain import errors
from tpudeploy.domain.facts import Unknown

T = TypeVar("T")
_PERMISSION = "permission"  # the row of verdicts.py


def safe_read(action: str, read: Callable[[], T], *, role: str = "") -> T | Unknown:
    """Return what `read` returns, or `Unknown` if it fails.

    `action` completes "Could not …". `role` is the IAM role that grants the access.
    """
    try:
        with translate_read_errors(action):
            return read()
    except (Absent, Exists, PreconditionFailed) as cause:
        return Unknown(because=f"Could not {action}: {cause}")
    except errors.CloudError as cause:
        is_denied = isinstance(cause, errors.Denied)
        api = disabled_api(cause.message)
        because = f"Could not {action}: {api} is not enabled." if api else cause.message
        return Unknown(because=because, hint=_hint(cause, role), needs_person=is_denied)


def safe_read_optional(action: str, read: Callable[[], T], *, role: str = "") -> T | Unknown | None:
    """Return what `read` returns, None for a 404, or `Unknown` if it fails otherwise."""

    def or_none() -> T | None:
        try:
            with translate_read_errors(action):
                return read()
        except Absent:
            return None

    return safe_read(action, or_none, role=role)


class SafeReader:
    """Reads many facts in parallel.

    `unavailable` is the reason why nothing can be read. If it is set, each read returns it and sends nothing.
    """

    def __init__(self, pool: ThreadPoolExecutor, unavailable: Unknown | None) -> None:
        self._pool = pool
        self._unavailable = unavailable

    def read(self, action: str, read: Callable[[], T], *, role: str = "") -> Future[T | Unknown]:
        def ask() -> T | Unknown:
            return safe_read(action, read, role=role) if self._unavailable is None else self._unavailable

        return self._pool.submit(ask)

    def read_optional(self, action: str, read: Callable[[], T], *, role: str = "") -> Future[T | Unknown | None]:

        def ask() -> T | Unknown | None:
            return safe_read_optional(action, read, role=role) if self._unavailable is None else self._unavailable

        return self._pool.submit(ask)


def results(futures: Mapping[str, Future[T]]) -> dict[str, T]:
    return {key: future.result() for key, future in futures.items()}


def pages(calls: Any, request: Any, *, next_method: str = "list_next") -> Iterator[dict[str, Any]]:
    """Yield every page of a list. `calls` is the collection that made `request`."""
    while request is not None:
        answer: dict[str, Any] = request.execute(num_retries=0)
        yield answer
        request = getattr(calls, next_method)(request, answer)


def _hint(cause: errors.CloudError, role: str) -> str:
    is_denied = cause.refusal is not None and cause.refusal.kind == _PERMISSION
    return f"{role} lets you see it." if role and is_denied else cause.hint
