"""GitHub, or whatever answers in its place: a list ends, a reply ends, and another form than the API's is one error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from answering import answering, http
from endless import Drip, endless
from real_time import DEADLINE

from tpudeploy.domain.errors import ForgeError, ForgeFault, UsageError
from tpudeploy.emulator import VirtualClock
from tpudeploy.features.gitops.forge import CommitState, CommitStatus, Issue
from tpudeploy.features.gitops.github import GitHub
from tpudeploy.features.gitops.pipeline import pipeline

COMMIT = "c" * 40
PATH = f"/repos/acme/models/commits/{COMMIT}/statuses"
COMMENTS = "/repos/acme/models/issues/1/comments"


def github(url: str, timeout: float = DEADLINE) -> GitHub:
    return GitHub(api=url, repository="acme/models", token="t", author="bot", clock=VirtualClock(0.0), timeout=timeout)


def linked(to: Callable[[], str]) -> Callable[[bytes], bytes]:
    def reply(_: bytes) -> bytes:
        link = f'Link: <{to()}>; rel="next"'
        return f"HTTP/1.1 200 OK\r\n{link}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n[]".encode()

    return reply


def test_a_list_whose_next_page_is_itself_ends() -> None:
    with (
        answering({PATH: linked(lambda: f"{url}{PATH}?page=2")}) as url,
        pytest.raises(ForgeError, match="does not end: it was read 2 pages far"),
    ):
        github(url).statuses(COMMIT, "c")


def test_a_list_that_always_has_another_page_ends() -> None:
    numbers = iter(range(10_000))
    with (
        answering({PATH: linked(lambda: f"{url}{PATH}?page={next(numbers)}")}) as url,
        pytest.raises(ForgeError, match="does not end: it was read 100 pages far"),
    ):
        github(url).statuses(COMMIT, "c")


def test_a_next_page_on_another_host_is_not_asked_for() -> None:
    with (
        answering({PATH: linked(lambda: "http://10.0.0.1/next")}) as url,
        pytest.raises(ForgeError, match=r"10\.0\.0\.1, which is not the configured host"),
    ):
        github(url).statuses(COMMIT, "c")


@pytest.mark.parametrize(
    "body",
    ["{}", "7", "[7]", "[null]", '{"message": 7}', '[{"context": "c"}]', '[{"context": "c", "state": "odd"}]', '["c"]'],
)
def test_a_reply_in_another_form_is_an_error_of_the_forge(body: str) -> None:
    with answering({PATH: http(body), COMMENTS: http(body)}) as url:
        with pytest.raises(ForgeError, match="not in the form of its API"):
            github(url).statuses(COMMIT, "c")
        with pytest.raises(ForgeError, match="not in the form of its API"):
            github(url).comment(1, lambda _: True)


# A whole reply of each kind, what reads it, and the fields that are kept or that a request's path is made from.
COMMENT = {"id": 7, "user": {"login": "bot"}, "body": "b", "html_url": "u", "updated_at": "t"}
ISSUE = {"number": 7, "user": {"login": "bot"}, "title": "t", "body": "b"}
PULL = {
    "number": 7,
    "merged_at": "t",
    "merge_commit_sha": COMMIT,
    "base": {"ref": "main", "repo": {"full_name": "acme/models"}},
    "head": {"sha": "d" * 40},
}
STATUS = {"context": "c", "state": "success", "description": "d", "target_url": "u"}
READS: dict[str, tuple[str, dict[str, Any], Callable[[GitHub], object]]] = {
    "comment": (COMMENTS, COMMENT, lambda forge: forge.comment(1, lambda _: True)),
    "issues": ("/repos/acme/models/issues", ISSUE, lambda forge: forge.issues("drift")),
    "pulls": (f"/repos/acme/models/commits/{COMMIT}/pulls", PULL, lambda forge: forge.merged_pulls(COMMIT)),
    "statuses": (PATH, STATUS, lambda forge: forge.statuses(COMMIT, "c")),
    "history": ("/repos/acme/models/commits", {"sha": COMMIT}, lambda forge: forge.history(COMMIT)),
}
FIELDS = {
    "comment": ("id", "user", "user.login", "body", "html_url", "updated_at"),
    "issues": ("number", "user", "user.login", "title", "body"),
    "pulls": ("number", "base", "base.ref", "head", "head.sha"),
    "statuses": ("state", "description", "target_url"),
    "history": ("sha",),
}
ODD: tuple[Any, ...] = (True, 7.5, ["x"], {"x": 1}, [[]], "a text", 7)


def with_field(tree: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    key, _, rest = path.partition(".")
    return {**tree, key: with_field(tree[key], rest, value) if rest else value}


def is_of_its_type(tree: dict[str, Any], path: str, value: Any) -> bool:
    key, _, rest = path.partition(".")
    return is_of_its_type(tree[key], rest, value) if rest else type(value) is type(tree[key])


@pytest.mark.parametrize("kind", READS)
def test_a_field_of_another_type_is_an_error_of_the_forge_and_a_whole_reply_is_none(kind: str) -> None:
    path, tree, read = READS[kind]
    with answering({path: http(json.dumps([tree]))}) as url:
        assert read(github(url))
    for field in FIELDS[kind]:
        for value in ODD:
            if is_of_its_type(tree, field, value) and field != "state":
                continue
            body = http(json.dumps([with_field(tree, field, value)]))
            with answering({path: body}) as url, pytest.raises(ForgeError, match="not in the form of its API"):
                read(github(url))


@pytest.mark.parametrize("body", ["[]", "7", "null", '"x"', "[[]]"])
def test_what_was_written_is_an_object_or_an_error_of_the_forge(body: str) -> None:
    """Comments on a closed issue and checks have no other attempt: they end in the same words."""
    issue, status = (
        Issue(number=7, author="bot", title="t", body="b"),
        CommitStatus(context="c", verdict=CommitState.SUCCESS, summary="s"),
    )
    whole, odd = http("{}"), http(body)
    writes: list[tuple[dict[str, bytes], Callable[[GitHub], object]]] = [
        ({"/repos/acme/models/issues/7": odd}, lambda forge: forge.settle(issue, "b")),
        (
            {"/repos/acme/models/issues/7": whole, "/repos/acme/models/issues/7/comments": odd},
            lambda forge: forge.settle(issue, "b"),
        ),
        ({"/repos/acme/models/check-runs": odd}, lambda forge: forge.note(COMMIT, status)),
        ({f"/repos/acme/models/statuses/{COMMIT}": odd}, lambda forge: forge.classify(COMMIT, status)),
    ]
    for replies, write in writes:
        with answering(replies) as url, pytest.raises(ForgeError, match="not in the form of its API"):
            write(github(url))


@pytest.mark.parametrize(
    "event", [{"pull_request": "x"}, {"pull_request": [7]}, {"pull_request": {"number": 7, "head": 7}},
              {"pull_request": {"number": 7, "head": {"repo": "x"}}}, {"pull_request": {"number": "7"}},
              {"pull_request": {"number": 7, "base": ["main"]}}]
)  # fmt: skip
def test_an_event_with_a_field_of_another_type_is_refused(event: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "event.json"
    file.write_text(json.dumps(event), "utf-8")
    environment = {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "acme/models", "GITHUB_EVENT_PATH": str(file)}
    with pytest.raises(UsageError, match="GITHUB_EVENT_PATH does not name an event of GitHub"):
        pipeline(environment)


@pytest.mark.parametrize("body", ["[" * 200_000, "<html>Sign in</html>", '["\\ud800"]', "[NaN]", ""])
def test_a_reply_that_is_no_json_is_a_fault_of_the_forge(body: str) -> None:
    with answering({PATH: http(body)}) as url, pytest.raises(ForgeFault, match="cannot be read"):
        github(url).statuses(COMMIT, "c")


def test_an_error_with_a_deep_body_is_the_error_that_its_status_says() -> None:
    with answering({PATH: http("[" * 200_000, status="404 Not Found")}) as url, pytest.raises(ForgeError, match="404"):
        github(url).statuses(COMMIT, "c")


def test_a_reply_that_drips_is_a_fault_of_the_forge() -> None:
    """Each attempt ends with its own patience, and all of them within five minutes of waiting."""
    with (
        endless(Drip(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" "), every=0.02) as url,
        pytest.raises(ForgeFault, match="does not answer"),
    ):
        github(url, timeout=0.1).statuses(COMMIT, "c")
