"""The hub names the commit of a revision, or there is a reason why it does not."""

from __future__ import annotations

import pytest
from answering import answering, http
from endless import Drip, endless
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


def test_a_model_that_moved_within_the_hub_is_found() -> None:
    moved = http("", status="307 Moved\r\nLocation: /api/models/b/b/revision/main")
    with answering({PATH: moved, "/api/models/b/b/revision/main": http(f'{{"sha": "{COMMIT}"}}')}) as url:
        assert Hub(url, timeout=DEADLINE).commit("a/b", "") == COMMIT


def test_a_hub_that_does_not_end_is_a_reason_not_to_know() -> None:
    with endless(Drip(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" "), every=0.02) as url:
        commit = Hub(url, timeout=0.2).commit("a/b", "")
    assert isinstance(commit, Unknown)
    assert "timed out" in commit.because


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (http("{}", status="401 Unauthorized"), "does not show this model or revision"),
        (http("{}", status="404 Not Found"), "does not show this model or revision"),
        (http("{}", status="429 Too Many Requests"), "answered 429"),
        (http('{"sha": "main"}'), "named no commit"),
        (http("[]"), "named no commit"),
        (http("<html>"), "answered, but not with a model"),
        (b"", "cannot be asked"),
        (http("[" * 300_000), "answered, but not with a model"),
        (http('{"sha": ' * 100_000), "answered, but not with a model"),
        (http('{"sha": "\\u001b[2J../../etc/passwd"}'), "named no commit"),
        (http('{"sha": ["a"]}'), "named no commit"),
        (http("", status="429 Busy\r\nRetry-After: 31536000"), "answered 429"),
        (http("", status="307 Moved\r\nLocation: http://10.0.0.1/x"), "a redirect to 10.0.0.1, which is not followed"),
        (http("", status="307 Moved\r\nLocation: file:///etc/passwd"), "answered 307"),
        (http("", status=f"307 Moved\r\nLocation: {PATH}"), "answered 307"),
        (b"HTTP/9.9\x1b 200 OK\r\n\r\n", "cannot be asked"),
    ],
)
def test_whatever_else_it_answers_is_a_reason_not_to_know(answer: bytes, words: str) -> None:
    with answering({PATH: answer}) as url:
        commit = Hub(url, timeout=DEADLINE).commit("a/b", "")
    assert isinstance(commit, Unknown)
    assert words in commit.because


INDEX = f"/api/models/a/b/revision/{COMMIT}"
CONFIG = f"/a/b/resolve/{COMMIT}/config.json"


def test_a_checkpoint_is_its_config_and_the_elements_that_the_hub_counted() -> None:
    index = http('{"safetensors": {"parameters": {"BF16": 12, "x": 1, "F32": -1, "I8": true}, "total": 12}}')
    with answering({INDEX: index, CONFIG: http('{"hidden_size": 8}')}) as url:
        checkpoint = Hub(url, timeout=DEADLINE).checkpoint("a/b", COMMIT)
    assert not isinstance(checkpoint, Unknown)
    assert (checkpoint.config, checkpoint.tensors) == ('{"hidden_size": 8}', {"BF16": 12})


@pytest.mark.parametrize(
    ("index", "config"),
    [
        (http("{}", status="404 Not Found"), http("{}", status="404 Not Found")),
        (http('{"safetensors": []}'), http("[]")),
        (http("<html>"), http("<html>")),
        (http("[" * 300_000), http('{"a": ' * 100_000)),
        (b"", b""),
    ],
)
def test_whatever_else_the_hub_says_of_a_checkpoint_is_a_reason_not_to_know(index: bytes, config: bytes) -> None:
    with answering({INDEX: index, CONFIG: config}) as url:
        assert isinstance(Hub(url, timeout=DEADLINE).checkpoint("a/b", COMMIT), Unknown)


def test_a_config_that_does_not_end_is_a_reason_not_to_know() -> None:
    with endless(Drip(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" "), every=0.02) as url:
        assert isinstance(Hub(url, timeout=0.2).checkpoint("a/b", COMMIT), Unknown)
