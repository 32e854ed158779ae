"""The part of GitHub's REST API that we need: comments, issues, commit statuses and checks.

It uses `requests`, which Google's clients require anyway; a GitHub client library would be larger than this module.
Calls that are not idempotent are not repeated blindly: before a retry, a comment whose reply was lost is searched for.

Why: decision 29 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests
import tenacity

from tpudeploy.adapters.http_budget import Budget
from tpudeploy.adapters.requests_budget import limit
from tpudeploy.domain.errors import ForgeError, ForgeFault
from tpudeploy.domain.strict_json import parse
from tpudeploy.features.gitops.forge import Comment, CommitState, CommitStatus, Issue, PullRequest
from tpudeploy.ports import Clock
from tpudeploy.version import VERSION

T = TypeVar("T")
_PAGE = 100  # the maximum of one page
_MOST_PAGES = 100  # of a list; a pull request with 10,000 comments has other troubles
_MOST_BYTES = 64 << 20  # a page of comments, each of at most 64 KiB, in JSON
_HISTORY = 30  # commits
_MAX_WAIT = 300.0  # seconds of waiting for a forge that does not answer
_SECONDARY_LIMIT_WAIT = 60.0
_MAX_CHARACTERS = 140  # characters of a status
_BUSY = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT}


class GitHub:
    """Reads and writes one repository. `author` is our account there, so that texts of others are never taken for ours.

    `github-actions[bot]` is the author of writes with a workflow's token (unverified; the first reply is checked).
    """

    def __init__(self, *, api: str, repository: str, token: str, author: str, clock: Clock, timeout: float) -> None:
        self._api = api.rstrip("/")
        self._repository = repository
        self._author = author
        self._clock = clock
        self._timeout = timeout
        self._session = requests.Session()
        limit(self._session, Budget(seconds=timeout, size=_MOST_BYTES))
        self._session.headers.update(
            {
                "Accept": "application/vnd.github+json",
                "User-Agent": f"tpudeploy/{VERSION}",
                "X-GitHub-Api-Version": "2022-11-28",
            }
        )

        # `auth` is a function, because otherwise an entry for this host in ~/.netrc would replace the header.
        self._session.auth = _bearer(token)

    def merged_pulls(self, commit: str) -> tuple[PullRequest, ...]:
        """See `ports.Forge`. `merge_commit_sha` is the commit that the base branch got, also after squash or rebase."""

        def read() -> tuple[PullRequest, ...]:
            pulls = self._all(f"commits/{commit}/pulls")
            merged = [p for p in pulls if p.get("merged_at") and p.get("merge_commit_sha") == commit]
            return tuple(_pull_request(p) for p in merged if self._is_here(p["base"]))

        return self._retry(read)

    def statuses(self, commit: str, context: str) -> tuple[CommitStatus, ...]:
        def read() -> tuple[CommitStatus, ...]:
            statuses = self._all(f"commits/{commit}/statuses")
            return tuple(_status(tree) for tree in statuses if tree.get("context") == context)

        return self._retry(read)

    def history(self, commit: str) -> tuple[str, ...]:
        query = {"sha": commit, "per_page": str(_HISTORY)}

        def read() -> tuple[str, ...]:
            commits = _tree(self._send("GET", self._url("commits"), params=query))
            return tuple(_word(tree, "sha") for tree in commits)

        return self._retry(read)

    def comment(self, pull: int, is_it: Callable[[str], bool]) -> Comment | None:
        return self._retry(lambda: self._comment(pull, is_it))

    def tell(self, pull: int, is_it: Callable[[str], bool], body: str) -> Comment:
        def update() -> Comment:
            existing = self._comment(pull, is_it)
            if existing is not None and existing.body.rstrip() == body.rstrip():
                return existing
            if existing is None:
                comment = _comment(self._call("POST", f"issues/{pull}/comments", {"body": body}))
                self._check_author(comment.author)
            else:
                comment = _comment(self._call("PATCH", f"issues/comments/{existing.id}", {"body": body}))
            return self._read_back(comment.id, body)

        return self._retry(update)

    def issues(self, label: str) -> tuple[Issue, ...]:
        return self._retry(lambda: self._issues(label))

    def report(self, is_it: Callable[[str], bool], label: str, title: str, body: str) -> Issue:
        def update() -> Issue:
            existing = next((i for i in self._issues(label) if is_it(i.body)), None)
            content = {"title": title, "body": body}
            if existing is None:
                issue = _issue(self._call("POST", "issues", {**content, "labels": [label]}))
                self._check_author(issue.author)
                return issue
            if (existing.title, existing.body.rstrip()) == (title, body.rstrip()):
                return existing
            return _issue(self._call("PATCH", f"issues/{existing.number}", content))

        return self._retry(update)

    def settle(self, issue: Issue, because: str) -> None:
        path = f"issues/{issue.number}"
        self._retry(lambda: self._call("PATCH", path, {"state": "closed", "state_reason": "completed"}))
        _expected(lambda: self._call("POST", f"{path}/comments", {"body": because}))

    def classify(self, commit: str, status: CommitStatus) -> None:
        fields = {"state": status.verdict, "context": status.context, "description": _short(status.summary)}
        body = {**fields, "target_url": status.url} if status.url else fields
        self._retry(lambda: self._call("POST", f"statuses/{commit}", body))

    def note(self, commit: str, status: CommitStatus) -> None:
        conclusion = "neutral" if status.verdict is CommitState.PENDING else status.verdict
        body = {
            "name": status.context,
            "head_sha": commit,
            "status": "completed",
            "conclusion": conclusion,
            "output": {"title": _short(status.summary), "summary": status.summary},
        }
        run = {**body, "details_url": status.url} if status.url else body
        _expected(lambda: self._call("POST", "check-runs", run))

    def _comment(self, pull: int, is_it: Callable[[str], bool]) -> Comment | None:
        comments = map(_comment, self._all(f"issues/{pull}/comments"))
        return next((c for c in comments if c.author == self._author and is_it(c.body)), None)

    def _read_back(self, number: int, body: str) -> Comment:
        """Return the comment as GitHub shows it now. Raise `errors.ForgeFault` if its text is not what was written."""
        comment = _comment(_tree(self._send("GET", self._url(f"issues/comments/{number}"))))
        if comment.body.rstrip() != body.rstrip():
            raise ForgeFault("GitHub does not show the comment that was written: it lags, or someone is editing it.")
        return replace(comment, body=body)

    def _is_here(self, side: Mapping[str, Any]) -> bool:
        """Return whether one side of a pull request is in this repository; names on GitHub ignore case."""
        repository = (side.get("repo") or {}).get("full_name") or ""
        return str(repository).lower() == self._repository.lower()

    def _issues(self, label: str) -> tuple[Issue, ...]:
        trees = self._all("issues", {"labels": label, "state": "open"})
        issues = (_issue(tree) for tree in trees if "pull_request" not in tree)  # GitHub lists pull requests as issues
        return tuple(i for i in issues if i.author == self._author)

    def _check_author(self, author: str) -> None:
        """Raise `errors.ForgeError` if the author is not ours: then each run would write another copy of the text."""
        if author != self._author:
            raise ForgeError(
                f"GitHub says that {author} wrote this, not {self._author}.",
                hint=f"Pass -author '{author}', so that the next run finds it and updates it in place.",
            )

    def _all(self, path: str, query: Mapping[str, str] | None = None) -> list[Mapping[str, Any]]:
        return list(self._pages(path, query or {}))

    def _pages(self, path: str, query: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        url, parameters = self._url(path), {**query, "per_page": str(_PAGE)}
        visited: set[str] = set()
        while url:
            visited.add(url)
            reply = self._send("GET", url, params=parameters)
            page = _tree(reply)
            if not isinstance(page, list):
                raise TypeError("a page is a list")
            yield from page
            url, parameters = reply.links.get("next", {}).get("url", ""), {}
            if url and urlsplit(url)[:2] != urlsplit(self._api)[:2]:
                raise ForgeError(f"GitHub's next page is at {urlsplit(url).netloc}, which is not the configured host.")
            if url in visited or len(visited) == _MOST_PAGES:
                raise ForgeError(f"GitHub's list of {path} does not end: it was read {len(visited)} pages far.")

    def _call(self, method: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        tree = _tree(self._send(method, self._url(path), json=body))
        if not isinstance(tree, dict):
            raise TypeError("what was written is an object")
        return tree

    def _url(self, path: str) -> str:
        return f"{self._api}/repos/{self._repository}/{path}"

    def _send(self, method: str, url: str, **more: Any) -> requests.Response:
        try:
            reply = self._session.request(method, url, timeout=self._timeout, allow_redirects=False, **more)
        except requests.RequestException as cause:
            raise ForgeFault(f"GitHub does not answer: {cause}.") from cause
        if reply.ok and not reply.is_redirect:
            return reply
        message = _message(reply)
        wait = self._wait(reply)
        if reply.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR or reply.status_code in _BUSY or wait is not None:
            raise ForgeFault(f"GitHub is not ready ({reply.status_code}): {message}", retry_after=wait)
        raise ForgeError(
            f"GitHub refused {method} {urlsplit(url).path} ({reply.status_code}): {message}", hint=_hint(reply)
        )

    def _wait(self, reply: requests.Response) -> float | None:
        """Return the seconds until GitHub's rate limit allows another request, or None if no limit was reached."""
        retry_after, remaining = reply.headers.get("Retry-After", ""), reply.headers.get("X-RateLimit-Remaining")
        if retry_after.isdecimal():
            return float(retry_after)
        reset = reply.headers.get("X-RateLimit-Reset", "")
        if remaining == "0" and reset.isdecimal():
            return max(1.0, float(reset) - self._clock.now())
        # Without a header, GitHub's documentation asks for at least one minute.
        return _SECONDARY_LIMIT_WAIT if "secondary rate limit" in _message(reply).lower() else None

    def _retry(self, call: Callable[[], T]) -> T:
        """Repeat the call until it succeeds. Raise its last `errors.ForgeFault` after `_MAX_WAIT`."""
        backoff = tenacity.wait_exponential(multiplier=1, max=30)

        def wait(call: tenacity.RetryCallState) -> float:
            failure = call.outcome.exception() if call.outcome is not None else None
            requested_wait = failure.retry_after if isinstance(failure, ForgeFault) else None
            return max(backoff(call), requested_wait or 0.0)

        began = self._clock.now()

        def is_over(call: tenacity.RetryCallState) -> bool:
            return self._clock.now() - began + call.upcoming_sleep > _MAX_WAIT

        return tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(ForgeFault),
            stop=is_over,
            wait=wait,
            sleep=self._clock.sleep,
            reraise=True,
        )(lambda: _expected(call))


