"""The server of the dashboard: one page on loopback, and the documents of --json that the page reads every few seconds.

It only reads. The page has no data of its own, and the documents need the token that is in the fragment of the page's
address, which a browser sends to no server. A request for another host is refused, so a site that points its name at
127.0.0.1 reads nothing.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tpudeploy.domain.errors import Bug, TpudeployError
from tpudeploy.domain.excerpt import visible
from tpudeploy.loading import name_of

if TYPE_CHECKING:
    from tpudeploy.loading import Profile
    from tpudeploy.workspace import Workspace

LOOPBACK = "127.0.0.1"
_DATA = "/data"
# Seconds between two readings: of the slices and servers as `status --watch` has it, of a plan, and of the states.
_LIVE, _PLAN = 10.0, 300.0
_MOST_STATES = 20
_CLIENT_SECONDS = 10.0
_NONCE_BYTES = 16
_TOKEN_BYTES = 32
_POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Documents:
    """The latest documents of a project, read in a thread of their own: a slow answer of Google's delays no page.

    The thread reads on after every error. `on_bug` gets each one that tpudeploy does not expect, once.
    """

    def __init__(
        self, workspace: Workspace, profiles: tuple[Profile, ...], on_bug: Callable[[], Bug] | None = None
    ) -> None:
        self._on_bug = on_bug
        self._bugs: dict[tuple[str, str], Bug] = {}
        self._workspace = workspace
        self._profiles = profiles
        self._parts: dict[str, Any] = {}
        self._errors: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dashboard", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(_CLIENT_SECONDS)

    def latest(self) -> Mapping[str, Any]:
        """Return each document by its command, the error of each that could not be read, and the time."""
        with self._lock:
            return {
                **self._parts,
                "errors": dict(self._errors),
                "now": time.time(),
                "profiles": [Path(name_of(profile)).name for profile in self._profiles],
            }

    def _run(self) -> None:
        planned_at = float("-inf")
        while not self._ended.is_set():
            self._guarded("status", self.read_live)
            if self._profiles and time.monotonic() - planned_at >= _PLAN:
                self._guarded("plan", self.read_plans)
                planned_at = time.monotonic()
            self._ended.wait(_LIVE)

    def read_live(self) -> None:
        """Read slices, boots and servers, and the states of the deployments that were read."""
        workspace, profiles = self._workspace, self._profiles
        self._read("status", lambda: workspace.status(profiles, timeline=True).to_dict())
        deployments = self._parts.get("status", {}).get("deployments", [])
        self._read_metrics([each["name"] for each in deployments])
        names = [each["name"] for each in deployments if each["error"] is None]
        self._read("history", lambda: [self._history(name) for name in names])

    def _read_metrics(self, names: list[str]) -> None:
        """Read the metrics of all published endpoints; without one there are none, which is no error."""
        if any(self._workspace.endpoint(name) for name in names):
            self._read("metrics", lambda: self._workspace.metrics().to_dict())
        else:
            with self._lock:
                self._parts.pop("metrics", None)

    def read_plans(self) -> None:
        """Read the plan and the drift of the profiles."""
        self._read("plan", lambda: self._workspace.plan(self._profiles).to_dict())
        self._read("drift", lambda: self._workspace.drift(self._profiles).to_dict())

    def _history(self, name: str) -> Mapping[str, Any]:
        history: dict[str, Any] = self._workspace.state_history(name).to_dict()
        return {**history, "states": history["states"][:_MOST_STATES]}

    def _read(self, name: str, read: Callable[[], Any]) -> None:
        self._guarded(name, lambda: self._keep(name, read()))

    def _guarded(self, name: str, read: Callable[[], None]) -> None:
        """Read a document, or show why it could not be read."""
        try:
            read()
        except TpudeployError as error:
            self._show(name, error)
        except Exception as failure:  # noqa: BLE001 - the page must not go stale without a word, whatever it is
            self._show(name, self._bug(name, failure))

    def _bug(self, name: str, failure: Exception) -> Bug:
        """Return the error for an exception that is being handled. The same one is reported once."""
        key = (name, repr(failure))
        if key not in self._bugs:
            self._bugs[key] = self._on_bug() if self._on_bug is not None else Bug(f"this is a bug: {failure!r}")
        return self._bugs[key]

    def _show(self, name: str, error: TpudeployError) -> None:
        with self._lock:
            self._errors[name] = error.to_dict()

    def _keep(self, name: str, document: Any) -> None:
        with self._lock:
            self._parts[name] = document
            self._parts[f"{name}_at"] = time.time()
            self._errors.pop(name, None)


class DashboardServer:
    """The web server. `address` is that of the page, with the token."""

    def __init__(self, documents: Documents, port: int) -> None:
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._server = ThreadingHTTPServer((LOOPBACK, port), _handler(documents, self.token))
        self._server.daemon_threads = True
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


def _handler(documents: Documents, token: str) -> type[BaseHTTPRequestHandler]:
    class DashboardHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        server_version = "tpudeploy"
        sys_version = ""
        timeout = _CLIENT_SECONDS

        def do_GET(self) -> None:
            if self.headers.get("Host") not in self._hosts():
                self._reply(HTTPStatus.MISDIRECTED_REQUEST, "text/plain", "This server answers on loopback only.\n")
            elif self.path == "/":
                nonce = secrets.token_urlsafe(_NONCE_BYTES)
                self._reply(HTTPStatus.OK, "text/html", _page(nonce), nonce)
            elif self.path != _DATA:
                self._reply(HTTPStatus.NOT_FOUND, "text/plain", "There is no such page.\n")
            elif not self._has_token():
                self._reply(HTTPStatus.UNAUTHORIZED, "text/plain", "Open the address that tpudeploy printed.\n")
            else:
                text = visible(json.dumps(documents.latest(), ensure_ascii=False))
                self._reply(HTTPStatus.OK, "application/json", text)

        def _hosts(self) -> tuple[str, ...]:
            assert isinstance(self.server, ThreadingHTTPServer)
            port = self.server.server_port
            return f"{LOOPBACK}:{port}", f"localhost:{port}"

        def _has_token(self) -> bool:
            credentials = self.headers.get("Authorization", "").encode()
            return hmac.compare_digest(credentials, f"Bearer {token}".encode())

        def _reply(self, status: HTTPStatus, kind: str, text: str, nonce: str = "") -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Security-Policy", _POLICY.format(nonce=nonce))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("Cross-Origin-Resource-Policy", "same-origin")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Print nothing for a request: the terminal shows the address of the page."""

    return DashboardHandler


def _page(nonce: str) -> str:
    from tpudeploy.catalog.backends import BACKENDS
    from tpudeploy.domain.accelerator import DEFAULT_BACKEND
    from tpudeploy.views.page import render_live

    # By their names in a sentence, without that of most slices.
    apis = {backend: row.api for backend, row in BACKENDS.items() if backend is not DEFAULT_BACKEND}
    values = {"data": _DATA, "apis": apis, "stale_seconds": 3 * _LIVE}
    return render_live("dashboard.html.j2", __package__, title="tpudeploy", nonce=nonce, **values)
