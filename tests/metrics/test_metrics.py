"""What a running server says of itself, in words: each figure beside its threshold, with what to do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from answering import answering, http
from command_line import PROFILE, CommandLine, Open
from goldens import assert_golden
from sizing.profiles import budget

from tpudeploy.adapters.vllm_metrics import figures
from tpudeploy.domain.metrics import EngineFigures, Grade, Histogram, Reading, Spent, combined
from tpudeploy.metrics.readings import readings

BUSY = {
    "num_requests_running": 255,
    "num_requests_waiting": 12,
    "num_requests_waiting_by_reason.capacity": 12,
    "kv_cache_usage_perc": 0.93,
    "num_preemptions": 4,
    "admission_rejections.max_num_queued_reqs": 2,
    "request_success.error": 1,
    "prefix_cache_hits": 3,
}


def serving(cli: Open, nodes: str = "real", **load: float) -> CommandLine:
    at: CommandLine = cli(nodes=nodes, boot={"boot_seconds": 60, "load": load})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    return at


def rows(at: CommandLine, *words: str) -> dict[str, dict[str, Any]]:
    result = at.run("metrics", *words, "-json")
    assert result.code == 0, result.all
    tree = json.loads(result.out)
    assert tree["format"] == "tpudeploy.metrics/1"
    return {row["name"]: row for replica in tree["replicas"] for row in replica["readings"]}


def test_a_server_with_nothing_to_do_is_well(cli: Open) -> None:
    at = serving(cli)
    result = at.run("metrics", "gemma.yaml")
    assert result.code == 0, result.all
    assert "requests running 0 idle" in result.words
    assert "requests waiting 0 no requests waiting" in result.words
    assert "KV cache used 0.0% below 85%" in result.words
    assert "preemptions 0 none since the server started" in result.words
    assert "All metrics are within limits." in result.out
    assert "gpu_cache" not in result.all


@pytest.mark.parametrize("nodes", ["real", "simulated"])
def test_a_server_under_load_says_what_is_wrong_and_what_to_do(cli: Open, nodes: str) -> None:
    at = serving(cli, nodes, **BUSY)
    table = rows(at, "gemma.yaml")
    assert {name for name, row in table.items() if row["grade"] == "warn"} == {
        "requests_waiting",
        "kv_cache_used",
        "preemptions",
        "requests_rejected",
        "requests_finished",
    }
    assert table["requests_waiting"]["value"] == {"capacity": 12, "deferred": 0}
    assert table["kv_cache_used"]["value"] == 0.93
    assert all(row["hint"] for row in table.values() if row["grade"] == "warn")


def test_latencies_are_buckets_and_never_figures_to_compare_by(cli: Open) -> None:
    at = serving(cli)
    assert at.run("query", "gemma.yaml", "How are you?").code == 0
    table = rows(at, "gemma.yaml")
    assert table["ttft"]["grade"] == table["itl"]["grade"] == "coarse"
    assert table["ttft"]["says"] == "server-side histogram, coarse"
    assert table["ttft"]["value"]["count"] >= 2
    assert table["generation_tokens"]["value"] > 0
    assert table["process_memory"]["value"] > 0


def test_the_screen_reads_well() -> None:
    from tpudeploy.domain.facts import Unknown
    from tpudeploy.domain.metrics import Metrics
    from tpudeploy.engine.metrics import to_readings
    from tpudeploy.metrics.view import metrics
    from tpudeploy.text.paint import Paint

    busy = EngineFigures(
        running=255,
        waiting={"capacity": 12, "deferred": 1},
        kv_cache_used=0.931,
        preemptions=4,
        rejected=0,
        finished={"stop": 1200, "length": 31, "abort": 2, "error": 0},
        prompt_tokens=1_240_000,
        generation_tokens=310_000,
        prefix_queried_tokens=1_240_000,
        prefix_hit_tokens=310_000,
        first_token=Histogram(bounds=(1.0, 10.0, 20.0, float("inf")), counts=(500, 900, 1200, 1231), sum=4000.0),
        between_tokens=Histogram(bounds=(0.025, 0.05, float("inf")), counts=(10, 300_000, 300_000), sum=9000.0),
        queued=Spent(seconds=36_990.0, requests=1233),
        prefilling=Spent(seconds=986.0, requests=1233),
        decoding=Spent(seconds=14_180.0, requests=1233),
        process_bytes=3 * 1024**3,
        is_awake=True,
    )
    replicas = (
        to_readings("gemma[0]", "http://203.0.113.7:8000", busy, budget()),
        to_readings("gemma[1]", "", Unknown(because="external: timed out")),
    )
    assert_golden("screens/metrics", metrics(Metrics(replicas=replicas), Paint(), width=100) + "\n")


def test_every_replica_is_asked_and_a_name_is_enough_for_what_is_published(cli: Open) -> None:
    at: CommandLine = cli(nodes="real", boot={"boot_seconds": 60})
    assert at.run("apply", "-auto-approve", at.write(PROFILE + "replicas: 2\n")).code == 0
    tree = json.loads(at.run("metrics", "gemma.yaml", "-json").out)
    replicas = tree["replicas"]
    assert [each["address"] for each in replicas] == ["gemma[0]", "gemma[1]"]
    (total,) = tree["totals"]
    prompt_tokens = [
        row["value"] for each in (*replicas, total) for row in each["readings"] if row["name"] == "prompt_tokens"
    ]
    assert total["address"] == "gemma"
    assert prompt_tokens[0] + prompt_tokens[1] == prompt_tokens[2] > 0
    assert "gemma, all replicas requests running 0 idle" in at.run("metrics", "gemma.yaml").words
    for words in (["gemma"], []):
        document = json.loads(at.run("metrics", *words, "-json").out)
        published = document["replicas"]
        assert [each["address"] for each in document["totals"]] == ["gemma"]
        assert [(each["address"], each["url"]) for each in published] == [(e["address"], e["url"]) for e in replicas]


def test_what_is_not_there_or_says_nothing_is_told_so(cli: Open) -> None:
    at = cli()
    assert "No endpoint is published here." in at.run("metrics").err
    assert "other has no endpoint yet." in at.run("metrics", "other").err
    missing = at.run("metrics", at.write())
    assert (missing.code, "gemma has no machine to read metrics from." in missing.err) == (1, True)
    silent = PROFILE.replace("max_model_len: 16384", "args: {disable_log_stats: true}")
    assert at.run("apply", "-auto-approve", at.write(silent)).code == 0
    result = at.run("metrics", "gemma.yaml")
    assert result.code == 0
    assert "keeps no statistics (--disable-log-stats)" in result.words
    assert "within limits" not in result.out
    unreachable = cli(boot={"reachable": False})
    unreachable.run("apply", "-auto-approve", unreachable.write())
    assert "Nothing is reported: external:" in unreachable.run("metrics", "gemma.yaml").words


@pytest.mark.parametrize("answer", [http("<html>"), http("vllm:num_preemptions_total{engine= 1"), b""])
def test_whatever_else_answers_there_is_no_server_of_figures(cli: Open, answer: bytes) -> None:
    at = cli(nodes="simulated", boot={"reachable": False})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    (row,) = json.loads(at.run("output", "gemma", "-json").out)["replicas"]
    host, _, port = row["url"].removeprefix("http://").partition(":")
    with answering({"/metrics": answer}, at=(host, int(port))):
        result = at.run("metrics", "gemma")
    assert result.code == 1
    assert "Traceback" not in result.all
    assert "within limits" not in result.out


TWO_RANKS = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.2
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.9
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0",model_name="m"} 1.0
vllm:num_preemptions_total{engine="1",model_name="m"} 2.0
# TYPE vllm:num_preemptions_created gauge
vllm:num_preemptions_created{engine="0",model_name="m"} 1.79e+09
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.5",model_name="m"} 9.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="m"} 9.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 9.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 1.0
vllm:time_to_first_token_seconds_bucket{engine="1",le="0.5",model_name="m"} 0.0
vllm:time_to_first_token_seconds_bucket{engine="1",le="+Inf",model_name="m"} 1.0
vllm:time_to_first_token_seconds_count{engine="1",model_name="m"} 1.0
vllm:time_to_first_token_seconds_sum{engine="1",model_name="m"} 9.0
# TYPE python_info gauge
python_info{version="3.12"} 1.0
"""


