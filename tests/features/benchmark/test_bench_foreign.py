"""What other people's clients measure: their files imported and judged, an installed one run in our place."""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from answering import answering, http
from command_line import Result, command
from pseudo_terminal import INTERRUPT, person
from screen import Screen

Bench = Callable[..., Result]
GRID = Path(__file__).parents[2] / "bench" / "grid_e2b_v6e1.csv"

VLLM = {
    "model_id": "google/gemma-4-26B-A4B-it",
    "max_concurrency": 8,
    "num_prompts": 100,
    "completed": 100,
    "failed": 0,
    "duration": 50.0,
    "total_input_tokens": 102_400,
    "total_output_tokens": 12_800,
    "request_throughput": 2.0,
    "output_throughput": 256.0,
    "mean_ttft_ms": 250.0,
    "median_ttft_ms": 240.0,
    "std_ttft_ms": 20.0,
    "p99_ttft_ms": 300.0,
    "mean_itl_ms": 28.0,
    "median_itl_ms": 27.0,
    "mean_e2el_ms": 3_900.0,
    "median_e2el_ms": 3_800.0,
    "max_concurrent_requests": 16,
}


def _distribution(mean: float) -> dict[str, Any]:
    percentiles = {"p90": mean * 1.5, "p95": mean * 1.6, "p99": mean * 2}
    return {"successful": {"mean": mean, "median": mean, "std_dev": 0.1, "count": 40, "percentiles": percentiles}}


GUIDELLM: Mapping[str, Any] = {
    "metadata": {"version": 2},
    "benchmarks": [
        {
            "config": {"strategy": {"type_": "concurrent", "streams": streams}, "backend": {"model": "m"}},
            "duration": 30.0,
            "metrics": {
                "request_totals": {"successful": 30 * streams // 4, "errored": 0, "incomplete": 3},
                "requests_per_second": _distribution(streams / 4),
                "request_concurrency": _distribution(concurrency),
                "request_latency": _distribution(4.0),
                "prompt_token_count": _distribution(128),
                "output_token_count": _distribution(64),
                "output_tokens_per_second": _distribution(16 * streams),
                "time_to_first_token_ms": _distribution(500),
                "inter_token_latency_ms": _distribution(55),
            },
        }
        for streams, concurrency in ((64, 63.0), (2048, 1046.0))
    ],
}
AIPERF = {
    "schema_version": "1.4",
    "aiperf_version": "0.13.0",
    "input_config": {"endpoint": {"model_names": ["m"]}, "load": [{"phase": {"concurrency": 16}}]},
    "request_count": {"unit": "requests", "avg": 200.0},
    "benchmark_duration": {"unit": "sec", "avg": 30.0},
    "request_throughput": {"unit": "requests/sec", "avg": 6.5},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 416.0},
    "effective_concurrency": {"unit": "requests", "avg": 15.8},
    "input_sequence_length": {"unit": "tokens", "avg": 128.0},
    "output_sequence_length": {"unit": "tokens", "avg": 64.0},
    "time_to_first_token": {"unit": "ms", "avg": 510.0, "p50": 500.0, "p99": 800.0, "std": 9.0, "count": 200},
    "inter_token_latency": {"unit": "ms", "avg": 30.0, "p50": 29.0},
    "request_latency": {"unit": "ms", "avg": 2_400.0, "p50": 2_300.0},
}


