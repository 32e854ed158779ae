"""The budget of responses that `requests` reads: for GitHub, and for Google's clients that are made on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from tpudeploy.adapters.http_budget import Budget, MeteredConnection

_PIECE = 1 << 16


class BudgetAdapter(HTTPAdapter):
    """Sends requests over metered connections. A body that the caller does not stream is bounded after decoding too."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._pools = {
            "http": _pool(HTTPConnectionPool, HTTPConnection, budget),
            "https": _pool(HTTPSConnectionPool, HTTPSConnection, budget),
        }
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = self._pools

    def proxy_manager_for(self, *arguments: Any, **options: Any) -> Any:
        manager = super().proxy_manager_for(*arguments, **options)
        manager.pool_classes_by_scheme = self._pools
        return manager

    def send(self, request: Any, stream: bool = False, **options: Any) -> requests.Response:  # type: ignore[override]  # what is not read here is passed on
        response = super().send(request, stream=stream, **options)
        if not stream:
            response._content = b"".join(self._pieces(response))  # noqa: SLF001  as `content` itself would set it
            response._content_consumed = True  # type: ignore[attr-defined]  # noqa: SLF001  as above
        return response

    def _pieces(self, response: requests.Response) -> Iterator[bytes]:
        remaining = self._budget.size
        for piece in response.iter_content(_PIECE):
            remaining -= len(piece)
            if remaining < 0:
                response.close()
                raise requests.ConnectionError(f"the response is longer than {self._budget.size >> 20} MiB")
            yield piece


def _pool(pool: type, connection: type, budget: Budget) -> type:
    metered = type(f"Metered{connection.__name__}", (MeteredConnection, connection), {"budget": budget})
    return type(f"Metered{pool.__name__}", (pool,), {"ConnectionCls": metered})


def limit(session: requests.Session, budget: Budget) -> None:
    """Let every response of this session stay within a budget."""
    session.mount("https://", BudgetAdapter(budget))
    session.mount("http://", BudgetAdapter(budget))
