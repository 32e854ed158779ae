"""GitHub's REST API on loopback: pull requests, issues, commits and checks, who may do what, and what an edit leaves.

It is no kinder than GitHub. Whoever may write to the repository may edit and delete the comments of anybody, and the
author stays who it was. All workflows of a repository are one app and one author, `github-actions[bot]`. A fork's token
only reads. The test merge of an open pull request has a commit too, which is none that anything was merged by.
"""

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
TOKEN, FORK_TOKEN = "a-token", "a-token-of-a-fork"
BOT, APP = "github-actions[bot]", "github-actions"
MAIN = "main"
_BEGINNING = 1_795_000_000  # of the clock that every write advances by a second
_ALL = {"pull-requests", "issues", "statuses", "checks"}


@dataclass(frozen=True, kw_only=True)
class Actor:
    """Who calls: an app by a token with scopes to write, or a person with a role in the repository."""

    login: str
    app: str | None = None
    scopes: frozenset[str] = frozenset()
    role: str = "read"

    def may_write(self, *scopes: str) -> bool:
        return bool(self.scopes & set(scopes)) if self.app else self.role == "write"


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
    pulls: dict[int, dict[str, Any]] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    on_call: Callable[[str, str], None] | None = None  # after each reply
    ids: int = 1000
    writes: int = 0

    @property
    def tokens(self) -> dict[str, Actor]:
        return {
            TOKEN: Actor(login=self.login, app=APP, scopes=frozenset(_ALL)),
            FORK_TOKEN: Actor(login=self.login, app=APP),
        }

    def now(self) -> str:
        """The time of the next write."""
        self.writes += 1
        at = _BEGINNING + self.writes
        return f"2026-11-{20 + at // 86400 % 8:02}T{at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02}Z"

    def acts(self, who: str, method: str, path: str, body: Any = None, *, role: str = "write") -> tuple[int, Any]:
        """A person's call, or that of a workflow of this repository (`who` is `BOT`), which has all scopes."""
        actor = Actor(login=BOT, app=APP, scopes=frozenset(_ALL)) if who == BOT else Actor(login=who, role=role)
        return self.answer(actor, method, f"/repos/{REPOSITORY}/{path}", {}, body)

    def says(self, author: str, pull: int, body: str) -> dict[str, Any]:
        """A comment by anybody."""
        status, comment = self.acts(author, "POST", f"issues/{pull}/comments", {"body": body}, role="read")
        assert status == 201
        return dict(comment)

    def edits(self, who: str, comment: int, body: str) -> int:
        """The status of the reply."""
        return self.acts(who, "PATCH", f"issues/comments/{comment}", {"body": body})[0]

    def opens(self, number: int, head: str, *, base: str = MAIN, repository: str = REPOSITORY) -> None:
        """Open a pull request; or push to the branch of one that is open, with `base` as it was or is now."""
        pull = self.pulls.get(number)
        sides = {
            "head": {"ref": f"branch-{number}", "sha": head, "repo": {"full_name": repository}},
            "base": {"ref": base, "sha": "0" * 40, "repo": {"full_name": REPOSITORY}},
        }
        if pull is not None and pull["merged_at"] is None:
            pull |= sides
            return
        test_merge = f"{number:040x}"
        self.pulls[number] = {"number": number, "merged_at": None, "merge_commit_sha": test_merge, **sides}

    def merges(self, number: int, commit: str) -> None:
        """Squashed, rebased or merged: to the API, that is one commit that the base branch was updated to."""
        if number not in self.pulls:
            self.opens(number, "f" * 40)
        self.pulls[number] |= {"merged_at": self.now(), "merge_commit_sha": commit}

    def by(self, author: str, pull: int) -> list[str]:
        return [c["body"] for c in self.comments.get(pull, []) if c["user"]["login"] == author]

    def answer(self, actor: Actor, method: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        for pattern, deeds in _ROUTES:
            matched = re.fullmatch(f"/repos/{REPOSITORY}/{pattern}", path)
            if matched is not None and method in deeds:
                scopes, deed = deeds[method]
                if method != "GET" and actor.app and not actor.may_write(*scopes):
                    return 403, {"message": "Resource not accessible by integration"}
                return deed(_Call(self, actor, query, body), *matched.groups())
        return 404, {"message": "Not Found"}


@dataclass(frozen=True)
class _Call:
    api: GitHubApi
    actor: Actor
    query: dict[str, list[str]]
    body: Any


def _user(actor: Actor) -> dict[str, Any]:
    return {"login": actor.login, "type": "Bot" if actor.app else "User"}


def _comments(call: _Call, issue: str) -> tuple[int, Any]:
    return 200, call.api.comments.get(int(issue), [])


def _write(call: _Call, issue: str) -> tuple[int, Any]:
    api = call.api
    if (refused := _too_long(call.body)) is not None:
        return refused
    api.ids += 1
    page = f"https://github.example/{REPOSITORY}/pull/{issue}#issuecomment-{api.ids}"
    at = api.now()
    comment = {
        "id": api.ids,
        "user": _user(call.actor),
        "body": call.body["body"],
        "html_url": page,
        "created_at": at,
        "updated_at": at,
        "performed_via_github_app": {"slug": call.actor.app} if call.actor.app else None,
        "edits": [],
    }
    api.comments.setdefault(int(issue), []).append(comment)
    return 201, dict(comment)


def _comment(call: _Call, number: str) -> tuple[int, Any]:
    comment = _find_comment(call, number)
    return (200, comment) if comment is not None else (404, {"message": "Not Found"})


def _edit(call: _Call, number: str) -> tuple[int, Any]:
    """By its author, and by everybody who may write. The history of edits is shown on the page, and not here."""
    comment = _find_comment(call, number)
    if comment is None:
        return 404, {"message": "Not Found"}
    if not _may_change(call, comment):
        return 403, {"message": "Must have write access to edit."}
    if (refused := _too_long(call.body)) is not None:
        return refused
    comment["edits"].append((call.actor.login, comment["body"]))
    comment |= {"body": call.body["body"], "updated_at": call.api.now()}
    return 200, dict(comment)


def _remove(call: _Call, number: str) -> tuple[int, Any]:
    target = _find_comment(call, number)
    if target is None:
        return 404, {"message": "Not Found"}
    if not _may_change(call, target):
        return 403, {"message": "Must have write access to delete."}
    for comments in call.api.comments.values():
        comments[:] = [c for c in comments if c is not target]
    return 204, {}


def _find_comment(call: _Call, number: str) -> dict[str, Any] | None:
    return next((c for cs in call.api.comments.values() for c in cs if c["id"] == int(number)), None)


def _may_change(call: _Call, comment: dict[str, Any]) -> bool:
    return comment["user"]["login"] == call.actor.login or call.actor.may_write("pull-requests", "issues")


def _issues(call: _Call) -> tuple[int, Any]:
    (label,), (state,) = call.query["labels"], call.query["state"]
    return 200, [i for i in call.api.issues if label in i["labels"] and i["state"] == state]


def _open(call: _Call) -> tuple[int, Any]:
    call.api.ids += 1
    issue = {"number": call.api.ids, "state": "open", "user": _user(call.actor), **call.body}
    call.api.issues.append(issue)
    return _too_long(call.body) or (201, issue)


def _change(call: _Call, number: str) -> tuple[int, Any]:
    issue = next(i for i in call.api.issues if i["number"] == int(number))
    issue.update(call.body)
    return _too_long(call.body) or (200, issue)


def _judge(call: _Call, commit: str) -> tuple[int, Any]:
    """A status is added, and never changed or removed."""
    body = call.body
    if not call.actor.may_write("statuses"):
        return 403, {"message": "Must have push access."}
    if body["state"] not in {"error", "failure", "pending", "success"} or len(body["description"]) > 140:
        return 422, {"message": "Validation Failed"}
    status = {**body, "creator": _user(call.actor), "created_at": call.api.now()}
    call.api.statuses.setdefault(commit, []).append(status)
    return 201, status


def _statuses(call: _Call, commit: str) -> tuple[int, Any]:
    return 200, call.api.statuses.get(commit, [])[::-1]


def _check(call: _Call) -> tuple[int, Any]:
    """Only apps make check runs; all workflows of the repository are the same one."""
    if call.actor.app is None:
        return 403, {"message": "You must authenticate via a GitHub App."}
    call.api.ids += 1
    call.api.checks.append({**call.body, "id": call.api.ids, "app": {"slug": call.actor.app}})
    return 201, call.body


def _retarget(call: _Call, number: str) -> tuple[int, Any]:
    if not call.actor.may_write("pull-requests"):
        return 404, {"message": "Not Found"}
    pull = call.api.pulls[int(number)]
    pull["base"] = {**pull["base"], "ref": call.body["base"]}
    return 200, pull


def _pulls(call: _Call, commit: str) -> tuple[int, Any]:
    """Those that brought the commit, and open ones that it is the head of."""
    pulls = call.api.pulls.values()
    return 200, [p for p in pulls if commit in {p["merge_commit_sha"] if p["merged_at"] else "", p["head"]["sha"]}]


def _commits(call: _Call) -> tuple[int, Any]:
    """From the one that is asked for back: `history` has the latest last."""
    (commit,) = call.query["sha"]
    history = call.api.history
    commits = history[: history.index(commit) + 1] if commit in history else [commit]
    return 200, [{"sha": each} for each in reversed(commits)]


def _too_long(body: Any) -> tuple[int, Any] | None:
    if len(body.get("body", "")) > LONGEST:
        return 422, {"message": f"body is too long (maximum is {LONGEST} characters)"}
    return None


_Deed = tuple[tuple[str, ...], Callable[..., tuple[int, Any]]]
_TALK = ("pull-requests", "issues")
_ROUTES: list[tuple[str, dict[str, _Deed]]] = [
    (r"issues/(\d+)/comments", {"GET": (_TALK, _comments), "POST": (_TALK, _write)}),
    (r"issues/comments/(\d+)", {"GET": (_TALK, _comment), "PATCH": (_TALK, _edit), "DELETE": (_TALK, _remove)}),
    (r"issues", {"GET": (("issues",), _issues), "POST": (("issues",), _open)}),
    (r"issues/(\d+)", {"PATCH": (("issues",), _change)}),
    (r"statuses/(\w+)", {"POST": (("statuses",), _judge)}),
    (r"check-runs", {"POST": (("checks",), _check)}),
    (r"pulls/(\d+)", {"PATCH": (("pull-requests",), _retarget)}),
    (r"commits", {"GET": ((), _commits)}),
    (r"commits/(\w+)/pulls", {"GET": ((), _pulls)}),
    (r"commits/(\w+)/statuses", {"GET": ((), _statuses)}),
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
        actor = api.tokens.get((self.headers.get("Authorization") or "").removeprefix("Bearer "))
        if actor is None:
            self._reply(401, {"message": "Bad credentials"}, {})
            return
        trouble = next((t for t in api.troubles if t.method == self.command and re.search(t.path, split.path)), None)
        if trouble is not None:
            trouble.times -= 1
            if not trouble.times:
                api.troubles.remove(trouble)
            if trouble.is_done:
                api.answer(actor, self.command, split.path, parse_qs(split.query), body)
                self.close_connection = True
                return
            self._reply(trouble.status, {"message": trouble.message}, trouble.headers)
            return
        query = parse_qs(split.query)
        status, tree = api.answer(actor, self.command, split.path, query, body)
        headers: dict[str, str] = {}
        if isinstance(tree, list):
            tree, headers = self._page(tree, query)
        self._reply(status, tree, headers)
        if api.on_call is not None:
            api.on_call(self.command, split.path)

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
