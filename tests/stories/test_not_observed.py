"""A server that is reached and gives no answer is neither serving nor unchanged: it is not observed, with the cause."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from answering import answering, http
from command_line import CommandLine, Open

REDIRECT = b"HTTP/1.1 302 Found\r\nLocation: http://evil.example/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
PATHS = ("/health", "/v1/models", "/version", "/metrics", "/v1/chat/completions")


@pytest.fixture(params=[http("busy", status="503 Busy"), REDIRECT, b""], ids=["refuses", "redirects", "closes"])
def sick(cli: Open, request: pytest.FixtureRequest) -> Iterator[CommandLine]:
    """A deployment whose machine reported a completion, and at whose address something else answers now."""
    at: CommandLine = cli(nodes="simulated", boot={"reachable": False})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    (deployment,) = json.loads(at.run("status", "gemma.yaml", "-json").out)["deployments"]
    host, _, port = deployment["replicas"][0]["url"].removeprefix("http://").partition(":")
    with answering(dict.fromkeys(PATHS, request.param), at=(host, int(port))):
        yield at


def test_status_says_so_in_text_in_json_and_by_its_exit_code(sick: CommandLine) -> None:
    result = sick.run("status", "gemma.yaml")
    assert result.code == 1, result.all
    assert "gemma[0] up, not observed" in result.words
    assert "health not observed: external: " in result.words
    assert "gemma[0] was not observed: its server was reached at" in result.words
    assert "TPU6008" in result.out
    assert "a completion came back" not in result.out
    result = sick.run("status", "gemma.yaml", "-json")
    (deployment,) = json.loads(result.out)["deployments"]
    assert (result.code, deployment["error"]["code"]) == (1, "TPU6008")
    assert (deployment["replicas"][0]["serving"], deployment["replicas"][0]["state"]) == (None, "up, not observed")


def test_drift_does_not_say_that_everything_matches(sick: CommandLine) -> None:
    result = sick.run("drift", "gemma.yaml")
    assert result.code == 1, result.all
    assert "gemma[0] was not observed" in result.all
    assert "match what was last applied" not in result.all


def test_verify_and_metrics_do_not_pass(sick: CommandLine) -> None:
    verified = sick.run("verify", "gemma.yaml")
    assert verified.code == 1, verified.all
    assert "gemma[0] was not observed" in verified.out
    read = sick.run("metrics", "gemma.yaml")
    assert read.code == 1, read.all
    assert "was not observed" in read.out


def test_apply_without_changes_warns_instead_of_blaming_the_firewall(sick: CommandLine) -> None:
    result = sick.run("apply", "-auto-approve", "gemma.yaml")
    assert "firewall-rules" not in result.all
