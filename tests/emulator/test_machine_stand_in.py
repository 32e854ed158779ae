"""The stand-in answers as vLLM answers: its API, its refusals, its metrics, its log."""

from __future__ import annotations

import json
import re
import urllib.error
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from emulator.machine_world import IMAGE, MODEL, SERVE, Reply, World, ask

from tpudeploy.catalog import api_paths
from tpudeploy.emulator.machine.machine import Machine
from tpudeploy.emulator.machine.vllm import arguments
from tpudeploy.emulator.machine.vllm.pooling import task_of

HELLO = {"model": MODEL, "messages": [{"role": "user", "content": "hello there"}]}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    world = World(tmp_path_factory.mktemp("served"))
    yield world.boot(f"{SERVE}; healthy")
    world.stop()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    fresh = World(tmp_path)
    yield fresh
    fresh.stop()


def events(reply: Reply) -> list[str]:
    return [line.removeprefix("data: ") for line in reply.text.splitlines() if line]


def metric(machine: Machine, name: str) -> float:
    match = re.search(rf"^{re.escape(name)} (.*)$", ask(machine, "/metrics").text, re.MULTILINE)
    assert match, name
    return float(match[1])


@pytest.mark.parametrize("path", ["/health", "/ping", "/version", "/load", "/v1/models", "/metrics"])
def test_open_paths_answer(served: Machine, path: str) -> None:
    reply = ask(served, path)
    assert reply.status == 200
    assert reply.headers["Server"].strip() == "tpudeploy-emulator"


def test_a_chat_is_answered_and_says_who_speaks(served: Machine) -> None:
    tree = ask(served, "/v1/chat/completions", HELLO).tree
    assert "emulator" in tree["choices"][0]["message"]["content"]
    assert tree["choices"][0]["finish_reason"] == "stop"
    assert tree["usage"]["prompt_tokens"] == 2
    assert tree["usage"]["total_tokens"] == 2 + tree["usage"]["completion_tokens"]


def test_the_same_prompt_gets_the_same_answer(served: Machine) -> None:
    first, second = (ask(served, "/v1/chat/completions", HELLO).tree["choices"] for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"logprobs": True, "top_logprobs": 5}, "`logprobs`"),
        ({"response_format": {"type": "json_object"}}, "`response_format`"),
        ({"tools": [{}], "tool_choice": "required"}, "`tool_choice`"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "`image_url` in a message",
        ),
    ],
)
def test_what_takes_a_model_is_refused_and_not_made_up(served: Machine, more: dict[str, object], what: str) -> None:
    reply = ask(served, "/v1/chat/completions", HELLO | more)
    assert reply.status == 501
    output = f"The tpudeploy emulator runs no model, and its stand-in cannot do {what}. Ask a real server."
    assert reply.tree["error"]["message"] == output


def test_a_request_that_asks_for_nothing_of_the_kind_is_answered(served: Machine) -> None:
    plain = {"logprobs": False, "response_format": {"type": "text"}, "tools": [{}], "tool_choice": "auto"}
    assert ask(served, "/v1/chat/completions", HELLO | plain).status == 200


def test_max_tokens_is_honoured(served: Machine) -> None:
    tree = ask(served, "/v1/chat/completions", HELLO | {"max_tokens": 3}).tree
    assert tree["usage"]["completion_tokens"] == 3
    assert tree["choices"][0]["finish_reason"] == "length"


def test_ignore_eos_fills_the_length_that_was_asked(served: Machine) -> None:
    tree = ask(served, "/v1/completions", {"prompt": "x", "max_tokens": 100, "ignore_eos": True}).tree
    assert tree["usage"]["completion_tokens"] == 100


