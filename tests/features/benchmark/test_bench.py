"""Figures that end in a decision: every cell of a sweep is accounted for, and what cannot be so is called so."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from answering import answering, http
from command_line import Result, command
from emulator.machine_world import MODEL as SMALL_MODEL
from emulator.machine_world import SERVE, World, ask
from jsonschema import Draft7Validator
from pseudo_terminal import person
from screen import Screen

import tpudeploy as td
from tpudeploy.emulator.machine.machine import Machine
from tpudeploy.features.benchmark.documents import DOCUMENTS

Bench = Callable[..., Result]
# So large that what a stand-in answers at once is impossible for a chip on the slowest machine too.
MODEL = "google/gemma-4-12B-it"
STREAMS = "1,2,3,4,5,6,7,8,10,12,14,16"
CONTEXTS = "4,8,16,32,64,128,256,512,1024,4096,8192,16384"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    served = World(tmp_path_factory.mktemp("served"))
    yield served
    served.stop()


@pytest.fixture(scope="module")
def served(world: World) -> Machine:
    return world.boot(f"{SERVE.replace(SMALL_MODEL, MODEL).replace('32768', '16384')}; healthy")


@pytest.fixture(scope="module")
def url(served: Machine) -> str:
    """A stand-in vLLM in a process of its own, that takes 16,384 tokens."""
    return f"http://{served.address}:{served.port_for(8000)}"


@pytest.fixture
def bench(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Bench:
    """`bench WORDS` in an empty folder."""
    monkeypatch.delenv("VLLM_API_KEY", raising=False)

    return partial(command, tmp_path, capfd, "bench")


def measured(bench: Bench, *words: str) -> Mapping[str, Any]:
    """The run, as `--json` tells it. Windows are short: the stand-in answers at once."""
    result = bench("--window", "50ms", "--json", *words)
    assert result.code == 0, result.all
    tree: Mapping[str, Any] = json.loads(result.out)
    return tree


def statuses(run: Mapping[str, Any]) -> Counter[str]:
    return Counter(cell["status"] for cell in run["cells"])


def only(run: Mapping[str, Any]) -> Mapping[str, Any]:
    (cell,) = run["cells"]
    return dict(cell)


def test_a_sweep_of_144_cells_accounts_for_each_of_them(
    bench: Bench, url: str, served: Machine, tmp_path: Path
) -> None:
    before = _prompt_tokens(served)
    run = measured(bench, "--url", url, "--concurrency", STREAMS, "--context", CONTEXTS, "--output", "1")
    points = [tuple(cell["point"].values()) for cell in run["cells"]]
    assert len(points) == len(set(points)) == 144
    assert run["ended"] == "complete"
    assert (run["format"], run["driver"]) == ("tpudeploy.run/1", "tpudeploy")
    for cell in run["cells"]:
        if cell["point"]["context_tokens"] == 16_384:
            assert cell["status"] == "skipped_len"
            assert cell["reasons"] == ["16384 + 1 tokens exceed max_model_len 16384"]
        else:
            assert cell["status"] in {"ok", "client_bound"}, cell  # a busy machine is said to be one
            assert cell["figures"]["prompt_tokens_mean"] == cell["point"]["context_tokens"]
            assert cell["figures"]["output_tokens_mean"] == 1
            assert cell["errors"] == {}
    requests = sum(c["figures"]["requests"] * c["point"]["context_tokens"] for c in run["cells"] if c["figures"])
    assert requests < _prompt_tokens(served) - before  # the warm-up is not in the figures
    assert json.loads((tmp_path / ".tpudeploy" / "runs" / f"{run['id']}.json").read_text(encoding="utf-8")) == run
    Draft7Validator(DOCUMENTS["run"]()).validate(run)


def _prompt_tokens(served: Machine) -> float:
    match = re.search(r"^vllm:prompt_tokens_total{.*} (.*)$", ask(served, "/metrics").text, re.MULTILINE)
    assert match
    return float(match[1])


def test_a_window_that_is_named_lasts_as_long_as_it_says(bench: Bench, url: str) -> None:
    words = ("--url", url, "--concurrency", "1", "--context", "16", "--output", "1", "--json")
    named, other = (json.loads(bench(*words, *more).out) for more in (("--window", "3s"), ()))
    assert named["cells"][0]["figures"]["window_seconds"] >= 3
    assert other["cells"][0]["figures"]["window_seconds"] < 3


def test_a_person_reads_a_row_a_cell_a_heat_table_and_what_the_marks_mean(bench: Bench, url: str) -> None:
    result = bench("--url", url, "--concurrency", "1..4", "--context", "16,16384", "--output", "2", "--window", "50ms")
    assert result.code == 0
    rows = [line.split() for line in result.err.splitlines()[1:]]
    assert [row[:4] for row in rows] == [
        [f"{n}/6", str(c), context, "2"]
        for n, (context, c) in enumerate(((x, c) for x in ("16", "16,384") for c in (1, 2, 4)), start=1)
    ]
    assert "requests/s, 2 tokens out (streams down, context across)" in result.words
    assert "- longer than the engine accepts: not measured" in result.words
    assert "Complete: 6 of 6 cells" in result.out
    id_ = re.search(r"Run (\S+), kept in", result.out)
    assert id_
    assert f"{id_[1]} {MODEL} ? tpudeploy 6/6" in bench("list").words
    assert bench("show", id_[1]).out == result.out


def test_at_a_terminal_the_cell_under_way_stands_where_its_row_will(url: str, tmp_path: Path) -> None:
    words = ("--concurrency", "1,2", "--context", "16", "--output", "1", "--window", "300ms")
    with person("bench", "--url", url, *words, folder=tmp_path, environment={}) as somebody:
        during = Screen(100).shows(somebody.waits_for("measuring, ").read)
        assert somebody.stays_to_the_end() == 0
    assert re.match(r" +2/2 +2 +16 +1  measuring, \d+s so far", during[-1])
    after = Screen(100).shows(somebody.read)
    assert not any("measuring" in line for line in after)
    assert [line.split()[0] for line in after if "/2 " in line] == ["1/2", "2/2"]


def test_what_an_engine_has_cached_is_no_figure_of_prefill(bench: Bench, url: str) -> None:
    words = ("--url", url, "--concurrency", "2", "--context", "1024", "--output", "1")
    for _ in range(2):
        assert only(measured(bench, *words))["evidence"]["cached_share"] == 0
    assert only(measured(bench, *words, "--seed", "again"))["evidence"]["cached_share"] == 0
    cell = only(measured(bench, *words, "--seed", "again"))
    assert cell["status"] == "cache_suspect"
    assert re.fullmatch(r"\d+% of the prompt tokens came from the prefix cache", cell["reasons"][0])


def test_a_figure_that_no_chip_can_reach_is_called_impossible(bench: Bench, url: str) -> None:
    words = ("--url", url, "--concurrency", "16", "--context", "8192", "--output", "1")
    cell = only(measured(bench, *words, "--type", "v6e-1"))
    assert cell["status"] == "roofline_suspect"
    assert cell["evidence"]["peak_share"] > 1
    assert cell["reasons"][0].startswith("impossible: these tokens need ")
    # The same tokens, where nobody says what they ran on.
    assert only(measured(bench, *words))["evidence"]["peak_share"] is None


def test_tokens_faster_than_weights_can_be_read_are_called_impossible(bench: Bench, url: str) -> None:
    cell = only(
        measured(bench, "--url", url, "--concurrency", "1", "--context", "4", "--output", "32", "--type", "v6e-1")
    )
    assert cell["status"] == "roofline_suspect"
    assert any("as fast as the chips can read the weights for each" in reason for reason in cell["reasons"])


def test_a_client_that_is_late_itself_says_so(bench: Bench, url: str) -> None:
    with _busy_interpreter():
        cell = only(measured(bench, "--url", url, "--concurrency", "4", "--context", "16", "--output", "4"))
    assert cell["status"] == "client_bound"
    assert re.fullmatch(r"the client was \d+ ms late itself \(p99\)", cell["reasons"][0])
    assert cell["evidence"]["client_lag_p99_seconds"] > 0.02


@contextmanager
def _busy_interpreter() -> Iterator[None]:
    """Another thread that gives the interpreter away only thirty times a second."""
    over, before = threading.Event(), sys.getswitchinterval()

    def spin() -> None:
        while not over.is_set():
            pass

    thread = threading.Thread(target=spin, daemon=True)
    sys.setswitchinterval(0.03)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(before)


def test_goodput_counts_what_kept_the_objective(bench: Bench, url: str) -> None:
    words = ("--url", url, "--concurrency", "1", "--context", "16", "--output", "4")
    result = bench("--window", "50ms", *words, "--slo-ttft", "500ms", "--slo-tpot", "20s")
    assert "requests/s within TTFT 0.5 s, TPOT 20 s, 4 tokens out" in result.words
    easy = only(measured(bench, *words, "--slo-ttft", "30s"))["figures"]
    assert easy["goodput_requests_per_second"] == easy["requests_per_second"] > 0
    assert only(measured(bench, *words, "--slo-ttft", "0.0001ms"))["figures"]["goodput_requests_per_second"] == 0
    assert only(measured(bench, *words))["figures"]["goodput_requests_per_second"] is None


def test_a_server_that_fails_gives_its_words_no_figures_and_exit_code_1(bench: Bench) -> None:
    model = http('{"data": [{"id": "m"}]}')
    broken = http('{"error": {"message": "out of memory", "code": 500}}', status="500 Internal Server Error")
    with answering({"/v1/models": model, "/v1/completions": broken}) as url:
        result = bench("--url", url, "--concurrency", "2", "--context", "16", "--output", "1", "--json")
    assert result.code == 1
    cell = only(json.loads(result.out))
    assert cell["status"] == "failed"
    assert cell["errors"] == {"HTTP 500: out of memory": 6}
    assert cell["figures"]["requests"] == 0
    assert cell["figures"]["ttft_seconds"] is None


def test_a_failed_cell_shows_the_servers_words_as_soon_as_it_ends(bench: Bench) -> None:
    model = http('{"data": [{"id": "m"}]}')
    broken = http('{"error": {"message": "out of memory", "code": 500}}', status="500 Internal Server Error")
    with answering({"/v1/models": model, "/v1/completions": broken}) as url:
        result = bench("--url", url, "--concurrency", "2", "--context", "16", "--output", "1")
    (row,) = (line for line in result.err.splitlines() if " 1/1 " in line)
    assert row.endswith("failed: not one of 6 requests was answered after the warm-up: HTTP 500: out of memory")


@pytest.mark.parametrize("vocabulary", [32_000, 1_000, 384, 64])
def test_prompts_stay_inside_the_vocabulary_of_a_model_that_nobody_knows(bench: Bench, vocabulary: int) -> None:
    """As vLLM refuses an id that its model does not have, and a model may be smaller than any released one."""

    def completed(request: bytes) -> bytes:
        body = json.loads(request.partition(b"\r\n\r\n")[2])
        largest = max(body["prompt"])
        if largest >= vocabulary:
            refusal = {"error": {"message": f"Token id {largest} is out of vocabulary", "code": 400}}
            return http(json.dumps(refusal), status="400 Bad Request")
        usage = {"prompt_tokens": len(body["prompt"]), "completion_tokens": 1}
        piece = json.dumps({"choices": [{"text": "x"}], "usage": usage})
        return http(f"data: {piece}\n\ndata: [DONE]\n\n")

    with answering({"/v1/models": http('{"data": [{"id": "tiny"}]}'), "/v1/completions": completed}) as url:
        cell = only(measured(bench, "--url", url, "--concurrency", "1", "--context", "16", "--output", "1"))
    assert cell["errors"] == {}
    assert cell["figures"]["prompt_tokens_mean"] == 16


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (b"", "the connection was closed"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not HTTP: "),
        (http("data: hello\n\n"), "not an event of vLLM: hello"),
        (http("data: [DONE]\n\n"), "the stream had no tokens"),
        (http('data: {"error": {"message": "engine died"}}\n\n'), "engine died"),
        (http("no page", status="404 Not Found"), "HTTP 404: no page"),
    ],
)
def test_whatever_answers_instead_is_told_in_its_own_words(bench: Bench, reply: bytes, message: str) -> None:
    with answering({"/v1/models": http('{"data": [{"id": "m"}]}'), "/v1/completions": reply}) as url:
        result = bench("--url", url, "--concurrency", "1", "--context", "16", "--output", "1", "--json")
    (error,) = only(json.loads(result.out))["errors"]
    assert error.startswith(message)


def test_a_server_that_closes_every_connection_is_measured_all_the_same(bench: Bench) -> None:
    """And one that is not vLLM, writes JSON its own way, and counts no tokens."""
    piece = 'data: {"choices": [{"text": "x"}]}\r\n\r\n'
    body = f"{piece * 3}data: [DONE]\r\n\r\n"
    with answering({"/v1/models": http('{"data": [{"id": "m"}]}'), "/v1/completions": http(body)}) as url:
        cell = only(measured(bench, "--url", url, "--concurrency", "1", "--context", "16", "--output", "3"))
    assert cell["errors"] == {}
    assert cell["figures"]["output_tokens_mean"] == 3
    assert cell["figures"]["prompt_tokens_mean"] is None
    assert cell["evidence"]["cached_share"] is None


def test_a_last_piece_that_only_says_why_it_ends_is_no_token(bench: Bench) -> None:
    piece = 'data: {"choices":[{"text":"x","finish_reason":null}]}\n\n'
    last = 'data: {"choices":[{"text":"","finish_reason":"length"}],"usage":null}\n\n'
    usage = 'data: {"choices":[],"usage":{"prompt_tokens":16,"completion_tokens":3}}\n\n'
    reply = http(f"{piece * 3}{last}{usage}data: [DONE]\n\n")
    with answering({"/v1/models": http('{"data": [{"id": "m"}]}'), "/v1/completions": reply}) as url:
        measured_figures = only(
            measured(bench, "--url", url, "--concurrency", "1", "--context", "16", "--output", "3")
        )["figures"]
    assert (measured_figures["prompt_tokens_mean"], measured_figures["output_tokens_mean"]) == (16, 3)
    assert measured_figures["itl_seconds"]["count"] == 2 * measured_figures["requests"]


def test_an_endpoint_that_wants_a_key_gets_the_one_in_the_environment(
    bench: Bench, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = world.boot(f"{SERVE} --api-key sesame; healthy")
    words = ("--url", f"http://{machine.address}:{machine.port_for(8000)}/v1", "--concurrency", "1", "--context", "8")
    result = bench(*words)
    assert result.code == 1
    assert "It requires an API key: set VLLM_API_KEY." in result.err
    monkeypatch.setenv("VLLM_API_KEY", "sesame")
    run = measured(bench, *words, "--output", "1")
    assert only(run)["figures"]["requests"] > 0
    assert "sesame" not in json.dumps(run)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "`bench` measures one profile, or one address."),
        (("--url", "ftp://x"), "`ftp://x` is not a valid address."),
        (("--url", "http://me:secret@x:1"), "is not a valid address."),
        (("--url", "http://127.0.0.1:9"), "http://127.0.0.1:9 did not answer: Connection refused."),
        (("--url", "URL", "--model", "other"), "does not serve `other`."),
        (("--url", "URL", "--type", "v6e-5"), "There is no slice type `v6e-5`."),
        (("--url", "URL", "--max-cost", "1"), "--max-cost needs a price, and it is unknown."),
        (("--url", "URL", "--concurrency", "8..1"), "`8..1` does not go up from 1"),
        (("--url", "URL", "--context", "0"), "0 is not a count"),
        (("--url", "URL", "--output", "many"), "`many` is not a number"),
        (("--url", "URL", "--max-cost", "-1"), "is not an amount of USD"),
        (("--url", "URL", "--resume", "2020"), "There is no run `2020`."),
        (("--url", "URL", "--resume", "2020", "--context", "8"), "--context cannot be changed when resuming."),
        (("show", "2020"), "There is no run `2020`."),
    ],
)
def test_what_cannot_be_measured_is_said_before_anything_is(
    bench: Bench, url: str, words: tuple[str, ...], message: str
) -> None:
    result = bench(*(url if word == "URL" else word for word in words))
    assert result.code == 1
    assert message in result.err


def test_a_program_measures_an_address_with_the_options_of_the_command(url: str, tmp_path: Path) -> None:
    address = td.ServerAddress(url=url, type="v6e-1")
    options = td.SweepOptions(concurrency=[2, 1, 2], context=[8], output=[2], window_seconds=0.05, slo_ttft=1e-9)
    with td.Workspace.open(tmp_path) as workspace:
        bounded = workspace.bench(address=address, options=options, duration_seconds=0).run
        assert (bounded.ended, bounded.cells) == ("duration", ())
        whole = workspace.bench(address=address, resume=bounded.id).run
        assert (whole.id, whole.ended, len(whole.cells)) == (bounded.id, "complete", 2)
        assert [cell.figures and cell.figures.goodput_requests_per_second for cell in whole.cells] == [0, 0]
        refusals: Mapping[str, Mapping[str, Any]] = {
            "--seed cannot be changed when resuming": {"options": td.SweepOptions(seed="a"), "resume": whole.id},
            "--max-cost needs a price": {"address": td.ServerAddress(url=url), "max_cost": 1},
            "There is no load client `ab`": {"options": td.SweepOptions(driver="ab")},
            "measures one profile, or one address": {"address": None},
        }
        for message, values in refusals.items():
            with pytest.raises(td.errors.UsageError, match=message):
                workspace.bench(**{"address": address, **values})


def test_stopping_a_workspace_ends_its_benchmark(url: str, tmp_path: Path) -> None:
    with td.Workspace.open(tmp_path) as workspace:
        with pytest.raises(td.errors.Interrupted, match="0 of 1 cells are kept"):
            workspace.bench(
                address=td.ServerAddress(url=url),
                options=td.SweepOptions(concurrency=[1], context=[8], output=[1]),
                on_point=lambda _run, _point: workspace.stop(),
            )
        (run,) = workspace.benchmark_runs()
    assert run.ended == "interrupted"


def test_without_the_extra_it_says_what_to_install(bench: Bench, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    result = bench("--url", url, "--concurrency", "1", "--context", "16", "--output", "1")
    assert result.code == 1
    assert "The load client needs uvloop, which is not installed." in result.err
    assert " 'httptools>=0.6.4' 'uvloop>=0.21'\n" in result.err
    assert "streams" not in result.err, "nothing is begun, not even the head of a table"


def test_a_run_that_somebody_changed_is_refused(bench: Bench, url: str, tmp_path: Path) -> None:
    run = measured(bench, "--url", url, "--concurrency", "1", "--context", "8", "--output", "1")
    (file,) = (tmp_path / ".tpudeploy" / "runs").glob("*.json")
    file.write_text(file.read_text(encoding="utf-8").replace('"requests_failed":0', '"requests_failed":1'))
    result = bench("show", run["id"])
    assert result.code == 1
    assert "it was changed after it was measured" in result.err
