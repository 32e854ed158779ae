"""Servers that complete no prompts: each is proven by its own request, and what cannot apply to it is refused."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest
from command_line import PROFILE, REAL_BOOT, CommandLine, Open
from real_time import DEADLINE

EMBED = PROFILE.replace("google/gemma-4-E2B-it", "Qwen/Qwen3-Embedding-8B").replace("v6e-1", "v6e-4")
RERANK = PROFILE.replace("google/gemma-4-E2B-it", "BAAI/bge-reranker-v2-m3").replace("16384", "8192")
JUDGE = PROFILE.replace("google/gemma-4-E2B-it", "somebody/judge").replace(
    "  max_model_len: 16384\n", "  max_model_len: 512\n  args: {runner: pooling, convert: classify}\n"
)
REWARD = PROFILE.replace("google/gemma-4-E2B-it", "Qwen/Qwen2.5-Math-RM-72B")
OTHER = PROFILE.replace("google/gemma-4-E2B-it", "somebody/something")


def serve(at: CommandLine, profile: str) -> str:
    applied = at.run("apply", "-auto-approve", path := at.write(profile))
    assert applied.code == 0, applied.all
    return path


@pytest.mark.parametrize(
    ("profile", "verb", "reply"),
    [
        pytest.param(EMBED, "returned an embedding", "embedding of 64 dimensions: ", id="embedding"),
        pytest.param(RERANK, "returned a score", "score: 0.", id="reranker"),
        pytest.param(JUDGE, "classified a text", "class probabilities: 0.", id="classifier"),
        pytest.param(REWARD, "pooled a text", "pooled output of ", id="reward"),
    ],
)
def test_a_server_is_proven_by_a_request_of_its_task(cli: Open, profile: str, verb: str, reply: str) -> None:
    at = cli()
    path = serve(at, profile)
    answered = at.run("query", path, "Say hello.")
    assert answered.code == 0, answered.all
    assert answered.out.startswith(reply)
    assert "tok/s" not in answered.all
    assert at.run("verify", path).code == 0
    assert at.run("drift", path).code == 0


def test_the_machine_itself_asks_for_an_embedding(cli: Open) -> None:
    at = cli(nodes="real", boot={"boot_seconds": REAL_BOOT})
    applied = at.run("apply", "-auto-approve", path := at.write(EMBED))
    assert applied.code == 0, applied.all
    assert "Healthy, and returned an embedding" in applied.err
    url = at.run("output", "gemma").out.split('"')[1]
    statuses = {route: _status(url, route) for route in ("/v1/chat/completions", "/v1/completions", "/v1/embeddings")}
    assert statuses == {"/v1/chat/completions": 404, "/v1/completions": 404, "/v1/embeddings": 200}
    assert at.run("query", path, "Say hello.").out.startswith("embedding of 64 dimensions: ")


def _status(url: str, route: str) -> int:
    where = urlsplit(url)
    connection = HTTPConnection(where.hostname or "", where.port or 80, timeout=DEADLINE)
    body = {"model": "Qwen/Qwen3-Embedding-8B", "input": "a", "prompt": "a", "messages": [{"content": "a"}]}
    try:
        connection.request("POST", route, json.dumps(body), {"Content-Type": "application/json"})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("serves", ["generate", "embed", "score", "classify", "token_classify"])
def test_an_unknown_model_is_proven_by_the_route_that_its_server_has(cli: Open, serves: str) -> None:
    at = cli(boot={"serves": serves})
    path = at.write(OTHER)
    assert "whether the server completes prompts or pools them" in at.run("validate", path).all
    assert "serves: unknown" in at.run("size", path).all
    serve(at, OTHER)
    assert at.run("query", path, "Say hello.").code == 0


def test_a_server_that_pools_though_its_profile_says_that_it_generates_never_serves(cli: Open) -> None:
    at = cli(boot={"serves": "embed"})
    applied = at.run("apply", "-auto-approve", at.write())
    assert applied.code != 0
    assert "The server is healthy, but a completion failed (HTTP 404)" in applied.all


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("bench", "{path}"), "there are no tokens per second to measure"),
        (("verify", "{path}", "-accuracy", "arithmetic"), "it cannot be asked questions"),
        (
            ("compare", "{path}", "-ab", "serving.max_num_seqs=128,256", "-auto-approve"),
            "an A/B has nothing to measure",
        ),
    ],
)
def test_what_needs_completions_is_refused_before_anything_is_sent(cli: Open, words: tuple[str, ...], why: str) -> None:
    at = cli()
    path = at.write(EMBED)
    refused = at.run(*(word.format(path=path) for word in words))
    assert refused.code == 1, refused.all
    assert f"it completes no prompts, so {why}" in refused.words
    assert at.requested_zones() == []


def test_a_document_of_an_embedding_has_all_of_its_numbers(cli: Open) -> None:
    at = cli()
    path = serve(at, EMBED)
    tree: dict[str, Any] = json.loads(at.run("query", path, "Say hello.", "-json").out)
    assert len(tree["numbers"]) == 64
    assert abs(sum(number * number for number in tree["numbers"]) - 1) < 1e-6
    assert tree["tokens_per_second"] is None


def test_a_server_that_serves_is_probed_for_what_it_does_until_its_change(cli: Open) -> None:
    at = cli()
    serve(at, PROFILE)
    path = at.write(EMBED.replace("v6e-4", "v6e-1").replace("Embedding-8B", "Embedding-0.6B"))
    assert "does not answer" not in at.run("plan", path).all
    status = at.run("status", path)
    assert "serving" in status.out, status.all
    changed = at.run("apply", "-auto-approve", path)
    assert changed.code == 0, changed.all
    assert at.run("query", path, "Say hello.").out.startswith("embedding of ")


def test_an_embedding_model_is_not_sized_as_one_that_writes(cli: Open) -> None:
    at = cli()
    sized = at.run("size", at.write(EMBED)).out
    assert "weights 3.52 GiB" in " ".join(sized.split())  # without its output table, of 0.29 GiB a chip
    assert "the answer of tpu-inference 0.32.0's own loader" in sized
    assert "serves: embeddings (/v1/embeddings)" in sized
    too_many = at.run("validate", at.write(EMBED.replace("v6e-4", "v6e-8")), "-set", "serving.tensor_parallel_size=6")
    assert too_many.code == 1


@pytest.mark.parametrize(
    ("profile", "serves"),
    [
        pytest.param(EMBED, "embeddings (/v1/embeddings)", id="embedding"),
        pytest.param(RERANK, "scores (/score, /rerank)", id="reranker"),
        pytest.param(REWARD, "pooled outputs (/pooling)", id="reward"),
    ],
)
def test_an_address_that_completes_nothing_is_named_and_not_measured(cli: Open, profile: str, serves: str) -> None:
    at = cli(nodes="real", boot={"boot_seconds": REAL_BOOT})
    serve(at, profile)
    url = at.run("output", "gemma").out.split('"')[1]
    measured = at.run("bench", "-url", url, "-concurrency", "1")
    assert measured.code == 1, measured.all
    assert f"{url} serves {serves}: it completes no prompts" in measured.words
    assert "no runs" in at.run("bench", "list").all


def test_a_server_of_unknown_task_that_embeds_is_not_measured_as_one_that_completes(cli: Open) -> None:
    at = cli(nodes="real", boot={"boot_seconds": REAL_BOOT, "serves": "embed"})
    path = at.write(OTHER)
    serve(at, OTHER)
    measured = at.run("bench", path, "-concurrency", "1")
    assert measured.code == 1, measured.all
    assert "serves embeddings (/v1/embeddings)" in measured.words


def test_nothing_is_recommended_by_tokens_for_a_server_that_generates_none(cli: Open) -> None:
    at = cli()
    words = ("-users", "8", "-context", "512", "-output", "1")
    refused = at.run("recommend", at.write(EMBED), *words)
    assert refused.code == 1, refused.all
    assert "it completes no prompts" in refused.words
