"""The hub names the commit of a revision, or there is a reason why it does not."""

from __future__ import annotations

import pytest
from answering import answering, http
from real_time import DEADLINE

from tpudeploy.adapters.sources import Hub
from tpudeploy.domain.facts import Unknown

PATH = "/api/models/a/b/revision/main"
COMMIT = "0123456789" * 4


@pytest.mark.parametrize(
    ("revision", "path"),
    [("", PATH), ("v1", "/api/models/a/b/revision/v1"), ("refs/pr/7", "/api/models/a/b/revision/refs%2Fpr%2F7")],
)
def test_a_revision_is_a_commit(revision: str, path: str) -> None:
    with answering({path: http(f'{{"id": "a/b", "sha": "{COMMIT}"}}')}) as url:
        assert Hub(url, timeout=DEADLINE).commit("a/b", revision) == COMMIT


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (http("{}", status="401 Unauthorized"), "does not show this model or revision"),
        (http("{}", status="404 Not Found"), "does not show this model or revision"),
        (http("{}", status="429 Too Many Requests"), "answered 429"),
        (http('{"sha": "main"}'), "named no commit"),
        (http("[]"), "named no commit"),
        (http("<html>"), "cannot be asked"),
        (b"", "cannot be asked"),
    ],
)
def test_whatever_else_it_answers_is_a_reason_not_to_know(answer: bytes, words: str) -> None:
    with answering({PATH: answer}) as url:
        commit = Hub(url, timeout=DEADLINE).commit("a/b", "")
    assert isinstance(commit, Unknown)
    assert words in commit.because
