"""Behind a closed firewall the machine alone says that it serves: each command says what that proves, and what helps."""

from __future__ import annotations

import pytest
from command_line import CommandLine, Open


@pytest.fixture
def closed(cli: Open) -> CommandLine:
    at: CommandLine = cli(nodes="real", boot={"reachable": False})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    return at


def test_a_boot_log_that_matches_is_no_observation_and_verify_says_why_and_what_helps(closed: CommandLine) -> None:
    result = closed.run("verify", "gemma.yaml")
    assert result.code == 1, result.all
    assert "max_model_len 16384 16384 (log) in effect" in result.words
    assert "api reported nothing: it cannot be reached from here" in result.words
    assert "neither its API nor /metrics shows a setting; its log is of its last start." in result.words
    assert "`tpudeploy status` shows whether it serves and how to reach it; then verify again." in result.words
    status = closed.run("status", "gemma.yaml")
    assert (status.code, "gcloud compute firewall-rules create gemma-vllm" in status.out) == (0, True)
    for words in (("metrics", "gemma.yaml"), ("metrics",)):
        metrics = closed.run(*words)
        assert metrics.code == 1, metrics.all
        assert "It was not observed. `tpudeploy status PROFILE` shows whether it serves and why not." in metrics.words
