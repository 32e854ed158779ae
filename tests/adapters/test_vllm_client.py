"""Asking an endpoint: what vLLM says is understood, and what anybody else says is an answer too, never a crash."""

from __future__ import annotations

import json
from collections.abc import Mapping
from threading import Event, Thread, current_thread

import pytest
from answering import answering, http
from endless import Drip, endless
from real_time import DEADLINE

from tpudeploy.adapters import vllm_facts
from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, VllmClient
from tpudeploy.adapters.vllm_metrics import HttpMeter
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.metrics import EngineFigures
from tpudeploy.emulator.http_server import HttpRequest, HttpServer, Reply

CHAT, PLAIN, MODELS, HEALTH = "/v1/chat/completions", "/v1/completions", "/v1/models", "/health"


def _stream(*chunks: object) -> bytes:
    return http("".join(f"data: {json.dumps(c)}\n\n" for c in chunks) + "data: [DONE]\n\n")


def _piece(text: str) -> Mapping[str, object]:
    return {"choices": [{"index": 0, "delta": {"content": text}}]}


def test_a_streamed_answer_is_put_together_with_its_usage() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    with answering({CHAT: _stream(_piece("Hel"), _piece("lo"), usage)}) as url:
        answer = VllmClient(url).complete("m", "Hi", max_tokens=2, now=lambda: 0.0)
    assert (answer.text, answer.prompt_tokens, answer.completion_tokens) == ("Hello", 3, 2)
    assert answer.endpoint == CHAT


def test_a_model_without_a_chat_template_is_asked_for_a_plain_completion() -> None:
    refusal = json.dumps({"error": {"message": "the model has no chat template", "code": 400}})
    plain = {"choices": [{"index": 0, "text": "upon a time"}]}
    with answering({CHAT: http(refusal, status="400 Bad Request"), PLAIN: _stream(plain)}) as url:
        assert VllmClient(url).complete("m", "Once", max_tokens=4, now=lambda: 0.0).text == "upon a time"


def test_thinking_counts_as_an_answer() -> None:
    with answering({CHAT: _stream({"choices": [{"delta": {"reasoning": "Hm."}}]})}) as url:
        assert VllmClient(url).complete("m", "Hi", max_tokens=1, now=lambda: 0.0).text == "Hm."


def test_a_missing_key_is_told_by_its_status() -> None:
    with answering({MODELS: http('{"error": "Unauthorized"}', status="401 Unauthorized")}) as url:
        with pytest.raises(BadAnswer, match="Unauthorized") as caught:
            VllmClient(url).models()
        assert caught.value.status == 401


PAGE = "<!DOCTYPE html>\n<html><head><title>Welcome to\n nginx!</title></head></html>"
WHOLE_PAGE = http(PAGE).replace(b"Connection", b"Server: nginx/1.24.0\r\nContent-Type: text/html\r\nConnection")


@pytest.mark.parametrize("reply", [WHOLE_PAGE, WHOLE_PAGE.replace(b"200 OK", b"502 Bad Gateway")], ids=["200", "502"])
def test_a_web_page_is_said_to_be_one_with_the_server_that_it_is_from(reply: bytes) -> None:
    words = 'it is the web page "Welcome to nginx!" of nginx/1.24.0, not vLLM\'s API'
    with answering({CHAT: reply, MODELS: reply}) as url:
        with pytest.raises(BadAnswer, match=words):
            VllmClient(url).complete("m", "Hi", max_tokens=2, now=lambda: 0.0)
        with pytest.raises(BadAnswer, match=words):
            VllmClient(url).models()