def test_ranks_are_counted_together_and_the_fullest_cache_counts() -> None:
    two_ranks = figures(TWO_RANKS)
    assert (two_ranks.running, two_ranks.kv_cache_used, two_ranks.preemptions) == (7.0, 0.9, 3.0)
    assert two_ranks.first_token is not None
    assert (two_ranks.first_token.count, two_ranks.first_token.within(0.5), two_ranks.first_token.within(0.95)) == (
        10.0,
        0.5,
        float("inf"),
    )


def test_figures_of_several_servers_are_added_and_the_fullest_cache_counts() -> None:
    one = EngineFigures(
        running=3,
        waiting={"capacity": 1.0},
        kv_cache_used=0.4,
        finished={"stop": 5.0},
        first_token=Histogram(bounds=(1.0, float("inf")), counts=(2.0, 4.0), sum=5.0),
        queued=Spent(seconds=4.0, requests=2.0),
        rejected=1.0,
    )
    other = EngineFigures(
        running=4,
        waiting={"capacity": 2.0, "deferred": 1.0},
        kv_cache_used=0.9,
        finished={"length": 1.0},
        first_token=Histogram(bounds=(1.0, float("inf")), counts=(1.0, 1.0), sum=0.5),
        queued=Spent(seconds=2.0, requests=1.0),
    )
    both = combined([one, other])
    assert (both.running, both.waiting, both.kv_cache_used) == (7, {"capacity": 3.0, "deferred": 1.0}, 0.9)
    assert both.finished == {"stop": 5.0, "length": 1.0}
    assert both.first_token == Histogram(bounds=(1.0, float("inf")), counts=(3.0, 5.0), sum=5.5)
    assert both.queued == Spent(seconds=6.0, requests=3.0)
    assert both.rejected is None, "one of them does not report it"
    assert combined([one, EngineFigures()]).first_token is None