@pytest.fixture
def bench(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Bench:
    """`bench WORDS` in a folder of its own."""
    monkeypatch.delenv("VLLM_API_KEY", raising=False)

    return partial(command, tmp_path, capfd, "bench")


def imported(bench: Bench, folder: Path, tree: object, *words: str) -> Mapping[str, Any]:
    (folder / "result.json").write_text(json.dumps(tree), encoding="utf-8")
    result = bench("import", "result.json", "--json", *words)
    assert result.code == 0, result.all
    run: Mapping[str, Any] = json.loads(result.out)
    return run


def test_a_grid_of_somebodys_is_kept_with_where_it_came_from(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "grid.csv").write_bytes(GRID.read_bytes())
    result = bench("import", "grid.csv", "--model", "google/gemma-4-E2B-it", "--type", "v6e-1", "--json")
    assert result.code == 0, result.all
    run = json.loads(result.out)
    assert (run["driver"], run["source"], run["ended"]) == ("grid", "grid.csv", "complete")
    assert run["source_hash"].startswith("sha256:")
    cells = {(c["point"]["concurrency"], c["point"]["context_tokens"]): c for c in run["cells"]}
    assert len(cells) == 156
    assert cells[2, 8192]["figures"]["requests_per_second"] == 4.804099413006439
    assert 0.1 < cells[2, 8192]["evidence"]["peak_share"] < 0.2
    assert cells[2, 8192]["status"] == "ok"
    assert {cells[streams, 16_384]["status"] for streams in (1, 2)} == {"failed"}
    assert (cells[2048, 512]["status"], cells[2048, 512]["figures"]) == ("oversubscribed", None)
    assert cells[2048, 512]["reasons"] == ["the file says `skipped_capacity_limit`"]
    # By Little's law 18.7 requests a second of 74 s each are 1,390 at once, not 2,048: a burst with its tail, or a
    # client that was late. Nothing in the file says which.
    assert not any(cell["status"] == "client_bound" for cell in cells.values())
    assert cells[2048, 4]["status"] == "few_streams"
    (why,) = cells[2048, 4]["reasons"]
    assert why.startswith("1390.2 of 2048 streams were under way on average, by rate and latency: ")
    assert why.endswith("the run was short, or its client was the limit")
    assert cells[1, 16_384]["errors"] == {"the file says `failed`": 1}
    assert {cell["point"]["output_tokens"] for cell in run["cells"]} == {None}
    assert "requests/s, answers of unknown length" in bench("show", run["id"]).out


def test_a_grid_that_is_wider_than_the_terminal_is_told_in_parts(tmp_path: Path) -> None:
    (tmp_path / "grid.csv").write_bytes(GRID.read_bytes())
    with person("bench", "import", "grid.csv", folder=tmp_path, environment={"COLUMNS": "80"}) as somebody:
        assert somebody.stays_to_the_end() == 0
    lines = Screen(80).shows(somebody.read)
    heads = [line.split() for line in lines if re.fullmatch(r"[ \d,]+", line) and line.startswith(" " * 12)]
    assert [len(head) for head in heads] == [7, 6]
    assert heads[0][0] == "4"
    assert heads[1][-1] == "16,384"
    assert sum(line.startswith("   1,024  ") for line in lines) == 2


def test_a_result_of_vllm_bench_is_a_cell(bench: Bench, tmp_path: Path) -> None:
    run = imported(bench, tmp_path, VLLM, "--type", "v6e-4")
    (cell,) = run["cells"]
    assert (run["driver"], run["subject"]["model_id"]) == ("vllm", "google/gemma-4-26B-A4B-it")
    assert cell["point"] == {"concurrency": 8, "context_tokens": 1024, "output_tokens": 128}
    figures = cell["figures"]
    assert (figures["requests"], figures["requests_per_second"], figures["input_tokens_per_second"]) == (100, 2, 2048)
    assert (figures["ttft_seconds"]["p50"], figures["ttft_seconds"]["p99"]) == (0.24, 0.3)
    assert figures["ttft_seconds"]["p95"] is None
    assert cell["evidence"]["streams_by_latency"] == pytest.approx(7.8)
    assert cell["evidence"]["streams_mean"] is None, "nobody counted them"
    assert cell["status"] == "ok"
    assert 0 < cell["evidence"]["peak_share"] < 0.01


def test_counts_and_times_that_a_file_does_not_have_are_null_and_never_0(bench: Bench, tmp_path: Path) -> None:
    absent = {"benchmark_duration", "request_count", "error_request_count"}
    tree = {name: value for name, value in AIPERF.items() if name not in absent}
    run = imported(bench, tmp_path, tree, "--usd-per-hour", "1.50")
    (cell,) = run["cells"]
    figures = cell["figures"]
    assert (figures["requests"], figures["requests_failed"], cell["seconds"]) == (None, None, None)
    assert cell["status"] == "ok", "nothing says that a request failed"
    assert "$0.00" not in bench("show", run["id"]).out + bench("list").out
    assert bench("report", run["id"], "-o", "r.html").code == 0
    (row,) = csv.DictReader((tmp_path / "r.csv").read_text().splitlines())
    assert (row["requests"], row["failed"], row["emulated"]) == ("", "", "no")


def test_a_result_that_cannot_be_is_called_so_whoever_measured_it(bench: Bench, tmp_path: Path) -> None:
    """26B on four chips, 475,553 prompt tokens a second: published."""
    tree = VLLM | {"total_input_tokens": 475_553 * 50, "completed": 1_451, "total_output_tokens": 1_451}
    (cell,) = imported(bench, tmp_path, tree, "--type", "v6e-4")["cells"]
    assert cell["status"] == "roofline_suspect"
    assert cell["reasons"][0] == "these tokens need 80% of what the chips can compute, attention not counted"


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"request_throughput": 20.0}, "20 requests/s, but 100 requests in 50 s are 2"),
        ({"total_output_tokens": 10**30}, "256 output tok/s, but 2 requests/s of 1e+28 tokens are 2e+28"),
        ({"total_input_tokens": 10**30}, "prompts of 1e+28 tokens"),
        ({"output_throughput": 25_600.0}, "2.56e+04 output tok/s, but 2 requests/s of 128 tokens are 256"),
        ({"request_goodput": 9.0}, "9 requests/s kept the SLO, of 2"),
        ({"median_ttft_ms": 900.0}, "the quantiles of the TTFT do not rise"),
        ({"mean_itl_ms": -28.0}, "a negative ITL"),
        ({"mean_ttft_ms": 5_000.0}, "a first token after 5 s, but the whole answer after 3.9 s"),
        ({"mean_e2el_ms": 39_000.0}, "78 requests ran at once by rate and latency, of at most 8"),
    ],
)
def test_figures_that_contradict_each_other_are_imported_and_doubted_with_the_reason(
    bench: Bench, tmp_path: Path, other: Mapping[str, float], reason: str
) -> None:
    path = tmp_path / "contradictory.json"
    path.write_text(json.dumps({**VLLM, **other}), encoding="utf-8")
    shown = bench("import", str(path))
    assert shown.code == 0
    assert f"contradictory: {reason}" in shown.out
    (cell,) = json.loads(bench("import", str(path), "--json").out)["cells"]
    assert cell["status"] == "contradictory"
    assert f"contradictory: {reason}" in cell["reasons"]


