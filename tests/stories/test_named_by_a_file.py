"""An address that only a file names gets no prompt and no key: whoever writes to the repository can write that file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from answering import answering, http
from command_line import PROFILE, CommandLine, Open

from tpudeploy.domain import errors
from tpudeploy.engine.confirmation import ConfirmedDocument
from tpudeploy.workspace import Workspace

KEY, PROMPT = "made-up-key", "a secret question"
KEYED = PROFILE.replace("  HF_TOKEN: hf-token\n", "  HF_TOKEN: hf-token\n  VLLM_API_KEY: vllm-key\n")
PATHS = (
    "/",
    "/health",
    "/version",
    "/metrics",
    "/v1/models",
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
)
COMMANDS = (
    ("query", "gemma.yaml", PROMPT),
    ("query", "-untrusted", "gemma.yaml", PROMPT),
    ("metrics",),
    ("metrics", "gemma"),
    ("metrics", "gemma.yaml"),
    ("verify", "gemma.yaml"),
    ("verify", "-untrusted", "gemma.yaml", "-accuracy", "-questions", "2"),
    ("bench", "gemma.yaml", "-concurrency", "1", "-untrusted"),
    ("compare", "gemma.yaml", "-ab", "serving.block_size=16,32"),
)


class Stranger:
    """A server of somebody else's, and every request that it got."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.url = ""

    def hear(self, request: bytes) -> bytes:
        self.requests.append(request.decode("utf-8", "replace"))
        return http("{}")


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    listener = Stranger()
    with answering(dict.fromkeys(PATHS, listener.hear)) as url:
        listener.url = url
        yield listener


def _document(at: CommandLine) -> Path:
    return at.folder / "endpoints" / "gemma.json"


def _deployed(cli: Open) -> CommandLine:
    at = cli(nodes="simulated", secrets={"hf-token": "made-up-token", "vllm-key": KEY})
    assert at.run("apply", "-auto-approve", at.write(KEYED)).code == 0
    return at


def _router(url: str) -> dict[str, Any]:
    host, _, port = url.removeprefix("http://").partition(":")
    return {"kind": "haproxy", "host": "local", "address": host, "port": int(port), "model": "google/gemma-4-E2B-it"}


