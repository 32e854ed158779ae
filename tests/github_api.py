"""GitHub's REST API on loopback, as far as pull requests, issues and commits go: paths, paging, limits, refusals."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

LONGEST = 65_536
REPOSITORY = "acme/models"
TOKEN = "a-token"
BOT = "github-actions[bot]"


@dataclass(kw_only=True)
class Trouble:
    """The next `times` calls that match are answered so; `after` them being done, where the reply is to be lost."""

    method: str
    path: str
    times: int = 1
    status: int = 503
    message: str = "in trouble"
    headers: dict[str, str] = field(default_factory=dict)
    is_done: bool = False


@dataclass(kw_only=True)
class GitHubApi:
    """What a repository holds, and every call that was made of it."""

    url: str = ""
    login: str = BOT
    comments: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    issues: list[dict[str, Any]] = field(default_factory=list)
    statuses: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    checks: list[dict[str, Any]] = field(default_factory=list)
    pulls: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    ids: int = 1000

    def says(self, author: str, pull: int, body: str) -> dict[str, Any]:
        """A comment by anybody."""
        self.ids += 1
        page = f"https://github.example/{REPOSITORY}/pull/{pull}#issuecomment-{self.ids}"
        made = {"id": self.ids, "user": {"login": author}, "body": body, "html_url": page}
        self.comments.setdefault(pull, []).append(made)
        return made

    def merges(self, pull: int, commit: str) -> None:
        merged = {"number": pull, "merged_at": "2026-11-21T00:00:00Z", "merge_commit_sha": commit}
        self.pulls.setdefault(commit, []).append(merged)

    def by(self, author: str, pull: int) -> list[str]:
        return [c["body"] for c in self.comments.get(pull, []) if c["user"]["login"] == author]

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        for pattern, deeds in _ROUTES:
            matched = re.fullmatch(f"/repos/{REPOSITORY}/{pattern}", path)
            if matched is not None and method in deeds:
                return deeds[method](self, query, body, *matched.groups())
        return 404, {"message": "Not Found"}


def _comments(api: GitHubApi, query: Any, body: Any, issue: str) -> tuple[int, Any]:
    return 200, api.comments.get(int(issue), [])


def _write(api: GitHubApi, query: Any, body: Any, issue: str) -> tuple[int, Any]:
    return _too_long(body) or (201, api.says(api.login, int(issue), body["body"]))


def _edit(api: GitHubApi, query: Any, body: Any, number: str) -> tuple[int, Any]:
    for known in (c for comments in api.comments.values() for c in comments):
        if known["id"] == int(number):
            return _too_long(body) or (200, _updated(known, body))
    return 404, {"message": "Not Found"}


def _issues(api: GitHubApi, query: Any, body: Any) -> tuple[int, Any]:
    (label,), (state,) = query["labels"], query["state"]
    return 200, [i for i in api.issues if label in i["labels"] and i["state"] == state]


def _open(api: GitHubApi, query: Any, body: Any) -> tuple[int, Any]:
    api.ids += 1
    made = {"number": api.ids, "state": "open", "user": {"login": api.login}, **body}
    api.issues.append(made)
    return _too_long(body) or (201, made)


def _change(api: GitHubApi, query: Any, body: Any, number: str) -> tuple[int, Any]:
    known = next(i for i in api.issues if i["number"] == int(number))
    return _too_long(body) or (200, _updated(known, body))


def _judge(api: GitHubApi, query: Any, body: Any, commit: str) -> tuple[int, Any]:
    if body["state"] not in {"error", "failure", "pending", "success"} or len(body["description"]) > 140:
        return 422, {"message": "Validation Failed"}
    api.statuses.setdefault(commit, []).append(body)
    return 201, body


def _check(api: GitHubApi, query: Any, body: Any) -> tuple[int, Any]:
    api.checks.append(body)
    return 201, body


def _pulls(api: GitHubApi, query: Any, body: Any, commit: str) -> tuple[int, Any]:
    return 200, api.pulls.get(commit, [])


def _commits(api: GitHubApi, query: Any, body: Any) -> tuple[int, Any]:
    """From the one that is asked for back: `history` has the latest last."""
    (commit,) = query["sha"]
    known = api.history[: api.history.index(commit) + 1] if commit in api.history else [commit]
    return 200, [{"sha": each} for each in reversed(known)]


def _updated(known: dict[str, Any], body: Any) -> dict[str, Any]:
    known.update(body)
    return known


def _too_long(body: Any) -> tuple[int, Any] | None:
    if len(body.get("body", "")) > LONGEST:
        return 422, {"message": f"body is too long (maximum is {LONGEST} characters)"}
    return None


_Deed = Callable[..., tuple[int, Any]]
_ROUTES: list[tuple[str, dict[str, _Deed]]] = [
    (r"issues/(\d+)/comments", {"GET": _comments, "POST": _write}),
    (r"issues/comments/(\d+)", {"PATCH": _edit}),
    (r"issues", {"GET": _issues, "POST": _open}),
    (r"issues/(\d+)", {"PATCH": _change}),
    (r"statuses/(\w+)", {"POST": _judge}),
    (r"check-runs", {"POST": _check}),
    (r"commits", {"GET": _commits}),
    (r"commits/(\w+)/pulls", {"GET": _pulls}),
]


class _Handler(BaseHTTPRequestHandler):
    api: ClassVar[GitHubApi]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PATCH(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Nobody reads it."""

    def _serve(self) -> None:
        api, split = self.api, urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        api.calls.append(f"{self.command} {self.path}")
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._reply(401, {"message": "Bad credentials"}, {})
            return
        trouble = next((t for t in api.troubles if t.method == self.command and re.search(t.path, split.path)), None)
        if trouble is not None:
            trouble.times -= 1
            if not trouble.times:
                api.troubles.remove(trouble)
            if trouble.is_done:
                api.answer(self.command, split.path, parse_qs(split.query), body)
                self.close_connection = True
                return
            self._reply(trouble.status, {"message": trouble.message}, trouble.headers)
            return
        query = parse_qs(split.query)
        status, tree = api.answer(self.command, split.path, query, body)
        headers: dict[str, str] = {}
        if isinstance(tree, list):
            tree, headers = self._page(tree, query)
        self._reply(status, tree, headers)

    def _page(self, rows: list[Any], query: dict[str, list[str]]) -> tuple[list[Any], dict[str, str]]:
        size, page = min(100, int(query.get("per_page", ["30"])[0])), int(query.get("page", ["1"])[0])
        rest = "&".join(f"{k}={v[0]}" for k, v in query.items() if k != "page")
        here = f"{self.api.url}{urlsplit(self.path).path}?{rest}"
        more = len(rows) > page * size
        return rows[(page - 1) * size : page * size], {"Link": f'<{here}&page={page + 1}>; rel="next"'} if more else {}

    def _reply(self, status: int, tree: Any, headers: dict[str, str]) -> None:
        text = json.dumps(tree).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Type": "application/json", "Content-Length": str(len(text))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)


@contextmanager
def github_api() -> Iterator[GitHubApi]:
    api = GitHubApi()
    handler = type("Handler", (_Handler,), {"api": api})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        api.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()
