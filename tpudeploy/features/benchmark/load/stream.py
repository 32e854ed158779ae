"""One connection of the load client: it writes a request, timestamps the response and reports its end.

Only the event with the usage and unexpected events are parsed as JSON. The pieces of a stream are counted and not
parsed, because parsing them would be most of the client's work.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

from httptools import HttpParserError, HttpResponseParser

from tpudeploy.domain.strict_json import parse
from tpudeploy.features.benchmark.offer import RequestRecord

clock = time.perf_counter
# vLLM writes JSON without spaces; other servers write it with spaces.
_PIECE = (b'"choices":[{', b'"choices": [{')
_USAGE = (b'"usage":{', b'"usage": {')
_DONE = b"[DONE]"
_MOST_BYTES = 4096  # of an error's body
# Of a line, and of a response: a token takes about 300 bytes, and no cell requests a million of them.
_LINE_BYTES, _RESPONSE_BYTES = 1 << 20, 256 << 20


class Stream(asyncio.Protocol):
    """A connection. It calls `on_end` once for each `ask`, from within the loop; the callee may `ask` again at once."""

    def __init__(self, on_end: Callable[[Stream, RequestRecord], None]) -> None:
        self._on_end = on_end
        self._transport: asyncio.Transport | None = None
        self._closing_connections = 0
        self.turn = -1
        self.failures = 0  # in a row
        self.asked_at: float | None = None
        self.refusal = ""  # why it could not be connected

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    def ask(self, request: list[bytes]) -> None:
        assert self._transport is not None
        self.turn += 1
        self._status = 0
        self._rest = b""
        self._bytes = 0
        self._refusal = bytearray()
        self._arrivals: list[float] = []
        self._usage: dict[str, Any] = {}
        self._error = ""
        self._is_done = False
        self.asked_at = clock()
        self._transport.writelines(request)

    def refuse(self) -> None:
        """Report a request that could not be sent, because there is no connection."""
        self.turn += 1
        self.failures += 1
        now = clock()
        self._on_end(
            self,
            RequestRecord(
                turn=self.turn,
                sent_at=now,
                ended_at=now,
                arrivals=(),
                prompt_tokens=None,
                output_tokens=None,
                error=self.refusal,
            ),
        )

    def abort(self, why: str) -> None:
        """Close the connection, and end the request in flight with this error."""
        self.close()  # comes first, because the callee of `on_end` would otherwise ask again on this connection
        self._fail(why)

    def close(self) -> None:
        if self._transport is not None:
            self._closing_connections += 1
            self._transport.abort()
            self._transport = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's class inherits from none of asyncio's
        self._parser = HttpResponseParser(self)

    def data_received(self, data: bytes) -> None:
        self._now = clock()
        self._bytes += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserError as cause:
            self.abort(f"not HTTP: {cause}")
        else:
            if self._is_under_way and (self._bytes > _RESPONSE_BYTES or len(self._rest) > _LINE_BYTES):
                self.abort("the response is longer than any stream of tokens")

    def connection_lost(self, exc: Exception | None) -> None:
        if self._closing_connections:
            self._closing_connections -= 1  # we closed it, and the next connection may exist already
            return
        self._transport = None
        if self._is_under_way and self._is_done:
            self._end("")  # a server without keep-alive ends a stream by closing it
        self._fail(f"the connection was closed{f' ({exc})' if exc else ''}")

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        if self._status != HTTPStatus.OK:
            self._refusal += body[: _MOST_BYTES - len(self._refusal)]
            return
        *lines, self._rest = (self._rest + body if self._rest else body).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._event(line)

    def on_message_complete(self) -> None:
        if not self._parser.should_keep_alive():
            self.close()
        if self._status == HTTPStatus.OK:
            self._end(self._error or ("" if self._arrivals else "the stream had no tokens"))
        else:
            self._end(f"HTTP {self._status}: {_message(bytes(self._refusal))}")

    def _event(self, line: bytes) -> None:
        is_piece = _PIECE[0] in line or _PIECE[1] in line
        if is_piece:
            self._arrivals.append(self._now)
        if _USAGE[0] in line or _USAGE[1] in line or not is_piece:
            self._read(line.removeprefix(b"data:").strip())

    def _read(self, data: bytes) -> None:
        if data == _DONE:
            self._is_done = True
            return
        try:
            tree = parse(data)
            self._usage = tree.get("usage") or self._usage
            if "error" in tree:
                self._error = _message(data)
        except (ValueError, AttributeError):
            self._error = f"not an event of vLLM: {data[:80].decode(errors='replace')}"

    @property
    def _is_under_way(self) -> bool:
        return self.asked_at is not None

    def _fail(self, why: str) -> None:
        if self._is_under_way:
            self._end(why)

    def _end(self, error: str) -> None:
        assert self.asked_at is not None
        output_tokens, prompt_tokens = _count(self._usage, "completion_tokens"), _count(self._usage, "prompt_tokens")
        self.failures = self.failures + 1 if error else 0
        answer = RequestRecord(
            turn=self.turn,
            sent_at=self.asked_at,
            ended_at=clock() if error else self._now,
            # The last piece may have no token and only the reason why the stream ends.
            arrivals=tuple(self._arrivals if output_tokens is None else self._arrivals[:output_tokens]),
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens if output_tokens is not None else len(self._arrivals),
            error=error,
        )
        self.asked_at = None
        self._on_end(self, answer)


def _count(usage: object, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) else None


def _message(body: bytes) -> str:
    """Return the message in an error's body."""
    try:
        tree = parse(body)
        error = tree.get("error", tree)
        return str(error.get("message", error) if isinstance(error, dict) else error)
    except (ValueError, AttributeError):
        return body[:200].decode(errors="replace")
