"""A server that runs badly is diagnosed by two looks at its metrics: each finding, seen in a scenario of the emulator."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open

from tpudeploy.features.diagnosis.findings import RULES

GAUGES = {"num_requests_running": 8}
# Two requests a second with prompts of 500 tokens, some of them in the prefix cache: a server that does well.
WELL = {
    "request_success.stop": 2,
    "prompt_tokens": 1000,
    "generation_tokens": 200,
    "prefix_cache_queries": 1000,
    "prefix_cache_hits": 400,
    "time_to_first_token_seconds=0.08": 2,
    "inter_token_latency_seconds=0.008": 200,
    "request_queue_time_seconds=0.01": 2,
    "request_prefill_time_seconds=0.07": 2,
    "request_decode_time_seconds=0.8": 2,
}


def but(*left_out: str, **changed: float) -> dict[str, float]:
    """Return the growth of a server that does well, with another growth of some."""
    return {name: rate for name, rate in WELL.items() if not name.startswith(left_out)} | changed


@dataclass(frozen=True)
class Scenario:
    """What the server's metrics say, and words of the finding and its remedy."""

    load: Mapping[str, float] = field(default_factory=dict)
    growth: Mapping[str, float] = field(default_factory=lambda: WELL)
    evidence: str = ""
    remedy: str = ""
    profile: str = PROFILE


SCENARIOS: Mapping[str, Scenario] = {
    "unmeasured": Scenario(
        profile=PROFILE.replace("max_model_len: 16384", "args: {disable_log_stats: true}"),
        evidence="It reports no statistics.",
        remedy="Remove `disable_log_stats`",
    ),
    "asleep": Scenario(load={"engine_sleep_state.awake": -1}, evidence="The engine sleeps", remedy="/wake_up"),
    "restarted": Scenario(
        load={**GAUGES, "generation_tokens": 90_000},
        growth=but("generation_tokens", generation_tokens=-50),
        evidence="Its counters started again between the two looks",
        remedy="-explain` names the cause",
    ),
    "stalled": Scenario(
        load=GAUGES,
        growth={},
        evidence="8 requests in flight, and no token computed in 30 s.",
        remedy="`tpudeploy report-host` reports its hardware",
    ),
    "erroring": Scenario(
        load=GAUGES,
        growth=WELL | {"request_success.error": 1},
        evidence="30 of 90 requests ended in an error in these 30 s.",
        remedy="`tpudeploy logs PROFILE` shows the errors",
    ),
    "rejecting": Scenario(
        load=GAUGES,
        growth=WELL | {"admission_rejections.max_num_queued_reqs": 1},
        evidence="30 requests rejected in these 30 s: the queue was full.",
        remedy="add a replica",
    ),
    "overloaded": Scenario(
        load={"num_requests_running": 256, "num_requests_waiting_by_reason.capacity": 40, "kv_cache_usage_perc": 0.97},
        growth=but("request_queue") | {"request_queue_time_seconds=6": 2},
        evidence="40 requests waiting for room. Requests that ended had waited 6.000s on average.",
        remedy="The KV cache holds",
    ),
    "cache-full": Scenario(
        load={"num_requests_running": 90, "num_requests_waiting_by_reason.capacity": 4, "kv_cache_usage_perc": 0.97},
        evidence="97% of the KV cache is in use, above 85%",
        remedy="More would hold:",
    ),
    "preempting": Scenario(
        load={"num_requests_running": 90, "kv_cache_usage_perc": 0.9},
        growth=WELL | {"num_preemptions": 0.5},
        evidence="15 requests preempted in these 30 s",
        remedy="The KV cache holds",
    ),
    "deferred": Scenario(
        load={**GAUGES, "num_requests_waiting_by_reason.deferred": 3},
        evidence="3 requests deferred for another reason than room",
        remedy="Raise max_loras",
    ),
    "slow-prefill": Scenario(
        load=GAUGES,
        growth=but("request_prefill") | {"request_prefill_time_seconds=2.5": 2},
        evidence="A prompt of 500 tokens takes 2.500s without its time in the queue",
        remedy="raise max_num_batched_tokens",
    ),
    "slow-decode": Scenario(
        load={"num_requests_running": 1},
        growth=but("inter_token") | {"inter_token_latency_seconds=0.12": 200},
        evidence="A token takes 0.120s with 1 request at a time",
        remedy="settings that aren't in effect",
    ),
    "hang-ups": Scenario(
        load=GAUGES,
        growth=WELL | {"request_success.abort": 1},
        evidence="30 of 90 requests ended because the client hung up.",
        remedy="raise the timeout",
    ),
    "crowded": Scenario(
        load={"num_requests_running": 128},
        growth=but("inter_token") | {"inter_token_latency_seconds=0.06": 4000},
        evidence="A token takes 60.0ms: 128 requests share each step.",
        remedy="another replica",
    ),
    "at-the-bound": Scenario(
        load={"num_requests_running": 1},
        growth=but("inter_token") | {"inter_token_latency_seconds=0.0047": 200},
        evidence="A token takes 4.7ms, and the chips need at least",
        remedy="Only more chips per replica",
    ),
    "uncached": Scenario(
        load=GAUGES,
        growth=but("prompt_tokens", "prefix") | {"prompt_tokens": 8000, "prefix_cache_queries": 8000},
        evidence="Prompts have 4,000 tokens on average, and none was found in the prefix cache.",
        remedy="put what they share first",
    ),
    "idle": Scenario(growth={}, evidence="No request ran in these 30 s.", remedy="Repeat it under load"),
}