@pytest.mark.parametrize(
    ("prompt", "tokens", "choices"),
    [("one two three", 3, 1), ([5, 6, 7, 8], 4, 1), (["one", "one two"], 3, 2), ([[1, 2], [3]], 3, 2)],
)
def test_a_completion_takes_text_tokens_and_lists(served: Machine, prompt: object, tokens: int, choices: int) -> None:
    tree = ask(served, "/v1/completions", {"model": MODEL, "prompt": prompt}).tree
    assert tree["object"] == "text_completion"
    assert tree["usage"]["prompt_tokens"] == tokens
    assert len(tree["choices"]) == choices


@pytest.mark.parametrize(
    ("path", "body", "read"),
    [
        ("/v1/chat/completions", HELLO, lambda choice: choice["delta"]["content"]),
        ("/v1/completions", {"model": MODEL, "prompt": "hello there"}, lambda choice: choice["text"]),
    ],
    ids=["chat", "completion"],
)
def test_a_stream_says_the_same_word_by_word(served: Machine, path: str, body: dict[str, object], read: object) -> None:
    whole = ask(served, path, body).tree
    stream = ask(served, path, body | {"stream": True, "stream_options": {"include_usage": True}})
    *chunks, usage, end = events(stream)
    choices = [json.loads(chunk)["choices"][0] for chunk in chunks]

    assert callable(read)
    output = whole["choices"][0].get("text") or whole["choices"][0]["message"]["content"]
    assert "".join(map(read, choices)) == output
    assert [choice["finish_reason"] for choice in choices[:-1]] == [None] * (len(choices) - 1)
    assert choices[-1]["finish_reason"] == whole["choices"][0]["finish_reason"]
    assert json.loads(usage)["usage"] == whole["usage"]
    assert end == "[DONE]"
    assert stream.headers["Content-Type"].startswith("text/event-stream")


@pytest.mark.parametrize(
    ("path", "body", "status", "kind", "text"),
    [
        (
            "/v1/completions",
            {"model": "other", "prompt": "x"},
            404,
            "NotFoundError",
            "The model `other` does not exist.",
        ),
        (
            "/v1/completions",
            {"prompt": [1] * 32768},
            400,
            "BadRequestError",
            "max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)",
        ),
        (
            "/v1/completions",
            {"model": MODEL, "prompt": [5, 262_144]},
            400,
            "BadRequestError",
            "Token id 262144 is out of vocabulary",
        ),
        ("/v1/chat/completions", HELLO | {"max_tokens": -1}, 400, "BadRequestError", "max_tokens must be at least 1"),
        ("/v1/chat/completions", {"model": MODEL}, 400, "Bad Request", "Field required"),
        ("/v1/chat/completions", HELLO | {"max_tokens": "many"}, 400, "Bad Request", "type_error"),
        ("/v1/chat/completions", {"messages": [1]}, 400, "Bad Request", "type_error"),
        ("/v1/completions", {"prompt": [0.5]}, 400, "Bad Request", "Field required"),
        ("/v1/completions", b"{", 400, "Bad Request", "JSON decode error"),
        ("/v1/completions", [], 400, "Bad Request", "model_attributes_type"),
        ("/nothing", {}, 404, "Not Found", "Not Found"),
        ("/health", {}, 405, "Method Not Allowed", "Method Not Allowed"),
    ],
)
def test_refusals_have_vllms_body(  # noqa: PLR0917 - one column each
    served: Machine, path: str, body: object, status: int, kind: str, text: str
) -> None:
    reply = ask(served, path, body)
    assert reply.status == status
    assert reply.tree["error"]["type"] == kind
    assert reply.tree["error"]["code"] == status
    assert text in reply.tree["error"]["message"]


def test_the_longest_prompt_that_fits_is_answered(served: Machine) -> None:
    assert ask(served, "/v1/completions", {"prompt": [1] * 32767}).tree["usage"]["completion_tokens"] == 1


