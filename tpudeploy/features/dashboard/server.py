"""The server of the dashboard: one page on loopback, the documents that it reads, and its questions to a model.

Nothing but a question leaves the page, and no request changes a deployment. The page has no data of its own; documents
and questions need the token that is in the fragment of the page's address, which a browser sends to no server, and no
other site can send. A request for another host is refused, so a site that points its name at 127.0.0.1 reads nothing.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.domain.accelerator import DEFAULT_BACKEND
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.excerpt import visible
from tpudeploy.features.dashboard.chat_box import MOST_BYTES, PageQuestion, parse_question, stream_answer
from tpudeploy.features.dashboard.latest import LIVE, Documents
from tpudeploy.views.page import render_live, source

LOOPBACK = "127.0.0.1"
_DATA, _LOAD, _LOGS, _CHAT = "/data", "/load", "/logs?", "/chat"
_CLIENT_SECONDS = 10.0
_NONCE_BYTES = 16
_TOKEN_BYTES = 32
_MOST_CHATS = 4  # answers at one time
_JSON = "application/json"
_POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class DashboardServer:
    """The web server. `address` is that of the page, with the token."""

    def __init__(self, documents: Documents, port: int) -> None:
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._server = _HttpServer(documents, self.token, port)
        self.port = self._server.server_port

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/#{self.token}"

    def serve(self) -> None:
        """Answer requests until `stop` is called."""
        self._server.serve_forever(poll_interval=0.2)

    def stop(self) -> None:
        """End `serve`, which runs in another thread."""
        self._server.shutdown()

    def close(self) -> None:
        self._server.server_close()


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, documents: Documents, token: str, port: int) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.documents = documents
        self.token = token
        self.hosts = (f"{LOOPBACK}:{self.server_port}", f"localhost:{self.server_port}")
        self.chats = threading.BoundedSemaphore(_MOST_CHATS)

    def reader(self, path: str) -> Callable[[], Mapping[str, Any]] | None:
        """Return what reads the document of a path, or None for another path."""
        if path.startswith(_LOGS):
            (name,) = parse_qs(path.removeprefix(_LOGS)).get("deployment", [""])[:1]
            return lambda: self.documents.logs(name)
        return {_DATA: self.documents.latest, _LOAD: self.documents.load}.get(path)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "tpudeploy"
    sys_version = ""
    timeout = _CLIENT_SECONDS
    server: _HttpServer

    def do_GET(self) -> None:
        read = self.server.reader(self.path)
        if not self._is_refused(is_known=read is not None or self.path == "/", is_public=self.path == "/"):
            if read is None:
                nonce = secrets.token_urlsafe(_NONCE_BYTES)
                self._reply(HTTPStatus.OK, "text/html", _page(nonce), nonce)
            else:
                self._reply_document(read)

    def do_POST(self) -> None:
        self.close_connection = True  # a body that was not read would be taken for the next request
        if self._is_refused(is_known=self.path == _CHAT):
            return
        size = self.headers.get("Content-Length", "")
        if self.headers.get("Content-Type") != _JSON:
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"A question is {_JSON}.")
        elif not size.isdecimal() or int(size) > MOST_BYTES:
            most = f"A conversation has at most {MOST_BYTES >> 10} KiB."
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, most)
        else:
            self._answer_question(self.rfile.read(int(size)))

    def _is_refused(self, *, is_known: bool, is_public: bool = False) -> bool:
        """Refuse a request for another host, from another site's page, for no page, or without the token."""
        origin = self.headers.get("Origin")
        credentials = self.headers.get("Authorization", "").encode()
        if self.headers.get("Host") not in self.server.hosts:
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "This server answers on loopback only.")
        elif origin is not None and origin not in {f"http://{host}" for host in self.server.hosts}:
            self._refuse(HTTPStatus.FORBIDDEN, "This server answers its own page only.")
        elif not is_known:
            self._refuse(HTTPStatus.NOT_FOUND, "There is no such page.")
        elif not (is_public or hmac.compare_digest(credentials, f"Bearer {self.server.token}".encode())):
            self._refuse(HTTPStatus.UNAUTHORIZED, "Open the address that tpudeploy printed.")
        else:
            return False
        return True

    def _reply_document(self, read: Callable[[], Mapping[str, Any]]) -> None:
        status = HTTPStatus.OK
        try:
            document = read()
        except TpudeployError as error:
            status, document = HTTPStatus.BAD_GATEWAY, error.to_dict()
        self._reply(status, _JSON, visible(json.dumps(document, ensure_ascii=False)))

    def _answer_question(self, body: bytes) -> None:
        try:
            question = parse_question(body)
        except ValueError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, f"{error}.")
            return
        if not self.server.chats.acquire(blocking=False):
            self._refuse(HTTPStatus.TOO_MANY_REQUESTS, f"{_MOST_CHATS} answers are on their way. Wait for one.")
            return
        try:
            with suppress(OSError):  # the page was closed, or a person stopped the answer
                self._head(HTTPStatus.OK, "application/x-ndjson", {"Connection": "close"})
                self._stream(question)
        finally:
            self.server.chats.release()

    def _stream(self, question: PageQuestion) -> None:
        documents = self.server.documents
        profile = documents.profile(question.deployment)
        try:
            speed = stream_answer(documents.workspace, profile, question, lambda piece: self._line(piece=piece))
        except TpudeployError as error:
            self._line(error=error.to_dict())
        else:
            self._line(done=speed)

    def _line(self, **values: object) -> None:
        self.wfile.write(visible(json.dumps(values, ensure_ascii=False)).encode() + b"\n")
        self.wfile.flush()

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        self._reply(status, "text/plain", f"{text}\n")

    def _reply(self, status: HTTPStatus, kind: str, text: str, nonce: str = "") -> None:
        body = text.encode()
        self._head(status, kind, {"Content-Length": str(len(body))}, nonce)
        self.wfile.write(body)

    def _head(self, status: HTTPStatus, kind: str, headers: Mapping[str, str], nonce: str = "") -> None:
        self.send_response(status)
        fixed = {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Security-Policy": _POLICY.format(nonce=nonce),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cache-Control": "no-store",
        }
        for name, value in {**fixed, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Print nothing for a request: the terminal shows the address of the page."""


def _page(nonce: str) -> str:
    # By their names in a sentence, without that of most slices.
    apis = {backend: row.api for backend, row in BACKENDS.items() if backend is not DEFAULT_BACKEND}
    settings = {"apis": apis, "staleAfter": 3 * LIVE}
    values = {"settings": settings, "program": source("dashboard.js", __package__)}
    return render_live("dashboard.html.j2", __package__, nonce=nonce, title="tpudeploy", **values)
