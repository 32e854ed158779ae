"""A request and a response, for everything on a node that speaks HTTP."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tpudeploy.emulator.machine.sleepers import never


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Header names are in lower case. `is_gone`: whether the client has hung up meanwhile.

    `patience` is for how many seconds of the node's clock the client waits.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_gone: Callable[[], bool] = never
    patience: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def text(words: str, status: int = 200) -> Response:
    return Response(status=status, body=words.encode(), headers={"Content-Type": "application/text"})


def as_json(tree: object, status: int = 200) -> Response:
    body = json.dumps(tree, ensure_ascii=False).encode()
    return Response(status=status, body=body, headers={"Content-Type": "application/json"})
