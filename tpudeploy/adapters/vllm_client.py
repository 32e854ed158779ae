"""A plain client of vLLM's OpenAI-style API: is it up, what does it serve, complete this. Not a load generator."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from secrets import token_hex
from typing import Any, Self
from urllib.parse import urlsplit

from tpudeploy.adapters.http_budget import Budget, HttpConnection, TlsConnection, reason, redirect_of
from tpudeploy.domain.pace import LOOP_PATH
from tpudeploy.domain.strict_json import parse
from tpudeploy.domain.task import TASKS, Task, TaskReply, TaskTrial, is_absent_route

# /metrics has 50 KB. A stream has about 300 bytes a token, and no answer has a million tokens.
_SHORT_BYTES, _STREAM_BYTES, _LINE_BYTES = 4 << 20, 256 << 20, 1 << 20
_LOOP_SECONDS = 120.0
_SECONDS_PER_TOKEN = 0.1  # of a stream; a slower one is of no use
_MORE_PIECES = 16  # than tokens were requested; vLLM sends one or more tokens in a piece, and a few without text
_INSTANT = 1e-4  # seconds per token; no engine is as fast for one stream, and what arrived at one instant has no rate
PROBE_MARK = "tpudeploy-probe"  # in the URL, which uvicorn writes to the access log (0.54), and routes ignore
# Of a web page, as a proxy, a portal or a default site answers: how it begins, and its title.
_PAGES, _TAG_BYTES, _TITLE_BYTES = (b"<!doctype html", b"<html"), 16, 4096
_TITLE = re.compile(rb"<title[^>]*>([^<]{1,100})", re.IGNORECASE)
_STAND_IN = "tpudeploy-emulator"  # what its HTTP server calls itself; vLLM's is uvicorn


class NoAnswer(Exception):
    """There was no HTTP answer: the connection was refused, timed out or cut off, as the message says.

    `reached`: the server accepted the connection. `closed`: it closed it without a byte, as does a tunnel to a port
    without a server.
    """

    def __init__(self, message: str, *, reached: bool = False, closed: bool = False) -> None:
        super().__init__(message)
        self.reached = reached
        self.closed = closed


class BadAnswer(Exception):
    """An HTTP answer that is not the expected one."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"HTTP {status}: {message}")
        self.status = status
        self.message = message


class NothingSaid(BadAnswer):
    """A completion without any text."""

    def __init__(self) -> None:
        super().__init__(HTTPStatus.OK, "the completion is empty")


def _ignore_piece(_: str) -> None:
    """Ignore a piece of text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A completion. `pieces` are (seconds since the request, text) in order, at least one.

    The tokens are the server's own count, None where it reports none.
    """

    text: str
    pieces: tuple[tuple[float, str], ...]
    prompt_tokens: int | None
    completion_tokens: int | None
    endpoint: str

    @property
    def seconds_to_first(self) -> float:
        return self.pieces[0][0]

    @property
    def seconds(self) -> float:
        return self.pieces[-1][0]

    @property
    def tokens_per_second(self) -> float | None:
        """The rate over the whole answer, including the wait for its first token."""
        return _rate(self.completion_tokens, self.seconds)

    @property
    def tokens_per_second_then(self) -> float | None:
        """The rate from the first token on, or None if everything came at once."""
        later_tokens = None if self.completion_tokens is None else self.completion_tokens - 1
        return _rate(later_tokens, self.seconds - self.seconds_to_first)


def _rate(tokens: int | None, seconds: float) -> float | None:
    """Return tokens per second, or None where they arrived together, as from a proxy that collects a stream."""
    return None if tokens is None or seconds <= tokens * _INSTANT else tokens / seconds