# What somebody with access to the repository writes there: the address, that of a replica, or that of a router.
FORGERIES: dict[str, Callable[[dict[str, Any], str], dict[str, Any]]] = {
    "the endpoint": lambda document, url: {**document, "url": url},
    "the endpoint and its replica": lambda document, url: {
        **document, "url": url, "replicas": [{**document["replicas"][0], "url": url}]
    },
    "a router": lambda document, url: {**document, "url": url, "router": _router(url)},
    "a router beside the real address": lambda document, url: {**document, "router": _router(url)},
    "an address that calls itself confirmed": lambda document, url: {**document, "url": url, "confirmed": True},
    "a router of the user's own": lambda document, url: {
        **document, "url": url, "router": {**_router(url), "host": "own"}
    },
}  # fmt: skip
# Nothing reads an address there, but `output` prints it.
PRINTED_FORGERIES: dict[str, Callable[[dict[str, Any], str], dict[str, Any]]] = {
    **FORGERIES,
    "a second address, by the printed name": lambda document, url: {**document, "endpoint": url},
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_no_key_and_no_prompt_go_to_an_address_that_only_a_file_names(
    cli: Open, stranger: Stranger, forgery: str
) -> None:
    at = _deployed(cli)
    document = json.loads(_document(at).read_text("utf-8"))
    _document(at).write_text(json.dumps(FORGERIES[forgery](document, stranger.url)), "utf-8")
    for words in COMMANDS:
        result = at.run(*words)
        assert result.code != 70, result.all
        assert not stranger.requests, (words, stranger.requests, result.all)
    refused = at.run("query", "gemma.yaml", PROMPT)
    assert refused.code == 1
    assert f"endpoints/gemma.json names {stranger.url}" in refused.words
    assert "No request was sent there." in refused.words
    # What the hint says works.
    assert "Delete that file, and `tpudeploy apply` publishes" in refused.words
    _document(at).unlink()
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert at.run("query", "-untrusted", "gemma.yaml", PROMPT).code == 0
    assert not stranger.requests


@pytest.mark.parametrize("forgery", PRINTED_FORGERIES)
def test_an_address_that_only_a_file_names_is_reported_as_not_confirmed(
    cli: Open, stranger: Stranger, forgery: str
) -> None:
    at = _deployed(cli)
    right = at.run("output", "gemma")
    assert (right.code, right.err) == (0, "")
    assert json.loads(at.run("output", "gemma", "-json").out)["confirmed"] is True
    document = json.loads(_document(at).read_text("utf-8"))
    forged = PRINTED_FORGERIES[forgery](document, stranger.url)
    _document(at).write_text(json.dumps(forged), "utf-8")
    is_named = forged["url"] == stranger.url
    for words in (
        ("output", "gemma"),
        ("output",),
        ("output", "gemma", "endpoint"),
        ("output", "-untrusted", "gemma.yaml"),
    ):
        shown = at.run(*words)
        assert shown.code == 0
        assert ("Not confirmed: no slice of gemma" in shown.words) is is_named, shown.all
        assert (
            stranger.url not in shown.out or "endpoint" in words[-1] or f'"{stranger.url}" (not confirmed)' in shown.out
        )
    assert json.loads(at.run("output", "gemma", "-json").out)["confirmed"] is not is_named
    # The report of an apply tells what is, and clients get the address of the slice again.
    applied = at.run("apply", "-auto-approve", "gemma.yaml", "-json")
    assert applied.code == 0
    assert stranger.url not in applied.out
    assert not stranger.requests


@pytest.mark.parametrize("replicas", [5, {}, ["http://127.0.0.1:1"], [{"replica": 0}], [{"url": 5}]], ids=str)
def test_a_document_with_another_list_of_replicas_is_not_used(cli: Open, replicas: object) -> None:
    at = _deployed(cli)
    right = json.loads(_document(at).read_text("utf-8"))
    _document(at).write_text(json.dumps({**right, "replicas": replicas}), "utf-8")
    for words in (
        *COMMANDS,
        ("output",),
        ("output", "gemma"),
        ("render", "gemma.yaml", "router"),
        ("dashboard", "-once"),
    ):
        result = at.run(*words)
        assert result.code != 70, (words, result.all)
    answer = at.run("output", "gemma")
    assert (answer.code, "has another form of replicas" in answer.words) == (1, True)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert json.loads(_document(at).read_text("utf-8"))["replicas"] == right["replicas"]


def test_addresses_are_not_called_confirmed_while_google_does_not_answer(cli: Open) -> None:
    at = _deployed(cli)
    at.emulator.script({"fault": "unavailable", "method": "*"})
    shown = at.run("output", "gemma")
    assert shown.code == 0
    assert "(not confirmed)" in shown.out
    assert "is not known" in shown.words
    assert json.loads(at.run("output", "gemma", "-json").out)["confirmed"] is None


def test_a_router_on_a_machine_without_permission_to_look_uses_the_list_of_its_bucket(cli: Open) -> None:
    at = _deployed(cli)
    denials: list[errors.Denied] = []
    with Workspace(at.folder, clock=at.clock) as workspace:
        at.emulator.script({"fault": "iam-denied", "method": "*"})
        read = ConfirmedDocument(
            workspace.adapters.world(), "gemma", lambda: workspace.endpoint("gemma"), on_denied=denials.append
        )
        assert [read(), read()] == [workspace.endpoint("gemma")] * 2
    assert len(denials) == 1


def test_a_repository_that_brings_its_own_endpoint_without_a_deployment_gets_no_request(
    cli: Open, stranger: Stranger
) -> None:
    at = cli(secrets={"hf-token": "made-up-token", "vllm-key": KEY})
    at.write(KEYED)
    _document(at).parent.mkdir()
    _document(at).write_text(json.dumps({"url": stranger.url, "generation": 1, "since": 0}), "utf-8")
    for words in COMMANDS:
        assert at.run(*words).code == 1
    assert not stranger.requests


def test_a_router_of_an_untrusted_profile_gets_no_prompt(cli: Open, stranger: Stranger) -> None:
    at = _deployed(cli)
    router = {**_router(stranger.url), "host": "own"}
    document = json.loads(_document(at).read_text("utf-8"))
    _document(at).write_text(json.dumps({**document, "url": stranger.url, "router": router}), "utf-8")
    declared = {key: value for key, value in router.items() if key != "model"}
    at.write(f"{KEYED}router: {json.dumps(declared)}\n")
    refused = at.run("query", "-untrusted", "gemma.yaml", PROMPT)
    assert (refused.code, stranger.requests) == (1, [])
    assert "of an untrusted profile" in refused.words
    # The author of a trusted profile says where the router is.
    at.run("query", "gemma.yaml", PROMPT)
    assert KEY in "".join(stranger.requests)


def test_a_slice_in_another_project_gets_no_key_of_this_one(cli: Open) -> None:
    at = _deployed(cli)
    moved = KEYED.replace("placement:\n", "placement:\n  project: somebody-elses\n")
    refused = at.run("query", at.write(moved), PROMPT)
    assert refused.code == 1
    assert "No request was sent there." in refused.words
    # Its server answers the key of its own project: the status of a deployment that moves is no other one.
    (deployment,) = json.loads(at.run("status", "gemma.yaml", "-json").out)["deployments"]
    assert deployment["replicas"][0]["serving"] is True


def test_a_router_gets_no_replica_that_only_a_file_names(cli: Open, stranger: Stranger) -> None:
    at = _deployed(cli)
    right = json.loads(_document(at).read_text("utf-8"))
    (replica,) = right["replicas"]
    forged = {**right, "replicas": [replica, {**replica, "url": stranger.url}]}
    _document(at).write_text(json.dumps(forged), "utf-8")
    with Workspace(at.folder, clock=at.clock) as workspace:
        read = ConfirmedDocument(workspace.adapters.world(), "gemma", lambda: workspace.endpoint("gemma"))
        document = read()
    assert document == right
