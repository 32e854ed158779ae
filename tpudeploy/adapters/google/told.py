"""Reading what may not be told: an answer, or `Unknown` with the reason. And lists, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from tpudeploy.adapters.google.translate import Absent, Exists, Precondition, looking
from tpudeploy.adapters.google.verdicts import api_named
from tpudeploy.domain import errors
from tpudeploy.domain.facts import Unknown

T = TypeVar("T")
_PERMISSION = "permission"  # the row of verdicts.py


def told(doing: str, read: Callable[[], T], *, role: str = "") -> T | Unknown:
    """What `read` gives. `doing` completes "Could not …"; `role` is the one that lets it be read."""
    try:
        with looking(doing):
            return read()
    except (Absent, Exists, Precondition) as cause:
        return Unknown(because=f"Could not {doing}: {cause}")
    except errors.CloudError as cause:
        denied = isinstance(cause, errors.Denied)
        off = api_named(cause.message)
        because = f"Could not {doing}: {off} is not enabled." if off else cause.message
        return Unknown(because=because, hint=_hint(cause, role), needs_person=denied)


def absent(doing: str, read: Callable[[], T], *, role: str = "") -> T | Unknown | None:
    """The same, where a 404 is an answer: None."""

    def or_none() -> T | None:
        try:
            with looking(doing):
                return read()
        except Absent:
            return None

    return told(doing, or_none, role=role)


class Asking:
    """Many readings at once. `lacking` says why none can be had: then each answers with it, and nothing is sent."""

    def __init__(self, pool: ThreadPoolExecutor, lacking: Unknown | None) -> None:
        self._pool = pool
        self._lacking = lacking

    def told(self, doing: str, read: Callable[[], T], *, role: str = "") -> Future[T | Unknown]:
        def ask() -> T | Unknown:
            return told(doing, read, role=role) if self._lacking is None else self._lacking

        return self._pool.submit(ask)

    def found(self, doing: str, read: Callable[[], T], *, role: str = "") -> Future[T | Unknown | None]:
        """As `absent`: None where there is no such thing."""

        def ask() -> T | Unknown | None:
            return absent(doing, read, role=role) if self._lacking is None else self._lacking

        return self._pool.submit(ask)


def results(of: Mapping[str, Future[T]]) -> dict[str, T]:
    return {key: future.result() for key, future in of.items()}


def pages(calls: Any, request: Any, *, then: str = "list_next") -> Iterator[dict[str, Any]]:
    """Every page of a list. `calls` is the collection that made `request`."""
    while request is not None:
        answer: dict[str, Any] = request.execute(num_retries=0)
        yield answer
        request = getattr(calls, then)(request, answer)


def _hint(cause: errors.CloudError, role: str) -> str:
    is_denied = cause.refusal is not None and cause.refusal.kind == _PERMISSION
    return f"{role} lets you see it." if role and is_denied else cause.hint
