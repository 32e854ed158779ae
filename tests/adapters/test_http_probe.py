"""Whether a server serves is what it answers now; what its machine reported of the boot counts where it is not reached."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from answering import answering, http
from command_line import PROFILE
from endless import endless
from real_time import DEADLINE

import tpudeploy as td
from tpudeploy.adapters.http_probe import HttpProbe
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import BootPhase, BootReport, Phase, Slice
from tpudeploy.emulator import VirtualClock

REPORT = BootReport(phase=BootPhase.SERVING, answer="Hello")
MODELS = http(json.dumps({"data": [{"id": "google/gemma-4-E2B-it"}]}))
SERVING = {"/health": http(""), "/v1/models": MODELS}


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    (tmp_path / "gemma.yaml").write_text(PROFILE, "utf-8")
    with td.Workspace.open(tmp_path, project="p") as workspace:
        return workspace.deployment(td.Profile.load(tmp_path / "gemma.yaml"))


@contextmanager
def reached(replies: Mapping[str, bytes]) -> Iterator[tuple[HttpProbe, Slice]]:
    probe = HttpProbe(VirtualClock(), lambda *_: "key", has_iap=False, timeout=DEADLINE)
    with answering(replies) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        place = Slice(name="a", zone=Zone("us-east5-a"), phase=Phase.UP, external_ip=host, port=int(port))
        yield probe, place


@pytest.mark.parametrize(
    "completion",
    [
        http("<html>Sign in</html>"),
        http("[" * 100_000),
        http('data: {"choices": {"0": 1}}\n\n'),
        http("data: " + "A" * (2 << 20)),
        http('data: {"choices": [{"text": "x"}]}\n\n' * 100),
    ],
    ids=["a page", "brackets", "another shape", "a line without an end", "more than was asked for"],
)
def test_a_server_that_answers_something_else_does_not_serve_whatever_its_boot_reported(
    deployment: Deployment, completion: bytes
) -> None:
    with reached({**SERVING, "/v1/chat/completions": completion}) as (probe, place):
        health = probe.health(deployment, place, lambda: REPORT)
    assert health.serving is False
    assert "HTTP 200" in health.detail


@pytest.mark.parametrize("busy", [http("busy", status="503 Busy"), http("later", status="429 Later"), b""])
def test_a_server_that_is_busy_or_not_reached_serves_by_its_own_report(deployment: Deployment, busy: bytes) -> None:
    with reached({**SERVING, "/v1/chat/completions": busy}) as (probe, place):
        health = probe.health(deployment, place, lambda: REPORT)
    assert health.serving is True
    assert health.node_only is True


@pytest.mark.parametrize(
    ("completion", "why"),
    [
        (http("busy", status="503 Busy"), "external: HTTP 503: busy"),
        (
            b"HTTP/1.1 307 Moved\r\nLocation: http://evil.example/x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            "a redirect to evil.example, which is not followed",
        ),
        (b"", "external: Remote end closed connection"),
    ],
    ids=["busy", "a redirect", "closed"],
)
def test_a_server_that_is_reached_and_gives_no_answer_is_not_observed(
    deployment: Deployment, completion: bytes, why: str
) -> None:
    with reached({**SERVING, "/v1/chat/completions": completion}) as (probe, place):
        health = probe.health(deployment, place, lambda: REPORT)
    assert why in health.silence


def test_a_server_that_stalls_is_not_observed(deployment: Deployment) -> None:
    with endless([b""], every=DEADLINE) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        place = Slice(name="a", zone=Zone("us-east5-a"), phase=Phase.UP, external_ip=host, port=int(port))
        probe = HttpProbe(VirtualClock(), lambda *_: "key", has_iap=False, timeout=0.05)
        health = probe.health(deployment, place, lambda: REPORT)
    assert health.silence == "external: timed out"


def test_a_machine_that_cannot_be_reached_is_believed(deployment: Deployment) -> None:
    with reached({}) as (probe, place):
        pass
    health = probe.health(deployment, place, lambda: REPORT)
    assert (health.serving, health.node_only, health.silence) == (True, True, "")


COMPLETION = http('data: {"choices": [{"delta": {"content": "4"}}]}\n\ndata: [DONE]\n\n')


def _metrics(ended: int = 5, running: int = 0, tokens: int = 40) -> bytes:
    return http(
        f'vllm:request_success_total{{finished_reason="stop"}} {ended}\n'
        f'vllm:num_requests_running{{engine="0"}} {running}\nvllm:generation_tokens_total{{engine="0"}} {tokens}\n'
    )


@pytest.mark.parametrize(
    ("looks", "is_asked"),
    [
        ([(60, _metrics())], False),
        ([(599, _metrics())], False),
        ([(600, _metrics())], True),
        ([(60, _metrics(ended=4))], True),
        ([(30, _metrics(running=2))], False),
        ([(30, _metrics(running=2)), (40, _metrics(running=2))], True),
        ([(30, _metrics(running=2)), (40, _metrics(running=2, tokens=41))], False),
        ([(300, http("", status="404 Not Found"))], True),
    ],
    ids=["soon", "just in time", "later", "restarted", "busy", "stuck", "slow", "metrics gone"],
)
def test_a_settled_server_is_asked_for_an_answer_after_ten_minutes_or_where_its_metrics_say_that_it_hangs(
    deployment: Deployment, looks: Sequence[tuple[float, bytes]], is_asked: bool
) -> None:
    replies = {**SERVING, "/v1/chat/completions": COMPLETION, "/metrics": _metrics()}
    clock = VirtualClock()
    with answering(replies) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        place = Slice(name="a", zone=Zone("us-east5-a"), phase=Phase.UP, external_ip=host, port=int(port))
        probe = HttpProbe(clock, lambda *_: "key", has_iap=False, timeout=DEADLINE)
        assert probe.health(deployment, place, lambda: REPORT, is_settled=True).answer == "4"
        replies["/v1/chat/completions"] = b""  # it hangs from here on
        for seconds, metrics in looks:
            clock.sleep(seconds)
            replies["/metrics"] = metrics
            health = probe.health(deployment, place, lambda: REPORT, is_settled=True)
        assert bool(health.silence) is is_asked
        assert probe.health(deployment, place, lambda: REPORT).silence