def test_an_error_in_the_middle_of_a_stream_is_an_error() -> None:
    broken = {"error": {"message": "the engine died", "code": 500}}
    with answering({CHAT: _stream(_piece("Hel"), broken)}) as url, pytest.raises(BadAnswer, match="the engine died"):
        VllmClient(url).complete("m", "Hi", max_tokens=2, now=lambda: 0.0)


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        http(""),
        http("<html>a router's page</html>"),
        http("[]"),
        http("data: 7\n\n"),
        http("data: {broken\n\n"),
        http('data: {"choices": null}\n\n'),
        http('data: {"choices": [null]}\n\n'),
        http('data: {"choices": [{"delta": null}]}\n\n'),
        http('data: {"choices": [{"text": "x"}], "usage": {"prompt_tokens": null}}\n\n'),
        http('data: {"error": null}\n\n'),
        http("nobody home", status="503 Service Unavailable"),
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\ncut",
        b"HTTP/9.9 200 OK\r\n\r\n{}",
        http("[" * 200_000),
        http('{"data":' * 100_000),
        http("data: " + '{"a":' * 100_000 + "\n\n"),
        http('{"data": [{"id": "\\ud800"}]}'),
        http('data: {"choices": [{"text": "\\ud800 hi"}]}\n\n'),
        http('data: {"choices": {"0": 1}, "usage": []}\n\n'),
        http('data: {"choices": [{"text": "x"}], "usage": {"prompt_tokens": 1e400}}\n\n'),
        http('data: {"choices": [{"text": "x"}], "usage": {"prompt_tokens": -5}}\n\n'),
        http('{"error": ' + "[" * 100_000, status="400 Bad Request"),
        http('{"error": ' + "[" * 50 + "]" * 50 + "}", status="400 Bad Request"),
    ],
    ids=lambda reply: repr(reply[-24:]),
)
def test_what_is_no_answer_of_vllms_is_said_to_be_none(reply: bytes) -> None:
    with answering({CHAT: reply, MODELS: reply, PLAIN: reply}) as url:
        client = VllmClient(url, timeout=DEADLINE)
        with pytest.raises((NoAnswer, BadAnswer)):
            client.complete("m", "Hi", max_tokens=1, now=lambda: 0.0)
        with pytest.raises((NoAnswer, BadAnswer)):
            client.models()


_PIECE = b'data: {"choices": [{"index": 0, "text": "x"}]}\n\n'


def test_a_stream_that_has_no_end_is_left_once_it_has_more_than_was_asked_for() -> None:
    with endless(Drip(b"HTTP/1.1 200 OK\r\n\r\n", _PIECE)) as url, pytest.raises(BadAnswer, match="4 tokens"):
        VllmClient(url, timeout=DEADLINE).complete("m", "Hi", max_tokens=4, now=lambda: 0.0)


def test_a_stream_of_empty_events_is_not_waited_for() -> None:
    with endless(Drip(b"HTTP/1.1 200 OK\r\n\r\n", b": ping\n\n"), every=0.02) as url:
        client = VllmClient(url, timeout=0.1)
        with pytest.raises(NoAnswer, match="timed out"):
            client.complete("m", "Hi", max_tokens=1, now=lambda: 0.0)


def test_a_line_that_has_no_end_is_not_kept() -> None:
    with endless(Drip(b"HTTP/1.1 200 OK\r\n\r\n", b"A" * 65536)) as url:
        client = VllmClient(url, timeout=DEADLINE)
        with pytest.raises(BadAnswer, match="longer than 1 MiB"):
            client.complete("m", "Hi", max_tokens=1, now=lambda: 0.0)
        with pytest.raises(NoAnswer, match="longer than 4 MiB"):
            client.metrics()


def test_a_reply_that_drips_ends_with_the_patience_of_the_client() -> None:
    with endless(Drip(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b"a"), every=0.02) as url:
        client = VllmClient(url, timeout=0.2)
        for read in (client.models, client.version, client.metrics, client.refusal_of_health):
            with pytest.raises(NoAnswer, match="timed out"):
                read()


def test_metrics_that_are_no_figures_are_left_out() -> None:
    odd = (
        "vllm:num_requests_running 1e400\nvllm:num_requests_waiting NaN\nvllm:kv_cache_usage_perc -Inf\n"
        'vllm:request_success_total{x="' + "\\" * 9 + '"} 1e309\n# HELP \n{} \n\x00\n'
        'vllm:num_requests_running{engine="0"} \nvllm:cache_config_info{a="\\'
    )
    with answering({"/metrics": http(odd)}) as url:
        client = VllmClient(url, timeout=DEADLINE)
        assert vllm_facts.load(client) is None
        assert vllm_facts.counters(client).answers is None
        assert isinstance(HttpMeter(has_iap=False, timeout=DEADLINE).at(url), EngineFigures | Unknown)
        assert "metrics" in vllm_facts.facts(client).silent