def _one(measured: EngineFigures, name: str) -> Reading:
    return next(reading for reading in readings(measured) if reading.name == name)


@pytest.mark.parametrize(
    ("measured", "name", "grade", "words"),
    [
        (EngineFigures(kv_cache_used=0.85), "kv_cache_used", Grade.OK, "below 85%"),
        (EngineFigures(kv_cache_used=0.86), "kv_cache_used", Grade.WARN, "nearly full"),
        (EngineFigures(kv_cache_used=0.86, preemptions=1), "kv_cache_used", Grade.WARN, "were preempted for it"),
        (EngineFigures(waiting={"capacity": 1.0}), "requests_waiting", Grade.WARN, "it gets more requests than"),
        (EngineFigures(waiting={"deferred": 1.0, "capacity": 0.0}), "requests_waiting", Grade.WARN, "a KV transfer"),
        (EngineFigures(waiting={"": 1.0}), "requests_waiting", Grade.WARN, "it gets more requests than"),
        (EngineFigures(waiting={"": 0.0}), "requests_waiting", Grade.OK, "no requests waiting"),
        (EngineFigures(preemptions=1), "preemptions", Grade.WARN, "computed again"),
        (EngineFigures(is_awake=False), "engine", Grade.WARN, "sleeps"),
        (EngineFigures(prefix_queried_tokens=0, prefix_hit_tokens=0), "prefix_cache_hits", Grade.PLAIN, "off"),
    ],
)
def test_a_figure_is_judged_by_its_threshold(measured: EngineFigures, name: str, grade: Grade, words: str) -> None:
    reading = _one(measured, name)
    assert reading.grade is grade
    assert words in reading.says
    assert bool(reading.hint) == (grade is Grade.WARN and "a KV transfer" not in reading.says)