def serving(cli: Open, scenario: Scenario) -> CommandLine:
    boot = {"boot_seconds": 60, "load": dict(scenario.load), "growth": dict(scenario.growth)}
    at: CommandLine = cli(nodes="simulated", boot=boot)
    assert at.run("apply", "-auto-approve", at.write(scenario.profile)).code == 0
    return at


def diagnosis(at: CommandLine, *words: str) -> dict[str, Any]:
    result = at.run("diagnose", "gemma.yaml", "-json", *words)
    assert result.code == 0, result.all
    tree: dict[str, Any] = json.loads(result.out)
    return tree


def test_each_rule_has_a_scenario() -> None:
    assert list(SCENARIOS) == list(RULES)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_server_in_trouble_gets_the_finding_with_its_figures_and_the_remedy(cli: Open, name: str) -> None:
    scenario = SCENARIOS[name]
    at = serving(cli, scenario)
    (server,) = diagnosis(at)["servers"]
    by_name = {finding["name"]: finding for finding in server["findings"]}
    assert scenario.evidence in by_name[name]["evidence"]
    assert scenario.remedy in by_name[name]["remedy"]
    words = at.run("diagnose", "gemma.yaml").words
    assert f"{by_name[name]['weight']}: {name} {scenario.evidence.partition(',')[0]}" in words


def test_a_server_that_does_well_has_no_finding_and_its_figures_stand_beside_the_bounds_of_its_chip(cli: Open) -> None:
    at = serving(cli, Scenario(load=GAUGES))
    began = at.clock.now()
    tree = diagnosis(at, "-window", "60s")
    assert at.clock.now() - began >= 60
    (server,) = tree["servers"]
    assert server["findings"] == []
    figures = server["figures"]
    assert figures["finished"] == pytest.approx(120, abs=2)
    assert figures["ttft_seconds"] == pytest.approx(0.08)
    # A lower bound: Gemma 4 E2B's single-user step on v6e-1 was measured at 4.72 ms.
    assert 0.002 < figures["least_tpot_seconds"] < 0.00472
    assert 0 < figures["least_ttft_seconds"] < figures["ttft_seconds"]
    assert "No problem found." in at.run("diagnose", "gemma.yaml").words


def test_what_changed_last_stands_beside_the_findings(cli: Open) -> None:
    at = serving(cli, Scenario(load=GAUGES))
    at.write(PROFILE.replace("16384", "8192"))
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    changes = diagnosis(at)["changes"]
    assert "gemma[0] restarted as changed" in [change["what"] for change in changes]
    (setting,) = [change for change in changes if "max_model_len" in change["what"]]
    assert setting["what"].endswith("16384 -> 8192")
    assert setting["by"].startswith("apply by ")


def test_a_server_that_stopped_answering_is_explained_by_its_log(cli: Open) -> None:
    at: CommandLine = cli(nodes="real", trouble=[{"fault": "boot", "crash": "Ran out of memory in hbm.", "times": 1}])
    assert at.run("apply", "-auto-approve", at.write()).code == 1
    result = at.run("diagnose", "gemma.yaml")
    assert result.code == 0
    assert "its metrics can't be read" in result.words
    assert at.run("logs", "gemma.yaml", "-explain").out.strip() in result.out