def test_health_is_the_status_alone() -> None:
    with answering({HEALTH: http("")}) as url:
        assert VllmClient(url).refusal_of_health() is None
    with answering({HEALTH: http("", status="503 Service Unavailable")}) as url:
        assert VllmClient(url).refusal_of_health() is not None
    with pytest.raises(NoAnswer, match="Connection refused"):
        VllmClient(url, timeout=DEADLINE).refusal_of_health()


def test_the_requests_of_one_block_share_a_connection() -> None:
    connections: set[Thread] = set()  # the server has a thread for each

    def reply_to(request: HttpRequest) -> Reply:
        connections.add(current_thread())
        return Reply(http=200, body="" if request.target == HEALTH else {"data": [{"id": "gemma"}]})

    server = HttpServer(0, reply_to)
    try:
        with VllmClient(f"http://127.0.0.1:{server.port}") as client:
            assert client.refusal_of_health() is None
            assert client.models() == client.models() == ("gemma",)
            client.wait_up_to(2 * DEADLINE)
            assert client.models() == ("gemma",)
    finally:
        server.close()
    assert len(connections) == 1


def test_how_long_a_read_may_last_can_change_on_an_open_connection() -> None:
    is_over = Event()

    def reply_to(request: HttpRequest) -> Reply:
        if request.target == CHAT:
            is_over.wait(2 * DEADLINE)
        return Reply(http=200, body={"data": [{"id": "gemma"}]})

    server = HttpServer(0, reply_to)
    try:
        with VllmClient(f"http://127.0.0.1:{server.port}", timeout=2 * DEADLINE) as client:
            assert client.models() == ("gemma",)
            client.wait_up_to(0.05)
            with pytest.raises(NoAnswer, match="timed out"):
                client.complete("m", "Hi", max_tokens=1, now=lambda: 0.0)
    finally:
        is_over.set()
        server.close()


def test_a_server_that_closes_each_connection_without_announcing_it_is_asked_all_the_same() -> None:
    models = b'{"data": [{"id": "gemma"}]}'
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(models), models)
    with answering({MODELS: reply, CHAT: _stream(_piece("a"))}) as url, VllmClient(url) as client:
        assert [client.models(), client.models()] == [("gemma",), ("gemma",)]
        assert client.complete("m", "Hi", max_tokens=1, now=lambda: 0.0).text == "a"


def test_each_piece_is_heard_as_it_comes_and_speed_is_told_with_and_without_the_wait() -> None:
    seconds = iter([0.0, 1.0, 2.0, 3.0])
    heard: list[str] = []
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 6}}
    with answering({CHAT: _stream(_piece("a"), _piece("b"), _piece("c"), usage)}) as url:
        answer = VllmClient(url).complete("m", "Hi", max_tokens=6, now=lambda: next(seconds), on_piece=heard.append)
    assert heard == ["a", "b", "c"]
    assert (answer.seconds_to_first, answer.seconds) == (1.0, 3.0)
    assert (answer.tokens_per_second, answer.tokens_per_second_then) == (2.0, 2.5)


def test_an_answer_of_one_piece_has_no_speed_after_its_first_token() -> None:
    seconds = iter([0.0, 1.0])
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    with answering({CHAT: _stream(_piece("a"), usage)}) as url:
        answer = VllmClient(url).complete("m", "Hi", max_tokens=1, now=lambda: next(seconds))
    assert (answer.tokens_per_second, answer.tokens_per_second_then) == (1.0, None)


def test_an_answer_that_arrives_at_one_instant_has_no_speed() -> None:
    seconds = iter([0.0, 0.1, 0.1 + 1e-6, 0.1 + 2e-6])
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4000}}
    with answering({CHAT: _stream(_piece("a"), _piece("b"), _piece("c"), usage)}) as url:
        answer = VllmClient(url).complete("m", "Hi", max_tokens=4000, now=lambda: next(seconds))
    assert (answer.tokens_per_second, answer.tokens_per_second_then) == (None, None)


def test_tokens_that_a_server_does_not_count_are_unknown_and_so_is_its_speed() -> None:
    seconds = iter([0.0, 1.0, 2.0])
    with answering({CHAT: _stream(_piece("a"), _piece("b"))}) as url:
        answer = VllmClient(url).complete("m", "Hi", max_tokens=2, now=lambda: next(seconds))
    assert (answer.prompt_tokens, answer.completion_tokens) == (None, None)
    assert (answer.tokens_per_second, answer.tokens_per_second_then) == (None, None)