class VllmClient:
    """One endpoint. `url` is http(s)://host:port, without a path.

    `timeout` is the seconds that a response may take. Of a stream, it is the longest wait for the next piece.

    With `probes`, each POST has a mark in its URL, by which the machine tells it from a user's request
    (templates/boot/idle.sh).

    In a `with` block, which belongs to one thread, the requests share a connection; elsewhere each one has its own.
    """

    def __init__(self, url: str, *, api_key: str | None = None, timeout: float = 10.0, probes: bool = False) -> None:
        self.url = url
        self._probes = probes
        self._api_key = api_key
        self._timeout = timeout
        self._shared: HttpConnection | TlsConnection | None = None

    def __enter__(self) -> Self:
        self._shared = self._connection()
        return self

    def __exit__(self, *_: object) -> None:
        if self._shared is not None:
            self._shared.close()
        self._shared = None

    def wait_up_to(self, seconds: float) -> None:
        """Let each response from now on take this long, also on the connection that is open."""
        self._timeout = seconds
        if self._shared is not None:
            self._shared.timeout = seconds

    def refusal_of_health(self) -> BadAnswer | None:
        """Return what /health answers instead of 200, or None. Raise `NoAnswer`."""
        try:
            self._text("GET", "/health")
        except BadAnswer as answer:
            return answer
        return None

    def models(self) -> tuple[str, ...]:
        """Return the names of the served models. Raise `NoAnswer` or `BadAnswer` (401: a key is required)."""
        with _expected():
            return tuple(str(m["id"]) for m in self.described())

    def described(self) -> tuple[Mapping[str, Any], ...]:
        """Return the entries of /v1/models. Raise `NoAnswer` or `BadAnswer`."""
        with _expected():
            return tuple(dict(m) for m in self._json("GET", "/v1/models")["data"])

    def version(self) -> str:
        """Raise `NoAnswer` or `BadAnswer`."""
        with _expected():
            return str(self._json("GET", "/version")["version"])

    def is_stand_in(self) -> bool:
        """Return whether the emulator's stand-in answers there: no model runs. False where nothing answers."""
        try:
            with self._exchange("GET", "/version", None) as response:
                return response.getheader("Server", "").startswith(_STAND_IN)
        except NoAnswer:
            return False

    def emulated_loop(self, offer: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return what a client of this load would see of the emulator's stand-in, None from any other server.

        Raise `NoAnswer` or `BadAnswer`.
        """
        budget = Budget(seconds=_LOOP_SECONDS, size=_STREAM_BYTES)
        with self._exchange("POST", LOOP_PATH, offer, budget) as response:
            if is_absent_route(response.status) or not response.getheader("Server", "").startswith(_STAND_IN):
                response.read()
                return None
            text = _content(response)
        with _expected():
            return dict(parse(text))

    def metrics(self) -> str:
        """Return /metrics in Prometheus' text format. Raise `NoAnswer` or `BadAnswer`."""
        return self._text("GET", "/metrics").decode("utf-8", "replace")

    def takes_tokens(self, model: str, tokens: Sequence[int]) -> None:
        """Ask for one token after a prompt of token ids. Raise `NoAnswer`, or `BadAnswer` with why it is refused."""
        body = {"model": model, "prompt": list(tokens), "max_tokens": 1}
        with _expected():
            self._json("POST", "/v1/completions", body)

    def complete(
        self,
        model: str,
        prompt: str,
        *,
        max_tokens: int,
        now: Any,
        sampling: Mapping[str, Any] | None = None,
        system: str = "",
        on_piece: Callable[[str], None] = _ignore_piece,
    ) -> Completion:
        """Return a chat completion, or a plain one if the model has no chat template. `now` returns seconds.

        `system` is the system prompt; it needs a chat template. `sampling` are more fields of the request, such as
        `temperature`. `on_piece` is called with each piece of text as it arrives. Raise `NoAnswer` or `BadAnswer`.
        """
        with _expected():
            more = {"max_tokens": max_tokens, **(sampling or {})}
            try:
                head = [{"role": "system", "content": system}] if system else []
                chat = {"model": model, "messages": [*head, {"role": "user", "content": prompt}], **more}
                return self._stream("/v1/chat/completions", chat, now, on_piece)
            except BadAnswer as answer:
                if system or answer.status != HTTPStatus.BAD_REQUEST or "chat template" not in answer.message:
                    raise
            return self._stream("/v1/completions", {"model": model, "prompt": prompt, **more}, now, on_piece)

    def converse(
        self,
        model: str,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        now: Any,
        sampling: Mapping[str, Any] | None = None,
        on_piece: Callable[[str], None] = _ignore_piece,
    ) -> Completion:
        """Return the next answer of a conversation, whose messages have a role and content. Raise as `complete`."""
        body = {"model": model, "messages": [*messages], "max_tokens": max_tokens, **(sampling or {})}
        with _expected():
            return self._stream("/v1/chat/completions", body, now, on_piece)

    def answer(self, task: Task, model: str, prompt: str, *, max_tokens: int, now: Any) -> Completion | TaskReply:
        """Return a proven answer of a server's task: a completion, or what its first pooling route says.

        A route that the server does not have leads to the next one of the task. Raise `NoAnswer`, or `BadAnswer` with
        the first refusal.
        """
        facts = TASKS[task]
        refusal: BadAnswer | None = None
        if facts.completions:
            try:
                return self.complete(model, prompt, max_tokens=max_tokens, now=now)
            except BadAnswer as answer:
                if not facts.trials or not is_absent_route(answer.status):
                    raise
                refusal = answer
        for trial in facts.trials:
            try:
                return self.prove(trial, model, prompt)
            except BadAnswer as answer:
                refusal = refusal or answer
                if not is_absent_route(answer.status):
                    raise
        assert refusal is not None  # each task has a request
        raise refusal

    def prove(self, trial: TaskTrial, model: str, prompt: str) -> TaskReply:
        """Return what a pooling route says. Raise `NoAnswer`, and `BadAnswer` too where no finite number comes back."""
        tree = self._json("POST", trial.path, trial.body(model, prompt))
        try:
            return trial.prove(tree)
        except ValueError as cause:
            raise BadAnswer(HTTPStatus.OK, str(cause)) from cause

    def _stream(self, path: str, body: Mapping[str, Any], now: Any, on_piece: Callable[[str], None]) -> Completion:
        began = now()
        pieces: list[tuple[float, str]] = []
        usage: Mapping[str, Any] = {}
        request = {**body, "stream": True, "stream_options": {"include_usage": True}}
        tokens = int(body["max_tokens"])
        budget = Budget(seconds=self._timeout + tokens * _SECONDS_PER_TOKEN, size=_STREAM_BYTES)
        for number, chunk in enumerate(self._chunks(path, request, budget)):
            if number > tokens + _MORE_PIECES:
                raise BadAnswer(HTTPStatus.OK, f"it sends more than the {tokens} tokens that were requested")
            usage = chunk.get("usage") or usage
            for choice in chunk.get("choices", ()):
                piece = choice.get("text") or choice.get("delta", {}).get("content") or ""
                piece = piece or choice.get("delta", {}).get("reasoning") or ""
                if piece:
                    pieces.append((now() - began, piece))
                    on_piece(piece)
        if not pieces:
            raise NothingSaid
        return Completion(
            text="".join(p for _, p in pieces),
            pieces=tuple(pieces),
            prompt_tokens=_token_count(usage, "prompt_tokens"),
            completion_tokens=_token_count(usage, "completion_tokens"),
            endpoint=path,
        )

    def _chunks(self, path: str, body: Mapping[str, Any], budget: Budget) -> Iterator[dict[str, Any]]:
        try:
            with self._exchange("POST", path, body, budget) as response:
                if response.status != HTTPStatus.OK:
                    raise _bad(response)
                if page := _web_page(response, response.peek(_TITLE_BYTES)):
                    raise BadAnswer(HTTPStatus.OK, page)
                while line := response.readline(_LINE_BYTES):
                    if len(line) == _LINE_BYTES:
                        raise BadAnswer(HTTPStatus.OK, f"a line of the stream is longer than {_LINE_BYTES >> 20} MiB")
                    data = line.strip().removeprefix(b"data:").strip()
                    if data == b"[DONE]":
                        return
                    if data and line.startswith(b"data:"):
                        chunk = parse(data)
                        if "error" in chunk:
                            raise BadAnswer(int(chunk["error"].get("code", 500)), str(chunk["error"].get("message")))
                        yield chunk
        except ValueError as cause:
            raise NoAnswer(reason(cause), reached=True) from cause

    def _json(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        with self._exchange(method, path, body) as response:
            text = _content(response)
            page = _web_page(response, text)
        try:
            tree: dict[str, Any] = parse(text)
        except ValueError as cause:
            raise BadAnswer(HTTPStatus.OK, page or "not JSON") from cause
        return tree

    def _text(self, method: str, path: str) -> bytes:
        with self._exchange(method, path, None) as response:
            return _content(response)

    @contextmanager
    def _exchange(
        self, method: str, path: str, body: Mapping[str, Any] | None, budget: Budget | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request, and return the response to read. Raise `NoAnswer`, also while the response is read."""
        connection = self._shared or self._connection()
        connection.budget = budget or Budget(seconds=self._timeout, size=_SHORT_BYTES)
        is_complete = False
        try:
            mark = f"?{PROBE_MARK}={token_hex(8)}" if self._probes and method == "POST" else ""
            response = self._send(connection, method, f"{path}{mark}", body)
            yield response
            is_complete = response.isclosed()
        except (OSError, http.client.HTTPException) as cause:
            closed = isinstance(cause, ConnectionError | http.client.BadStatusLine)
            raise NoAnswer(reason(cause), reached=connection.is_reached, closed=closed) from cause
        finally:
            # A connection is used again only after a whole response; http.client opens a closed one when it is needed.
            if connection is not self._shared or not is_complete:
                connection.close()

    def _connection(self) -> HttpConnection | TlsConnection:
        where = urlsplit(self.url)
        if where.scheme == "https":
            return TlsConnection(where.hostname or "", where.port or 443, timeout=self._timeout)
        return HttpConnection(where.hostname or "", where.port or 80, timeout=self._timeout)

    def _send(
        self, connection: HttpConnection | TlsConnection, method: str, path: str, body: Mapping[str, Any] | None
    ) -> http.client.HTTPResponse:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if self._api_key is not None:
            headers["Authorization"] = f"Bearer {self._api_key}"
        content = json.dumps(body) if body is not None else None
        may_be_closed = connection.sock is not None
        try:
            connection.request(method, path, content, headers)
            return connection.getresponse()
        except ConnectionError:
            # A server may close a connection after any response. Sent again, on a new one, no request changes anything:
            # at worst a completion is computed twice.
            if not may_be_closed:
                raise
            connection.close()
            connection.request(method, path, content, headers)
            return connection.getresponse()


def _token_count(usage: Mapping[str, Any], name: str) -> int | None:
    """Return a count of the server's, or None where it reports none. Raise TypeError or ValueError for another form."""
    if name not in usage:
        return None
    count = int(usage[name])
    if count < 0:
        raise ValueError(f"{name} is {count}")
    return count


@contextmanager
def _expected() -> Iterator[None]:
    """Raise `BadAnswer` for answers in another form than vLLM's API, because the server may not be vLLM."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as cause:
        raise BadAnswer(HTTPStatus.OK, "not an answer of vLLM's API") from cause


def _content(response: http.client.HTTPResponse) -> bytes:
    """Return the content of a 200. Raise `BadAnswer` for another status."""
    if response.status != HTTPStatus.OK:
        raise _bad(response)
    return response.read()


def _web_page(response: http.client.HTTPResponse, content: bytes) -> str:
    """Return what a web page is called and which server it is from, or "" for other content."""
    if not content.lstrip()[:_TAG_BYTES].lower().startswith(_PAGES):
        return ""
    title = _TITLE.search(content)
    name = "" if title is None else f' "{" ".join(title[1].decode(errors="replace").split())}"'
    return f"it is the web page{name} of {response.getheader('Server') or 'an unnamed server'}, not vLLM's API"


def _bad(response: http.client.HTTPResponse) -> BadAnswer:
    content = response.read()
    text = content.decode(errors="replace")
    if target := redirect_of(response.getheader("Location", "")):
        return BadAnswer(response.status, target)
    if page := _web_page(response, content):
        return BadAnswer(response.status, page)
    try:
        tree = parse(text)
        error = tree.get("error", tree)
        message = str(error.get("message", error) if isinstance(error, dict) else error)
    except (ValueError, AttributeError):
        message = text[:200]
    return BadAnswer(response.status, message)
