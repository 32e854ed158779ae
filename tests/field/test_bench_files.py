"""Results of other load clients: what people have at hand is imported as it is, or refused with the client's name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import command

FOLDER = Path(__file__).parent / "bench"
# By file: the driver, and streams, prompt tokens, answer tokens and requests/s of each cell.
IMPORTED: dict[str, tuple[str, list[tuple[int, int, int, float]]]] = {
    "b1-stdout.txt": ("vllm", [(64, 999, 1000, 2.49)]),
    "b2-vllm-json-conc64.json": ("vllm", [(64, 999, 1000, 2.4948)]),
    "b4-sglang.jsonl": ("sglang", [(64, 1024, 1024, 3.04), (128, 1024, 1024, 4.26)]),
    "b5-genai-perf.json": ("aiperf", [(64, 1024, 1024, 3.04)]),
    "b6-inference-perf.json": ("inference-perf", [(63, 1024, 1024, 3.04)]),
    "b8-guidellm-concurrent.json": ("guidellm", [(4, 264, 128, 1.28)]),
}


def imported(folder: Path, capsys: pytest.CaptureFixture[str], name: str, text: str) -> dict[str, Any]:
    (folder / name).write_text(text, encoding="utf-8")
    result = command(folder, capsys, "bench", "import", name, "-model", "m", "-json")
    assert result.code == 0, result.all
    run: dict[str, Any] = json.loads(result.out)
    return run


def refusal(folder: Path, capsys: pytest.CaptureFixture[str], text: str) -> str:
    (folder / "file").write_text(text, encoding="utf-8")
    result = command(folder, capsys, "bench", "import", "file", "-model", "m")
    assert result.code in {1, 2}, result.all
    return result.err


def cells(run: dict[str, Any]) -> list[tuple[int, int, int, float]]:
    return [
        (
            cell["point"]["concurrency"],
            cell["point"]["context_tokens"],
            cell["point"]["output_tokens"],
            cell["figures"]["requests_per_second"],
        )
        for cell in run["cells"]
    ]


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def test_every_file_here_is_imported() -> None:
    assert {path.name for path in FOLDER.iterdir() if path.suffix != ".md"} == IMPORTED.keys()


@pytest.mark.parametrize("name", IMPORTED)
def test_a_result_is_imported_as_its_client_wrote_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    run = imported(tmp_path, capsys, name, read(name))
    assert (run["driver"], cells(run)) == IMPORTED[name]


def test_what_is_printed_is_found_among_other_output_and_several_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    block = read("b1-stdout.txt")
    other = block.replace("concurrency:             64", "concurrency:             128").replace("2.49\n", "3.10\n")
    text = f"INFO 11-27 Starting initial single prompt test run...\n{block}\n+ vllm bench serve\n{other}\n"
    assert cells(imported(tmp_path, capsys, "log", text)) == [(64, 999, 1000, 2.49), (128, 999, 1000, 3.1)]


def test_sglangs_own_block_has_its_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """
============ Serving Benchmark Result ============
Backend:                                 sglang
Traffic request rate:                    inf
Max request concurrency:                 16
Successful requests:                     160
Benchmark duration (s):                  80.00
Total input tokens:                      163840
Total generated tokens:                  20480
Total generated tokens (retokenized):    20470
Request throughput (req/s):              2.00
Output token throughput (tok/s):         256.00
Concurrency:                             15.70
----------------End-to-End Latency----------------
Mean E2E Latency (ms):                   7850.00
Median E2E Latency (ms):                 7800.00
---------------Time to First Token----------------
Mean TTFT (ms):                          300.00
"""
    run = imported(tmp_path, capsys, "log", text)
    assert (run["driver"], cells(run)) == ("sglang", [(16, 1024, 128, 2.0)])
    assert run["cells"][0]["figures"]["e2e_seconds"]["mean"] == pytest.approx(7.85)


def test_results_one_after_the_other_are_several_cells_however_they_are_indented(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = json.loads(read("b2-vllm-json-conc64.json"))
    texts = [json.dumps(tree | {"max_concurrency": streams}, indent=indent) for streams, indent in ((1, 4), (2, None))]
    run = imported(tmp_path, capsys, "both.json", "\n".join(texts))
    assert [cell[0] for cell in cells(run)] == [1, 2]


def test_a_run_at_a_request_rate_has_the_mean_that_ran_at_once_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = json.loads(read("b2-vllm-json-conc64.json")) | {"max_concurrency": None, "request_rate": 2.5}
    run = imported(tmp_path, capsys, "rate.json", json.dumps(tree | {"mean_e2el_ms": 20_000.0}))
    assert cells(run)[0][0] == 50
    assert "at a request rate" in run["source"]
    assert "2.5 requests/s, and has no latency of whole requests" in refusal(tmp_path, capsys, json.dumps(tree))


def test_a_sweep_has_the_cells_of_its_strategies_without_one_that_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree: dict[str, Any] = json.loads(read("b8-guidellm-concurrent.json"))
    (whole,) = tree["benchmarks"]

    def of(strategy: dict[str, Any], concurrency: float) -> dict[str, Any]:
        metrics = whole["metrics"] | {"request_concurrency": {"successful": {"mean": concurrency}}}
        benchmark: dict[str, Any] = whole | {"config": whole["config"] | {"strategy": strategy}, "metrics": metrics}
        return benchmark

    failed = of({"type_": "throughput"}, 0.0)
    failed["metrics"] = {"request_totals": {"successful": 0, "errored": 9}}
    tree["benchmarks"] = [
        of({"type_": "constant", "rate": 2.0}, 6.3),
        failed,
        of({"type_": "constant", "rate": 0.3}, 1.2),
        of({"type_": "synchronous"}, 1.0),
        of({"type_": "concurrent", "streams": 4}, 3.9),
    ]
    run = imported(tmp_path, capsys, "sweep.json", json.dumps(tree))
    assert [cell[0] for cell in cells(run)] == [1, 4, 6]
    assert "; 2 of 5 results left out: guidellm: its strategy `throughput` keeps no" in run["source"]
    assert "guidellm: another benchmark has the same load, 1 at once" in run["source"]


@pytest.mark.parametrize("cell_note", [True, False], ids=["the first cell has a note", "no cell has one"])
def test_each_result_without_a_cell_is_named_whatever_notes_the_others_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cell_note: bool
) -> None:
    tree = json.loads(read("b2-vllm-json-conc64.json")) | {"mean_e2el_ms": 20_000.0}
    at_a_rate = tree | {"max_concurrency": None, "request_rate": 2.5}
    first = at_a_rate if cell_note else tree
    trees = [first, at_a_rate | {"mean_e2el_ms": None}, tree | {"duration": 0}]
    run = imported(tmp_path, capsys, "three.json", "\n".join(map(json.dumps, trees)))
    assert len(cells(run)) == 1
    assert "2 of 3 results left out: vllm bench serve: it was not measured" in run["source"]
    assert "; vllm bench serve: its `duration` is 0" in run["source"]
    assert ("cells at a request rate" in run["source"]) is cell_note


def test_llmperfs_summary_is_one_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = {
        "version": "2023-08-31",
        "model": "m",
        "mean_input_tokens": 550,
        "mean_output_tokens": 150,
        "num_concurrent_requests": 8,
        "results_inter_token_latency_s_mean": 0.02,
        "results_ttft_s_quantiles_p99": 0.9,
        "results_ttft_s_mean": 0.4,
        "results_end_to_end_latency_s_mean": 3.4,
        "results_number_input_tokens_mean": "550.2",
        "results_number_output_tokens_mean": 148.6,
        "results_num_requests_started": 120,
        "results_number_errors": 2,
        "results_num_completed_requests": 118,
        "results_num_completed_requests_per_min": 141.0,
        "results_mean_output_throughput_token_per_s": 350.0,
    }
    run = imported(tmp_path, capsys, "summary.json", json.dumps(summary))
    assert (run["driver"], cells(run)) == ("llmperf", [(8, 550, 149, 2.35)])
    assert run["cells"][0]["figures"]["requests_failed"] == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (read("b2-vllm-json-conc64.json")[:700], "it looks like a result of vllm bench serve that is cut off"),
        (read("b1-stdout.txt")[:400], "the block that it printed has no `output_throughput`: it is cut off"),
        (read("b4-sglang.jsonl")[:-300], "it looks like a result of sglang.bench_serving that is cut off"),
        (read("b6-inference-perf.json")[:200], "inference-perf that is cut off"),
        (
            '{"ttft": 0.1, "success": true}\n{"ttft": 0.2, "success": true}\n',
            "import the summary that the client writes",
        ),
        (read("b2-vllm-json-conc64.json") + read("b6-inference-perf.json"), "it holds results of inference-perf, vllm"),
        (read("b2-vllm-json-conc64.json").replace("1202.50", "0"), "vllm bench serve: its `duration` is 0"),
        (read("b1-stdout.txt") * 2, "Two results are of the same cell: 64 streams"),
        ("[[1]]", "it is not a result of"),
        (read("b2-vllm-json-conc64.json").replace("1202.50", "-5"), "vllm bench serve: its `duration` is -5"),
    ],
)
def test_what_cannot_be_imported_is_refused_with_the_name_of_its_client(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    assert words in refusal(tmp_path, capsys, text)


def test_a_block_of_an_earlier_release_has_its_streams_above_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        line for line in read("b1-stdout.txt").splitlines() if "concurrency" not in line and "rate conf" not in line
    ]
    above = "Traffic request rate: inf\nBurstiness factor: 1.0 (Poisson process)\nMaximum request concurrency: {}\n"
    text = "".join(f"{above.format(streams)}{chr(10).join(lines)}\n" for streams in (16, 64))
    assert [cell[0] for cell in cells(imported(tmp_path, capsys, "log", text))] == [16, 64]
    assert "not measured at a fixed concurrency" in refusal(tmp_path, capsys, above.format(None) + "\n".join(lines))


@pytest.mark.parametrize("place", ["scheduler", "args"])
def test_earlier_releases_of_guidellm_have_their_strategy_elsewhere_and_no_duration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    tree: dict[str, Any] = json.loads(read("b8-guidellm-concurrent.json"))
    for benchmark in tree["benchmarks"]:
        benchmark[place] = {"strategy": benchmark.pop("config")["strategy"]}
        benchmark |= {"start_time": 1000.0, "end_time": 1000.0 + benchmark.pop("duration", 60.0)}
    run = imported(tmp_path, capsys, "old.json", json.dumps(tree))
    assert cells(run) == IMPORTED["b8-guidellm-concurrent.json"][1]
    assert run["cells"][0]["figures"]["window_seconds"] is not None


def test_genai_perf_and_the_first_aiperf_have_the_metrics_without_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree: dict[str, Any] = json.loads(read("b5-genai-perf.json"))
    config = tree.pop("input_config", {})
    for absent in ("request_count", "benchmark_duration", "aiperf_version"):
        tree.pop(absent, None)
    tree["goodput"] = None
    for name, written in {
        "flat": {**tree, "input_config": config},
        "nested": {"records": tree, "input_config": config},
    }.items():
        run = imported(tmp_path, capsys, f"{name}.json", json.dumps(written))
        assert (run["driver"], cells(run)) == IMPORTED["b5-genai-perf.json"]


def test_an_earlier_inference_perf_names_the_median_p50(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = read("b6-inference-perf.json")
    run = imported(tmp_path, capsys, "p50.json", text.replace('"median"', '"p50"'))
    figures = imported(tmp_path, capsys, "median.json", text)["cells"][0]["figures"]
    assert run["cells"][0]["figures"]["ttft_seconds"] == figures["ttft_seconds"]


MLPERF = """================================================
MLPerf Results Summary
================================================
SUT name : PySUT
Scenario : Server
Mode     : PerformanceOnly
Completed samples per second : 0.41
Completed tokens per second  : 41.23
Result is : VALID
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            (
                '{"elapsed_time": 9.1, "num_requests": 10, "total_num_tokens": 5000, "requests_per_second": 1.1, '
                '"tokens_per_second": 549.0}'
            ),
            "vllm bench throughput, which hands all requests to the engine at once",
        ),
        ('{"avg_latency": 1.2, "latencies": [1.2], "percentiles": {"50": 1.2}}', "vllm bench latency"),
        ('{"run_name": "x", "prefill_latency": 0.1, "median_decode_latency": 0.01}', "sglang.bench_one_batch"),
        ("====== Offline Throughput Benchmark Result =======\nBackend: engine\n", "sglang.bench_offline_throughput"),
        (MLPERF, "MLPerf's loadgen, which has neither the streams nor the lengths"),
        ('{"metrics": {}, "root_group": {}}', "k6, which counts no tokens"),
        ("Type,Name,Request Count,Failure Count,Median Response Time\n", "Locust"),
        ("This is ApacheBench, Version 2.3 <$Revision: 1903618 $>\n", "ab, which counts no tokens"),
        ("Running 10s test @ http://x\n  Latency Distribution\n     50%   12ms\n", "wrk or hey"),
        ("                 NVIDIA GenAI-Perf | LLM Metrics\n", "profile_export_*.json"),
        ("Metric,avg,min,max,p99,p95\nTime To First Token (ms),300,1,2,3,4\n", "profile_export_*.json"),
        ("max_concurrency,request_throughput,output_throughput\n16,2.0,256.0\n", "import the JSON files of its runs"),
        ("===\n= PERFORMANCE OVERVIEW \n===\nRequest Throughput (req/sec): 2.0\n", "trtllm-bench"),
        ('{"latencies": {"mean": 1}, "bytes_in": {}, "status_codes": {"200": 1}}', "vegeta"),
        ('{"results": {"gsm8k": {}}, "n-shot": {"gsm8k": 5}}', "lm-eval"),
        ('[{"n_prompt": 512, "n_gen": 128, "avg_ts": 100.0}]', "llama-bench"),
        ("<!DOCTYPE html><html></html>", "import the JSON that the client writes"),
    ],
)
def test_a_result_of_a_tool_that_measures_something_else_is_refused_with_its_name_and_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    assert words in refusal(tmp_path, capsys, text)