def test_metrics_count_what_passed(served: Machine) -> None:
    labels = f'{{engine="0",model_name="{MODEL}"}}'
    stops = f'vllm:request_success_total{{engine="0",finished_reason="length",model_name="{MODEL}"}}'
    names = [f"vllm:prompt_tokens_total{labels}", f"vllm:generation_tokens_total{labels}", stops]
    names += [f"vllm:time_to_first_token_seconds_count{labels}", f"vllm:inter_token_latency_seconds_count{labels}"]
    before = [metric(served, name) for name in names]
    ask(served, "/v1/completions", {"prompt": "a b c", "max_tokens": 4})
    after = [metric(served, name) for name in names]
    assert [new - old for new, old in zip(after, before, strict=True)] == [3, 4, 1, 1, 3]


def test_metrics_tell_the_measured_cache(served: Machine) -> None:
    line = next(line for line in ask(served, "/metrics").text.splitlines() if line.startswith("vllm:cache_config_info"))
    labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
    assert labels["num_gpu_blocks"] == "17996"
    assert labels["block_size"] == "64"
    assert labels["kv_cache_size_tokens"] == "1151744"
    assert line.endswith(" 1.0")


@pytest.mark.parametrize(
    ("changed", "blocks"),
    [("--block-size 32", "18523"), ("--gpu-memory-utilization 0.9", "None"), ("--data-parallel-size 1", "None")],
)
def test_a_published_boot_on_four_chips_has_its_measured_blocks_and_any_other_tells_none(
    world: World, changed: str, blocks: str
) -> None:
    machine = world.boot(
        f"""
        serve {IMAGE} vllm serve {MODEL} --tensor-parallel-size 4 --kv-cache-dtype fp8 --gpu-memory-utilization 0.40 \\
          --max-model-len 16384 {changed}
        healthy
        """,
        accelerator="v6e-4",
    )
    assert f'num_gpu_blocks="{blocks}"' in ask(machine, "/metrics").text


def test_many_callers_at_once_are_all_counted(served: Machine) -> None:
    name = f'vllm:prompt_tokens_total{{engine="0",model_name="{MODEL}"}}'
    before = metric(served, name)
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda _: ask(served, "/v1/completions", {"prompt": "a b"}), range(64)))
    assert {reply.status for reply in replies} == {200}
    assert len({reply.tree["id"] for reply in replies}) == 64
    assert metric(served, name) == before + 128


def test_each_key_is_accepted_and_another_one_is_not(world: World) -> None:
    machine = world.boot(f"{SERVE} --api-key first second; healthy")
    assert ask(machine, "/v1/models").tree == {"error": "Unauthorized"}
    assert [ask(machine, "/v1/models", key=key).status for key in ("wrong", "first", "second")] == [401, 200, 200]


@pytest.mark.parametrize(
    ("model", "settings", "body", "answered"),
    [
        (MODEL, "", HELLO, ("/invocations",)),
        (MODEL, "", {"prompt": "hello"}, ("/invocations", "/tokenize")),
        (MODEL, "-e VLLM_SERVER_DEV_MODE=1", {}, ()),
        ("BAAI/bge-m3", "", {"input": "hello"}, ("/invocations", "/pooling")),
        ("BAAI/bge-m3", "", {"text_1": "a", "text_2": "b"}, ("/invocations", "/score")),
        ("BAAI/bge-reranker-v2-m3", "", {"query": "a", "documents": ["b"]}, ("/invocations", "/rerank")),
        ("BAAI/bge-reranker-v2-m3", "", {"input": "hello"}, ("/invocations", "/classify", "/pooling")),
    ],
)
def test_a_key_guards_what_the_engine_guards_and_every_other_path_answers(
    world: World, model: str, settings: str, body: dict[str, object], answered: tuple[str, ...]
) -> None:
    serve = SERVE.replace("serve", f"serve {settings}", 1).replace(MODEL, model)
    machine = world.boot(f"{serve} --max-model-len 8192 --api-key key; healthy")
    variables = {"VLLM_SERVER_DEV_MODE": "1"} if settings else {}
    task = task_of(arguments.parse([model]))
    groups = list(api_paths.served(None, frozenset({task}), (), variables))
    for path in (path for group in groups for path in group.paths):
        statuses = {ask(machine, path).status, ask(machine, path, {"unknown": 0}).status}
        assert statuses == {401} if api_paths.is_guarded(path) else not statuses & {401, 404}, path
    assert ask(machine, "/v1-and-more").status == ask(machine, "/cohere/v2/chat").status == 401
    assert ask(machine, "/other").status == 404
    assert {path: ask(machine, path, body).status for path in answered} == dict.fromkeys(answered, 200)
    elsewhere = "/pooling" if task == "generate" else "/generative_scoring"
    assert ask(machine, elsewhere, body).status == 404


