"""Tables of GKE Inference Quickstart: every server in them is a run by others, and says so wherever it is used."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command_line import Result, command
from measured_files import imported_run, measured_cell

import tpudeploy as td

Run = Callable[..., Result]
PROFILE = Path(__file__).parents[3] / "profiles" / "gemma4-e2b-v6e1.yaml"
MODEL = "google/gemma-4-E2B-it"
# The columns of `csvprofile`, of `profile`, and those that `--format="csv(…)"` makes of the fields of the API.
CSVPROFILE = (
    "Instance Type,Accelerator Type,Model Name,Model Server Name,Model Server Version,Output Tokens/s,NTPOT (ms),"
    "TTFT (ms),QPS,Cost/M Input Tokens,Cost/M Output Tokens\n"
)
ROWS = (
    f"ct6e-standard-4t,tpu-v6e-slice,{MODEL},vllm,v0.12.0,5120,14,210,20,0.010,0.080\n"
    f"ct6e-standard-4t,tpu-v6e-slice,{MODEL},vllm,v0.12.0,12800,28,410,50,0.004,0.031\n"
    f"ct6e-standard-1t,tpu-v6e-slice,{MODEL},vllm,v0.12.0,2560,30,500,10,N/A,N/A\n"
    f"a3-highgpu-1g,nvidia-h100-80gb,{MODEL},vllm,v0.12.0,13335,67,297,52.1,0.009,0.035\n"
)
PROFILE_TABLE = (
    "Instance Type,Accelerator,Cost/M Input Tokens,Cost/M Output Tokens,Output Tokens/s,NTPOT(ms),TTFT(ms),"
    f"Model Server,Model Server Version,Model\nct6e-standard-4t,tpu-v6e-slice,0.01,0.08,5120,14,210,vllm,v0.12.0,{MODEL}\n"
)
FIELDS = (
    "instance_type,model,model_server,model_server_version,output_tokens_per_second,ntpot_milliseconds,"
    f"ttft_milliseconds,queries_per_second\nct6e-standard-4t,{MODEL},vllm,v0.12.0,5120,14,210,20\n"
)
API: Mapping[str, Any] = {
    "modelServerInfo": {"model": MODEL, "modelServer": "vllm", "modelServerVersion": "v0.12.0"},
    "acceleratorType": "tpu-v6e-slice",
    "tpuTopology": "2x2",
    "instanceType": "ct6e-standard-4t",
    "resourcesUsed": {"acceleratorCount": 4},
    "workloadSpec": {"averageInputLength": 1024, "averageOutputLength": 256},
    "performanceStats": [
        {"queriesPerSecond": 20, "outputTokensPerSecond": "5120", "ntpotMilliseconds": 14, "ttftMilliseconds": 210}
    ],
}


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """A command in a folder of its own, with a profile in it."""
    (tmp_path / "e2b.yaml").write_text(PROFILE.read_text())
    return partial(command, tmp_path, capfd)


def _import(run: Run, folder: Path, text: str | bytes, *words: str, name: str = "giq.csv") -> Result:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return run("bench", "import", name, *words)


def _run(result: Result) -> Mapping[str, Any]:
    assert result.code == 0, result.all
    document: Mapping[str, Any] = json.loads(result.out)
    return document


@pytest.mark.parametrize(
    "text",
    [
        CSVPROFILE + ROWS.splitlines(keepends=True)[0],
        FIELDS,
        "\ufeff" + FIELDS,
        FIELDS.replace(",", ";"),
        FIELDS.replace(",", "\t").replace("\n", "\r\n"),
        FIELDS.replace("ct6e-standard-4t", '"ct6e-standard-4t"'),
        f"\n{FIELDS}\n\n",
        json.dumps(API),
        json.dumps([API]),
        json.dumps({"profile": [API], "comments": ""}),
    ],
)
def test_each_form_of_the_table_is_the_same_run(run: Run, tmp_path: Path, text: str) -> None:
    document = _run(_import(run, tmp_path, text, "--json"))
    subject, (cell,) = document["subject"], document["cells"]
    assert (document["driver"], subject["model"], subject["accelerator_type"], subject["chips"]) == (
        "gke-inference-quickstart",
        MODEL,
        "v6e-4",
        4,
    )
    figures = cell["figures"]
    assert figures["requests_per_second"] == 20
    assert figures["output_tokens_per_second"] == 5120
    assert figures["output_tokens_mean"] == 256
    assert figures["ttft_seconds"]["mean"] == pytest.approx(0.21)
    # A request of 256 tokens takes 256 x 14 ms, and 20 of them begin in a second.
    assert figures["e2e_seconds"]["mean"] == pytest.approx(3.584)
    assert cell["point"]["concurrency"] == 72
    assert document["source"].startswith("GKE Inference Quickstart, giq.csv; measured by Google on GKE; ")


def test_a_name_of_several_lines_is_one_line(run: Run, tmp_path: Path) -> None:
    text = FIELDS.replace("v0.12.0", '"v0.12.0\n\x1b[31mred"')
    document = _run(_import(run, tmp_path, text, "--json"))
    assert document["subject"]["engine"]["version"] == "v0.12.0 \x1b[31mred"
    shown = run("bench", "show", document["id"]).out
    assert "\x1b" not in shown
    assert "v0.12.0 " in shown.splitlines()[1]


def test_a_table_for_people_as_csv_knows_no_rate_of_requests(run: Run, tmp_path: Path) -> None:
    (cell,) = _run(_import(run, tmp_path, PROFILE_TABLE, "--json"))["cells"]
    assert cell["figures"]["requests_per_second"] is None
    assert cell["point"] == {"concurrency": 72, "context_tokens": None, "output_tokens": None}


def test_each_server_of_a_table_is_a_run_and_options_choose(run: Run, tmp_path: Path) -> None:
    listed = _run(_import(run, tmp_path, CSVPROFILE + ROWS, "--json"))
    assert [(each["subject"]["accelerator_type"], each["cells"]) for each in listed["runs"]] == [
        ("v6e-4", 2),
        ("v6e-1", 1),
        ("a3-highgpu-1g", 1),
    ]
    chosen = _run(run("bench", "import", "giq.csv", "--type", "v6e-1", "--json"))
    assert chosen["subject"]["accelerator_type"] == "v6e-1"
    other = run("bench", "import", "giq.csv", "--type", "v5e-4")
    assert "The table has no such server." in other.err
    assert f"It has {MODEL} on v6e-4, {MODEL} on v6e-1, {MODEL} on a3-highgpu-1g." in other.err
    assert "A price is that of one server" in run("bench", "import", "giq.csv", "--usd-per-hour", "3").err


def test_a_program_imports_a_table_too(tmp_path: Path) -> None:
    with td.Workspace.open(tmp_path) as workspace:
        files = {"giq.csv": (CSVPROFILE + ROWS).encode()}
        runs = workspace.import_benchmarks(files, context=1024).runs
        assert [run.subject.hardware for run in runs] == ["v6e-4", "v6e-1", "a3-highgpu-1g"]
        with pytest.raises(td.errors.UsageError, match="The table is of 3 servers"):
            workspace.bench_import(files)
        assert len(workspace.benchmark_runs().runs) == 3, "what is refused is not stored"


def _recommend(run: Run, *more: str) -> Result:
    return run("recommend", "e2b.yaml", "--users", "64", "--context", "1024", "--output", "256", *more)


def test_recommend_takes_it_as_measured_by_others_beside_the_size_model(run: Run, tmp_path: Path) -> None:
    assert _import(run, tmp_path, json.dumps(API)).code == 0
    choices = json.loads(_recommend(run, "--json").out)["choices"]
    (by_others,) = (each for each in choices if each["basis"] == "measured by others")
    assert by_others["accelerator_type"] == "v6e-4"
    assert by_others["source"].startswith("GKE Inference Quickstart, giq.csv, imported ")
    assert by_others["unknown"] == ["the 95th percentile of the time to the first token"]
    # At the list price, which the table doesn't state.
    assert by_others["usd_per_million_output_tokens"] == pytest.approx(
        by_others["usd_per_month"] / 730 / (5120 * 3600) * 1e6
    )
    assert {each["basis"] for each in choices} == {"measured by others", "modeled"}
    assert "measured by others)" in _recommend(run).err


@pytest.mark.parametrize("value", ["tensor_parallel_size=1", "data_parallel_size=1", "max_model_len=512"])
def test_the_profile_for_it_uses_all_chips_and_takes_the_load(run: Run, tmp_path: Path, value: str) -> None:
    assert _import(run, tmp_path, json.dumps(API)).code == 0
    document = json.loads(_recommend(run, "--set", f"serving.{value}", "--json").out)
    (by_others,) = (each for each in document["choices"] if each["basis"] == "measured by others")
    sets = [word for pair in by_others["settings"].items() for word in ("--set", f"{pair[0]}={json.dumps(pair[1])}")]
    sized = json.loads(run("size", "e2b.yaml", "--set", f"serving.{value}", *sets, "--json").out)
    assert sized["tensor_parallel_size"] * sized["data_parallel_size"] == 4
    assert sized["max_model_len"] >= 1024 + 256


def test_a_run_of_ones_own_decides_alone(run: Run, tmp_path: Path) -> None:
    assert _import(run, tmp_path, json.dumps(API)).code == 0
    own = imported_run(run, tmp_path, measured_cell(64, 20.0, 400.0), slice_type="v6e-1", usd="1.50")
    choices = json.loads(_recommend(run, "--json").out)["choices"]
    assert (choices[0]["run"], choices[0]["basis"]) == (own, "measured")
    assert "modeled" not in {each["basis"] for each in choices}


def test_a_mean_does_not_keep_a_limit_of_95_of_100(run: Run, tmp_path: Path) -> None:
    assert _import(run, tmp_path, json.dumps(API)).code == 0
    (choice,) = (each for each in json.loads(_recommend(run, "--ttft", "1s", "--json").out)["choices"] if each["cell"])
    assert choice["is_checked"] is False
    assert choice["why"].endswith("the first token within 0.21 s on average")
    slow = json.loads(_recommend(run, "--ttft", "100ms", "--json").out)
    assert any(line.endswith("on v6e-4: the first token takes 0.21 s on average") for line in slow["refused"])


def test_lengths_that_a_table_does_not_state_are_unknown_until_they_are_stated(run: Run, tmp_path: Path) -> None:
    assert _import(run, tmp_path, FIELDS).code == 0
    assert "it does not say how long its prompts and answers were" in _recommend(run).err
    stated = _run(_import(run, tmp_path, FIELDS, "--context", "1024", "--json"))
    assert "prompts of 1,024 tokens, as stated at the import" in stated["source"]
    assert "measured by others)" in _recommend(run).err


def test_an_article_shows_it_beside_own_figures_with_the_difference_in_method(run: Run, tmp_path: Path) -> None:
    others = _run(_import(run, tmp_path, json.dumps(API), "--json"))["id"]
    own = imported_run(run, tmp_path, measured_cell(64, 20.0, 400.0), slice_type="v6e-4", usd="5.00")
    compared = run("compare", own, others, "-o", "article.md")
    assert compared.code == 0, compared.all
    assert f"{others}: GKE Inference Quickstart, giq.csv; measured by Google on GKE; NTPOT is" in compared.out
    article = (tmp_path / "article.md").read_text()
    beside = article.partition("## Beside published figures")[2].partition("\n## ")[0]
    assert (
        "whether latencies are means or medians, the server's flags, and when it was measured aren't stated" in beside
    )
    assert "| others |" in beside
    assert "| 20 | 5,120 | 0.210s |" in beside
    assert "60 s at most a cell" not in article, "nobody knows how long another client measured"


HOSTILE: Mapping[str, tuple[str | bytes, str]] = {
    "an empty file": ("", "it has no column"),
    "a header alone": (CSVPROFILE, "it has no row with figures"),
    "no model": (FIELDS.replace("model,", "mdl,", 1), "without its column `Model Name`"),
    "no rate": (FIELDS.replace("output_tokens_per_second", "speed"), "without its column `Output Tokens/s`"),
    "no latency": (FIELDS.replace("ntpot_milliseconds", "latency"), "without its column `NTPOT (ms)`"),
    "a word for a number": (FIELDS.replace(",14,", ",fast,"), "line 2: `ntpot_milliseconds` is `fast`"),
    "a decimal comma": (FIELDS.replace(",", ";").replace(";14;", ";14,5;"), "is `14,5`, which is not a number"),
    "a negative rate": (FIELDS.replace(",5120,", ",-5120,"), "line 2: `output_tokens_per_second` is -5120, below 0"),
    "nothing but NaN": (FIELDS.replace(",5120,14,210,20", ",NaN,NaN,NaN,NaN"), "it has no row with figures"),
    "an endless rate": (FIELDS.replace(",5120,14,210,20", ",inf,14,210,inf"), "it has no row with figures"),
    "a value too many": (FIELDS.replace(",20\n", ",20,21\n"), "line 2 has 9 values, and there are 8 columns"),
    "no machine": (FIELDS.replace("ct6e-standard-4t", ""), "line 2: it names no machine"),
    "an open quote": (FIELDS.replace("ct6e-standard-4t", '"ct6e'), "line 2: unexpected end of data"),
    "Latin-1": (FIELDS.replace("vllm", "vllm-é").encode("latin-1"), "line 2 is not UTF-8"),
    "UTF-16": (FIELDS.encode("utf-16"), "line 1 is not UTF-8"),
    "a column twice": (FIELDS.replace("ttft_milliseconds", "ntpot_milliseconds"), "two columns are called"),
    "the table for people": (PROFILE_TABLE.replace(",", "  "), "add `--format=csvprofile`"),
    "many rows": (FIELDS + FIELDS.splitlines(keepends=True)[1] * 100_001, "more than 100,000 rows"),
    "a long text": ("a" * (33 << 20), "as a table it's longer than 32 million characters"),
    "zero bytes": (FIELDS.replace("vllm", "\0"), "line 2"),
    "a long cell": (FIELDS.replace("vllm", "v" * 200_000), "line 2: field larger than field limit"),
    "a profile without its server": (json.dumps({"performanceStats": []}), "KeyError: 'modelServerInfo'"),
    "a profile without figures": (json.dumps({**API, "performanceStats": []}), "it has no row with figures"),
    "statistics of another kind": (json.dumps({**API, "performanceStats": 7}), "GKE Inference Quickstart: TypeError"),
    "JSON that is cut off": (
        json.dumps(API)[:-9],
        "it looks like a result of GKE Inference Quickstart that is cut off",
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_no_such_table_is_refused_with_the_place(run: Run, tmp_path: Path, kind: str) -> None:
    content, sentence = HOSTILE[kind]
    result = _import(run, tmp_path, content)
    assert result.code == 1, result.all
    assert "`giq.csv` cannot be imported" in result.err
    assert sentence in result.err
    assert json.loads(run("bench", "list", "--json").out)["runs"] == []


@pytest.mark.parametrize("value", ["nan", "-1", "inf", "", "x"])
@pytest.mark.parametrize("column", [0, 1, 2, 3])
def test_a_grid_has_whole_and_finite_numbers(run: Run, tmp_path: Path, column: int, value: str) -> None:
    values = ["8", "128", "5.0", "0.2"]
    values[column] = value
    text = f"concurrency,context_len,throughput_req_sec,avg_latency_s\n{','.join(values)}\n"
    result = _import(run, tmp_path, text)
    assert result.code == 1
    assert "line 2: " in result.err