def test_guidellms_streams_that_were_never_live_are_the_clients_fault(bench: Bench, tmp_path: Path) -> None:
    few, many = imported(bench, tmp_path, GUIDELLM)["cells"]
    assert few["status"] == "ok"
    assert few["point"] == {"concurrency": 64, "context_tokens": 128, "output_tokens": 64}
    assert few["figures"]["e2e_seconds"]["p99"] == 8
    assert few["figures"]["itl_seconds"]["mean"] == pytest.approx(0.055)
    assert many["status"] == "client_bound"
    assert many["reasons"] == ["1046.0 of 2048 streams were under way on average"]


def test_a_result_of_aiperf_is_a_cell_with_its_units_read(bench: Bench, tmp_path: Path) -> None:
    (cell,) = imported(bench, tmp_path, AIPERF)["cells"]
    assert cell["point"] == {"concurrency": 16, "context_tokens": 128, "output_tokens": 64}
    assert cell["figures"]["window_seconds"] == 30
    assert cell["figures"]["ttft_seconds"]["p50"] == 0.5
    assert cell["figures"]["tpot_seconds"]["mean"] == pytest.approx(0.03)
    assert cell["figures"]["itl_seconds"] is None
    assert cell["status"] == "ok"


def test_lengths_that_a_result_does_not_say_are_unknown_and_not_0(bench: Bench, tmp_path: Path) -> None:
    silent = {name: value for name, value in AIPERF.items() if not name.endswith("_sequence_length")}
    run = imported(bench, tmp_path, silent)
    assert run["cells"][0]["point"] == {"concurrency": 16, "context_tokens": None, "output_tokens": None}
    text = bench("show", run["id"]).out
    assert "requests/s, answers of unknown length" in text
    assert text.splitlines()[4].split() == ["?"], "the column of prompts whose length nobody knows"
    failed = imported(bench, tmp_path, VLLM | {"completed": 0, "total_input_tokens": 0, "total_output_tokens": 0})
    assert failed["cells"][0]["point"] == {"concurrency": 8, "context_tokens": None, "output_tokens": None}


def test_a_run_of_an_earlier_version_is_read_with_its_0_as_unknown(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "grid.csv").write_text("concurrency,context_len,throughput_req_sec,avg_latency_s\n1,8,5,0.2\n")
    run = json.loads(bench("import", "grid.csv", "--json").out)
    path = tmp_path / ".tpudeploy" / "runs" / f"{run['id']}.json"
    path.write_text(_as_written_before(run))
    (cell,) = json.loads(bench("show", run["id"], "--json").out)["cells"]
    assert cell["point"] == {"concurrency": 1, "context_tokens": 8, "output_tokens": None}