def test_an_older_engine_guards_less(world: World) -> None:
    serve = SERVE.replace(IMAGE, "vllm/vllm-tpu:v0.21.0")
    machine = world.boot(f"{serve} --api-key key; healthy")
    assert [ask(machine, path).status for path in ("/v1/models", "/v2/rerank")] == [401, 404]


def test_a_base_model_chats_with_a_template_alone(world: World) -> None:
    machine = world.boot("""
        docker run -d --name base --net=host image vllm serve google/gemma-4-E2B
        docker run -d --name templated --net=host image vllm serve google/gemma-4-E2B --chat-template x --port 8001
    """)
    body = {"messages": HELLO["messages"]}
    refused = ask(machine, "/v1/chat/completions", body)
    assert refused.status == 400
    assert "chat template" in refused.tree["error"]["message"]
    assert ask(machine, "/v1/completions", {"prompt": "hello"}).status == 200
    assert ask(machine, "/v1/chat/completions", body, port=8001).status == 200


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--gpu-memory-utilisation 0.9", "error: unrecognized arguments: --gpu-memory-utilisation 0.9"),
        ("--kv-cache-dtype fp9", "error: argument --kv-cache-dtype: invalid choice: 'fp9' (choose from 'auto'"),
        (
            "--speculative-config {",
            "error: argument --speculative-config: Value { cannot be converted to <function loads",
        ),
        ("--max-num-seqs many", "error: argument --max-num-seqs: invalid int value: 'many'"),
        ("--max-model-len", "error: argument --max-model-len: expected one argument"),
    ],
)
def test_words_that_vllm_does_not_know_end_the_container_with_2(world: World, words: str, text: str) -> None:
    machine = world.boot(f"serve {IMAGE} vllm serve {MODEL} {words}; docker wait vllm; docker logs vllm")
    assert text in machine.log()
    assert "\n2\n" in machine.log()


def test_all_spellings_that_vllm_reads_are_served(world: World) -> None:
    machine = world.boot(f"""
        serve {IMAGE} vllm serve {MODEL} -tp 1 --max_model_len=16k --no-enable-prefix-caching --disable_chunked_mm_input \\
          --limit-mm-per-prompt '{{"image": 4}}' --trust-remote-code --served-model-name one two
        healthy
    """)
    tree = ask(machine, "/v1/models").tree
    assert [(card["id"], card["max_model_len"]) for card in tree["data"]] == [("one", 16000), ("two", 16000)]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--tensor-parallel-size 4", "ValueError: Insufficient devices for 2D mesh: found 1, expected 4"),
        (
            "--max-num-batched-tokens 128",
            "ValueError: max_num_batched_tokens (128) must be greater than or equal to max_num_seqs (256).",
        ),
        ("--enable-auto-tool-choice", "--enable-auto-tool-choice requires --tool-call-parser"),
    ],
)
def test_configurations_that_vllm_refuses_end_the_container(world: World, words: str, text: str) -> None:
    machine = world.boot(f"{SERVE} {words}; docker wait vllm; docker logs vllm")
    assert re.search(rf"\n1\n(.*\n)*.*{re.escape(text)}\n", machine.log())


