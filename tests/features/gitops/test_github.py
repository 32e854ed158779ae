"""GitHub, or whatever answers in its place: a list ends, a reply ends, and another form than the API's is one error."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from answering import answering, http
from endless import Drip, endless
from real_time import DEADLINE

from tpudeploy.domain.errors import ForgeError, ForgeFault
from tpudeploy.emulator import VirtualClock
from tpudeploy.features.gitops.github import GitHub

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