def _as_written_before(run: dict[str, Any]) -> str:
    """The same run with 0 for what is unknown, and the hash of that."""
    head = {name: value for name, value in run.items() if name not in {"format", "hash", "cells"}}
    for point in (*head["sweep"]["points"], *(cell["point"] for cell in run["cells"])):
        point["output_tokens"] = 0
    canonical = partial(json.dumps, sort_keys=True, separators=(",", ":"))
    digest = sha256("\n".join([canonical(head), *map(canonical, run["cells"])]).encode()).hexdigest()
    return json.dumps({"format": run["format"], "hash": f"sha256:{digest}", **head, "cells": run["cells"]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it has no column `concurrency`"),
        ("a,b\n1,2\n", "it has no column `concurrency`"),
        ("concurrency,context_len,throughput_req_sec,avg_latency_s\n1,x,1,1\n", "line 2: `context_len` is `x`"),
        ("{", "Expecting property name"),
        ('{"some": "json"}', "it is not a result of vllm bench serve, guidellm, aiperf"),
        (json.dumps(VLLM | {"max_concurrency": None}), "it was not measured at a fixed concurrency"),
        (json.dumps(VLLM | {"duration": "long"}), "it has no `duration`"),
        ('{"benchmarks": [{"metrics": {}, "config": {"strategy": {"type_": "poisson"}}}]}', "strategy `poisson`"),
    ],
)
def test_a_file_that_nobody_can_read_is_refused_with_the_reason(
    bench: Bench, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "it").write_text(text, encoding="utf-8")
    result = bench("import", "it")
    assert result.code == 1
    assert "`it` cannot be imported: " in result.err
    assert message in result.err
    assert not (tmp_path / ".tpudeploy").exists()


def test_files_of_one_cell_each_become_one_run_unless_they_contradict(bench: Bench, tmp_path: Path) -> None:
    for streams in (8, 16):
        (tmp_path / f"{streams}.json").write_text(json.dumps(VLLM | {"max_concurrency": streams}), encoding="utf-8")
    run = json.loads(bench("import", "8.json", "16.json", "--json").out)
    assert [cell["point"]["concurrency"] for cell in run["cells"]] == [8, 16]
    assert run["source"] == "8.json, 16.json"
    (tmp_path / "again.json").write_text(json.dumps(VLLM), encoding="utf-8")
    result = bench("import", "8.json", "again.json")
    assert "Two results are of the same cell: 8 streams, 1024 tokens in, 128 out." in result.err
    assert "`absent.json` cannot be read: No such file or directory." in bench("import", "absent.json").err


PROGRAM = """\
#!{python}
import json, os, pathlib, sys
words = sys.argv[1:]
pathlib.Path("{log}").open("a").write(json.dumps([words, os.environ.get("OPENAI_API_KEY")]) + "\\n")
{body}
"""


def install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, body: str
) -> Callable[[], list[tuple[list[str], str | None]]]:
    """A program on PATH. What it was called with, each time: its words, and the key it found."""
    (folder / "bin").mkdir(exist_ok=True)
    program, log = folder / "bin" / name, folder / "called"
    program.write_text(PROGRAM.format(python=sys.executable, log=log, body=body), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder / "bin"))
    return lambda: [(words, key) for words, key in map(json.loads, log.read_text(encoding="utf-8").splitlines())]


WRITES = 'folder = words[words.index("{option}") + 1]; pathlib.Path(folder, "{name}").write_text({text!r})'
SWEEP = ("--concurrency", "8", "--context", "1024", "--output", "128")


def test_an_installed_vllm_measures_in_our_place_after_a_warm_up(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "sesame")
    body = WRITES.format(option="--result-dir", name="result.json", text=json.dumps(VLLM))
    called = install(tmp_path, monkeypatch, "vllm", body)
    with answering({"/v1/models": http('{"data": [{"id": "m"}]}')}) as url:
        result = bench("--url", url, *SWEEP, "--driver", "vllm", "--tokenizer", "./tok", "--json")
    assert result.code == 0, result.all
    run = json.loads(result.out)
    (cell,) = run["cells"]
    assert (run["driver"], cell["status"], cell["figures"]["requests_per_second"]) == ("vllm", "ok", 2)
    (warm_up, _), (words, key) = called()
    assert key == "sesame"
    assert "sesame" not in str(words)
    assert warm_up[warm_up.index("--num-prompts") + 1] == "8"
    for option, value in {
        "--base-url": url,
        "--model": "m",
        "--tokenizer": "./tok",
        "--random-input-len": "1024",
        "--random-output-len": "128",
        "--num-prompts": "24",
        "--max-concurrency": "8",
    }.items():
        assert words[words.index(option) + 1] == value