def test_a_crash_is_logged_as_the_engine_logs_it(world: World) -> None:
    cause = "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error."
    script = f"{SERVE}; docker wait vllm; docker logs --tail 2 vllm; docker ps -a --format '{{{{.Status}}}}'"
    machine = world.boot(script, boot_seconds=600, crash=cause)
    assert machine.exit_code is None
    world.pass_time(600, steps=3)
    lines = machine.log().splitlines()[2:]
    assert lines[0] == "1"
    assert re.fullmatch(rf"\(EngineCore pid=327\) ERROR [\d-]+ [\d:]+ \[core.py:1349\] {re.escape(cause)}", lines[1])
    assert lines[2].endswith("Engine core initialization failed. See root cause above. Failed core proc(s): {}")
    assert lines[3] == "Exited (1)"


def test_a_hanging_engine_never_answers(world: World) -> None:
    machine = world.boot(f"{SERVE}; healthy", boot_seconds=600, hang=True)
    world.pass_time(100_000, steps=5)
    assert machine.exit_code is None
    with pytest.raises(urllib.error.URLError, match="refused"):
        ask(machine, "/health")


@pytest.mark.parametrize(
    ("behaviour", "words", "pool", "origin"),
    [
        ({}, "", "1,151,744 tokens", None),
        ({}, "--max-num-seqs 64", None, "nobody measured"),
        ({"kv_blocks": 100, "block_size": 32}, "", "3,200 tokens", "the scenario's"),
    ],
    ids=["measured", "unmeasured", "scenario"],
)
def test_the_log_says_where_the_caches_figures_come_from(
    world: World, behaviour: dict[str, int], words: str, pool: str | None, origin: str | None
) -> None:
    machine = world.boot(f"{SERVE} {words}; docker logs vllm", **behaviour)
    assert ("TPU KV cache size: " in machine.log()) == (pool is not None)
    assert pool is None or f"TPU KV cache size: {pool}" in machine.log()
    assert ("[emulator]" in machine.log()) == (origin is not None)
    assert origin is None or origin in machine.log()


def test_milestones_come_in_the_order_of_a_real_boot(world: World) -> None:
    machine = world.boot(f"{SERVE}; docker logs vllm")
    marks = [
        "non-default args",
        "Loading safetensors",
        "Memory statistics |",
        "KV cache size:",
        "Precompile worker0 sample",
    ]
    marks += ["Precompile worker0 backbone with embeds", "init engine (profile", "Application startup complete."]
    places = [machine.log().index(mark) for mark in marks]
    assert places == sorted(places)


def test_two_servers_cannot_share_a_port(world: World) -> None:
    machine = world.boot(
        f"{SERVE}; docker run -d --name late --net=host image vllm serve m; docker wait late; docker logs late"
    )
    assert re.search(r"OSError: \[Errno \d+\] Address already in use", machine.log())


def test_with_a_pace_of_its_own_a_real_node_computes_a_whole_cell_of_load(world: World) -> None:
    load = {"streams": 8, "context": 128, "output": 16, "requests": 24, "seed": 1}
    offer = {**load, "window_seconds": 60.0, "least_seconds": 2.0}
    at_once, paced = world.boot(f"{SERVE}; healthy"), world.boot(f"{SERVE}; healthy", paced=True)
    assert ask(at_once, "/emulator/loop", offer).status == 404
    loop = ask(paced, "/emulator/loop", offer).tree
    began, ended = loop["window"]
    assert ended - began >= 2.0
    assert metric(paced, f'vllm:generation_tokens_total{{engine="0",model_name="{MODEL}"}}') == 16 * len(
        loop["answers"]
    )
    assert ask(paced, "/emulator/loop", {**offer, "streams": 0}).status == 400
    paced.settle(patience=10.0)  # it serves, and a script that sleeps need not wait for it