def _expected(call: Callable[[], T]) -> T:
    """Return what the call returns. Raise `errors.ForgeError` for a reply in another form than GitHub's API has."""
    try:
        return call()
    except (LookupError, TypeError, AttributeError, ValueError) as cause:
        raise ForgeError(
            "GitHub answered, but not in the form of its API.",
            hint="Is GITHUB_API_URL GitHub's, and is there a proxy before it that answers itself?",
        ) from cause


def _bearer(token: str) -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
    def signed(request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {token}"
        return request

    return signed


def _comment(tree: Mapping[str, Any]) -> Comment:
    return Comment(
        id=_number(tree, "id"),
        author=_login(tree),
        body=_text(tree, "body").replace("\r\n", "\n"),
        url=_text(tree, "html_url"),
        updated_at=_text(tree, "updated_at"),
    )


def _pull_request(tree: Mapping[str, Any]) -> PullRequest:
    return PullRequest(
        number=_number(tree, "number"), base_branch=_word(tree["base"], "ref"), head_commit=_word(tree["head"], "sha")
    )


def _status(tree: Mapping[str, Any]) -> CommitStatus:
    return CommitStatus(
        context=_word(tree, "context"),
        verdict=CommitState(_word(tree, "state")),
        summary=_text(tree, "description"),
        url=_text(tree, "target_url"),
    )


def _issue(tree: Mapping[str, Any]) -> Issue:
    return Issue(
        number=_number(tree, "number"), author=_login(tree), title=_text(tree, "title"), body=_text(tree, "body")
    )


def _login(tree: Mapping[str, Any]) -> str:
    return _text(tree.get("user") or {}, "login")  # `user` is null after an account is deleted


def _text(tree: Mapping[str, Any], key: str) -> str:
    """Return a text of a reply, "" for null or none. Raise TypeError for another type."""
    value = tree.get(key)
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{key} is a text")
    return value or ""


def _word(tree: Mapping[str, Any], key: str) -> str:
    """Return a text that every reply has. Raise LookupError or TypeError without one."""
    if not isinstance(tree[key], str):
        raise TypeError(f"{key} is a text")
    return _text(tree, key)


def _number(tree: Mapping[str, Any], key: str) -> int:
    value = tree[key]
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{key} is a number")
    return value


def _tree(reply: requests.Response) -> Any:
    try:
        return parse(reply.content)
    except ValueError as cause:
        raise ForgeFault(f"GitHub's answer cannot be read: {cause}.") from cause


def _message(reply: requests.Response) -> str:
    try:
        return str(parse(reply.content).get("message", reply.reason))
    except (ValueError, AttributeError):
        return str(reply.reason)


def _hint(reply: requests.Response) -> str:
    match reply.status_code:
        case HTTPStatus.UNAUTHORIZED:
            return "Is GITHUB_TOKEN set, and still valid?"
        case HTTPStatus.FORBIDDEN | HTTPStatus.NOT_FOUND:
            return "Give the job `permissions:` of pull-requests, issues, statuses and checks: write."
    return ""


def _short(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 1]}…"
