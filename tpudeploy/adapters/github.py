"""GitHub's REST API, as far as we need it: comments, issues, commit statuses, checks.

By `requests`, which Google's clients bring along; a client library of its own would be larger than what is asked here.
Nothing that would be done twice is sent twice: a comment whose reply was lost is looked for first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests
import tenacity

from tpudeploy.domain.errors import ForgeError, ForgeFault
from tpudeploy.domain.forge import Comment, Issue, PullRequest, Status, Verdict
from tpudeploy.ports import Clock
from tpudeploy.version import VERSION

T = TypeVar("T")
_PAGE = 100  # the most that one page holds
_HISTORY = 30  # commits
_PATIENCE = 300.0  # seconds of waiting for a forge that does not answer
_SECONDARY = 60.0
_LONGEST = 140  # characters of a status
_BUSY = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT}


class GitHub:
    """One repository. `author` is who we are there: what others write is never taken for ours.

    `github-actions[bot]` is whoever writes with the token of a workflow (unverified; the first reply is checked).
    """

    def __init__(self, *, api: str, repository: str, token: str, author: str, clock: Clock, timeout: float) -> None:
        self._api = api.rstrip("/")
        self._repository = repository
        self._author = author
        self._clock = clock
        self._timeout = timeout
        self._session = requests.Session()
        self._session.headers.update(
            {
                "Accept": "application/vnd.github+json",
                "User-Agent": f"tpudeploy/{VERSION}",
                "X-GitHub-Api-Version": "2022-11-28",
            }
        )

        # As a function: else an entry for this host in ~/.netrc would take the header's place.
        self._session.auth = _bearer(token)

    def merged_pulls(self, commit: str) -> tuple[PullRequest, ...]:
        """Squashed, rebased or merged: `merge_commit_sha` is the commit that the base branch was updated to."""
        listed = self._again(lambda: self._all(f"commits/{commit}/pulls"))
        merged = [p for p in listed if p.get("merged_at") and p.get("merge_commit_sha") == commit]
        return tuple(_pull_request(p) for p in merged if self._is_here(p["base"]))

    def statuses(self, commit: str, context: str) -> tuple[Status, ...]:
        listed = self._again(lambda: self._all(f"commits/{commit}/statuses"))
        return tuple(_status(tree) for tree in listed if tree.get("context") == context)

    def history(self, commit: str) -> tuple[str, ...]:
        query = {"sha": commit, "per_page": str(_HISTORY)}
        listed = self._again(lambda: _tree(self._send("GET", self._url("commits"), params=query)))
        return tuple(str(tree["sha"]) for tree in listed)

    def comment(self, pull: int, is_it: Callable[[str], bool]) -> Comment | None:
        return self._again(lambda: self._comment(pull, is_it))

    def tell(self, pull: int, is_it: Callable[[str], bool], body: str) -> Comment:
        def told() -> Comment:
            known = self._comment(pull, is_it)
            if known is not None and known.body.rstrip() == body.rstrip():
                return known
            if known is None:
                written = _comment(self._call("POST", f"issues/{pull}/comments", {"body": body}))
                self._check_author(written.author)
            else:
                written = _comment(self._call("PATCH", f"issues/comments/{known.id}", {"body": body}))
            return self._read_back(written.id, body)

        return self._again(told)

    def issues(self, label: str) -> tuple[Issue, ...]:
        return self._again(lambda: self._issues(label))

    def report(self, is_it: Callable[[str], bool], label: str, title: str, body: str) -> Issue:
        def reported() -> Issue:
            known = next((i for i in self._issues(label) if is_it(i.body)), None)
            content = {"title": title, "body": body}
            if known is None:
                made = _issue(self._call("POST", "issues", {**content, "labels": [label]}))
                self._check_author(made.author)
                return made
            if (known.title, known.body.rstrip()) == (title, body.rstrip()):
                return known
            return _issue(self._call("PATCH", f"issues/{known.number}", content))

        return self._again(reported)

    def settle(self, issue: Issue, because: str) -> None:
        path = f"issues/{issue.number}"
        self._again(lambda: self._call("PATCH", path, {"state": "closed", "state_reason": "completed"}))
        self._call("POST", f"{path}/comments", {"body": because})

    def judge(self, commit: str, status: Status) -> None:
        said = {"state": status.verdict, "context": status.context, "description": _short(status.summary)}
        body = {**said, "target_url": status.url} if status.url else said
        self._again(lambda: self._call("POST", f"statuses/{commit}", body))

    def note(self, commit: str, status: Status) -> None:
        conclusion = "neutral" if status.verdict is Verdict.PENDING else status.verdict
        body = {
            "name": status.context,
            "head_sha": commit,
            "status": "completed",
            "conclusion": conclusion,
            "output": {"title": _short(status.summary), "summary": status.summary},
        }
        self._call("POST", "check-runs", {**body, "details_url": status.url} if status.url else body)

    def _comment(self, pull: int, is_it: Callable[[str], bool]) -> Comment | None:
        found = map(_comment, self._all(f"issues/{pull}/comments"))
        return next((c for c in found if c.author == self._author and is_it(c.body)), None)

    def _read_back(self, number: int, body: str) -> Comment:
        """The comment as everybody sees it now. Raise `errors.ForgeFault` unless that is what was written."""
        comment = _comment(_tree(self._send("GET", self._url(f"issues/comments/{number}"))))
        if comment.body.rstrip() != body.rstrip():
            raise ForgeFault("GitHub does not show the comment that was written: it lags, or somebody edits it.")
        return replace(comment, body=body)

    def _is_here(self, side: Mapping[str, Any]) -> bool:
        """Whether one side of a pull request is in this repository; GitHub's names ignore case."""
        repository = (side.get("repo") or {}).get("full_name") or ""
        return str(repository).lower() == self._repository.lower()

    def _issues(self, label: str) -> tuple[Issue, ...]:
        found = self._all("issues", {"labels": label, "state": "open"})
        issues = (_issue(tree) for tree in found if "pull_request" not in tree)  # those are listed too
        return tuple(i for i in issues if i.author == self._author)

    def _check_author(self, wrote: str) -> None:
        """Raise `errors.ForgeError` where we would not know our own words again, and write them anew each time."""
        if wrote != self._author:
            raise ForgeError(
                f"GitHub says that {wrote} wrote this, not {self._author}.",
                hint=f"Pass -author '{wrote}', so that it is found again and updated in place.",
            )

    def _all(self, path: str, query: Mapping[str, str] | None = None) -> list[Mapping[str, Any]]:
        return list(self._pages(path, query or {}))

    def _pages(self, path: str, query: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        url, given = self._url(path), {**query, "per_page": str(_PAGE)}
        while url:
            reply = self._send("GET", url, params=given)
            yield from _tree(reply)
            url, given = reply.links.get("next", {}).get("url", ""), {}
            if url and urlsplit(url)[:2] != urlsplit(self._api)[:2]:
                raise ForgeError(f"GitHub's next page is at {urlsplit(url).netloc}, which is not where we asked.")

    def _call(self, method: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        tree: Mapping[str, Any] = _tree(self._send(method, self._url(path), json=body))
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
        said = _message(reply)
        wait = self._wait(reply)
        if reply.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR or reply.status_code in _BUSY or wait is not None:
            raise ForgeFault(f"GitHub is not ready ({reply.status_code}): {said}", retry_after=wait)
        raise ForgeError(
            f"GitHub refused {method} {urlsplit(url).path} ({reply.status_code}): {said}", hint=_hint(reply)
        )

    def _wait(self, reply: requests.Response) -> float | None:
        """Seconds that GitHub asks us to wait: of a limit of requests, where it speaks of one."""
        after, left = reply.headers.get("Retry-After", ""), reply.headers.get("X-RateLimit-Remaining")
        if after.isdecimal():
            return float(after)
        reset = reply.headers.get("X-RateLimit-Reset", "")
        if left == "0" and reset.isdecimal():
            return max(1.0, float(reset) - self._clock.now())
        # Without a header, GitHub's documentation asks for a minute at least.
        return _SECONDARY if "secondary rate limit" in _message(reply).lower() else None

    def _again(self, look: Callable[[], T]) -> T:
        """Until it answers. Raise its last `errors.ForgeFault` once that takes too long."""
        growing = tenacity.wait_exponential(multiplier=1, max=30)

        def wait(call: tenacity.RetryCallState) -> float:
            failure = call.outcome.exception() if call.outcome is not None else None
            asked = failure.retry_after if isinstance(failure, ForgeFault) else None
            return max(growing(call), asked or 0.0)

        def is_over(call: tenacity.RetryCallState) -> bool:
            return call.idle_for + call.upcoming_sleep > _PATIENCE

        return tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(ForgeFault),
            stop=is_over,
            wait=wait,
            sleep=self._clock.sleep,
            reraise=True,
        )(look)


def _bearer(token: str) -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
    def signed(request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {token}"
        return request

    return signed


def _comment(tree: Mapping[str, Any]) -> Comment:
    return Comment(
        id=tree["id"],
        author=_login(tree),
        body=(tree.get("body") or "").replace("\r\n", "\n"),
        url=tree.get("html_url") or "",
        updated_at=tree.get("updated_at") or "",
    )


def _pull_request(tree: Mapping[str, Any]) -> PullRequest:
    return PullRequest(number=tree["number"], base_branch=tree["base"]["ref"], head_commit=tree["head"]["sha"])


def _status(tree: Mapping[str, Any]) -> Status:
    return Status(
        context=tree["context"],
        verdict=Verdict(tree["state"]),
        summary=tree.get("description") or "",
        url=tree.get("target_url") or "",
    )


def _issue(tree: Mapping[str, Any]) -> Issue:
    return Issue(number=tree["number"], author=_login(tree), title=tree.get("title") or "", body=tree.get("body") or "")


def _login(tree: Mapping[str, Any]) -> str:
    return str((tree.get("user") or {}).get("login", ""))  # null once an account is deleted


def _tree(reply: requests.Response) -> Any:
    try:
        return reply.json()
    except ValueError as cause:
        raise ForgeFault(f"GitHub's answer cannot be read: {cause}.") from cause


def _message(reply: requests.Response) -> str:
    try:
        return str(reply.json().get("message", reply.reason))
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
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