@pytest.mark.parametrize(
    ("driver", "option", "name", "tree"),
    [
        ("guidellm", "--output", "result.json", {**GUIDELLM, "benchmarks": GUIDELLM["benchmarks"][:1]}),
        ("aiperf", "--artifact-dir", "profile_export_aiperf.json", AIPERF),
    ],
)
def test_so_do_the_others(  # noqa: PLR0917 - one column each
    bench: Bench,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    driver: str,
    option: str,
    name: str,
    tree: object,
) -> None:
    install(tmp_path, monkeypatch, driver, f"pathlib.Path({name!r}).write_text({json.dumps(tree)!r})")
    with answering({"/v1/models": http('{"data": [{"id": "m"}]}')}) as url:
        result = bench("--url", url, *SWEEP, "--driver", driver, "--json")
        assert result.code == 0, result.all
        assert json.loads(result.out)["cells"][0]["figures"]["requests"] > 0
        monkeypatch.setenv("VLLM_API_KEY", "sesame")
        assert "accepts a key only on its command line" in bench("--url", url, *SWEEP, "--driver", driver).err


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('print("no such tokenizer"); sys.exit(3)', "vllm ended with 3: no such tokenizer"),
        ("pass", "It ended without a result: it said nothing"),
        (
            "pathlib.Path('result.json').write_text('{}')",
            "vllm wrote a result that cannot be read: it is not a result of",
        ),
    ],
)
def test_a_client_that_fails_is_told_in_its_own_words(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, message: str
) -> None:
    install(tmp_path, monkeypatch, "vllm", body)
    with answering({"/v1/models": http('{"data": [{"id": "m"}]}')}) as url:
        result = bench("--url", url, *SWEEP, "--driver", "vllm")
    assert result.code == 1
    assert message in result.err


def test_a_client_that_is_not_installed_is_named_with_how_to_get_it(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with answering({"/v1/models": http('{"data": [{"id": "m"}]}')}) as url:
        result = bench("--url", url, *SWEEP, "--driver", "guidellm")
    assert result.code == 1
    assert "guidellm is not on PATH." in result.err
    assert "Run: pip install 'guidellm>=0.8'" in result.err


def test_ctrl_c_ends_the_client_too_and_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "pathlib.Path('PID').write_text(str(os.getpid())); import time; time.sleep(600)".replace(
        "PID", str(tmp_path / "pid")
    )
    install(tmp_path, monkeypatch, "vllm", body)
    with (
        answering({"/v1/models": http('{"data": [{"id": "m"}]}')}) as url,
        person("bench", "--url", url, *SWEEP, "--driver", "vllm", folder=tmp_path, environment={}) as somebody,
    ):
        somebody.waits_for("measuring")
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text(encoding="utf-8"):
            os.sched_yield()
        assert somebody.types(INTERRUPT).stays_to_the_end() == 130
    assert "Interrupted. 0 of 1 cells are kept." in somebody.read
    assert "Continue with the same command and --resume " in somebody.read
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text(encoding="utf-8")), 0)


def test_ctrl_c_that_reaches_the_client_before_it_has_a_session_of_its_own_is_an_interrupt(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the parent sees of a child that the terminal's SIGINT kills between fork and setsid.
    dies = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGINT)"
    install(tmp_path, monkeypatch, "vllm", dies)
    with answering({"/v1/models": http('{"data": [{"id": "m"}]}')}) as url:
        result = bench("--url", url, *SWEEP, "--driver", "vllm")
    assert result.code == 130
    assert "Interrupted. 0 of 1 cells are kept." in result.err
    assert "ended with -2" not in result.err


def test_a_client_that_hangs_is_ended_with_the_time_that_was_given(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "vllm", "import time; time.sleep(600)")
    with answering({"/v1/models": http('{"data": [{"id": "m"}]}')}) as url:
        result = bench("--url", url, *SWEEP, "--driver", "vllm", "--duration", "0.3s")
    assert result.code == 0, result.all
    assert "Ended by --duration: 0 of 1 cells" in result.out
