"""Boot logs, real and ruined: the cause that is named, the phases that are told, and no log that breaks the reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpudeploy.boot_log.read import read
from tpudeploy.boot_log.reading import Cause
from tpudeploy.boot_log.settings import effective_settings
from tpudeploy.boot_log.signatures import SIGNATURES
from tpudeploy.boot_log.signatures.row import Signature
from tpudeploy.boot_log.view import phase_name

EXAMPLES = {row.name: row.example for row in SIGNATURES}
HERE = Path(__file__).parent
GOOD = (HERE.parent / "sizing" / "data" / "boot_gemma4_e2b_v6e1.log").read_text(encoding="utf-8")
FAILED = (HERE / "data" / "boot_failed_qwix_int8_v5e1.log").read_text(encoding="utf-8")
BROKEN = (HERE / "data" / "boot_e2b_v5e1_util095_oom.log").read_text(encoding="utf-8")
WRAPPER = (
    "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
)

UNQUANTIZED = "(APIServer pid=1) INFO 08-07 20:37:50 [api_utils.py:273] non-default args: {'model_tag': 'm'}"


def test_a_good_boot_has_its_phases_in_seconds_its_graphs_and_no_cause() -> None:
    reading = read(GOOD)
    assert {p.name: p.seconds for p in reading.phases} == {
        "imports": 76,
        "engine": 7,
        "weights": 60,
        "compile": 447,
        "warm-up": 62,
    }
    assert reading.graphs == 199
    assert reading.seconds == 652
    assert reading.is_serving
    assert reading.cause is None


# Constructed: the startup script's own lines, in the form of templates/boot/report.sh, around three of vLLM's.
SIDE_BY_SIDE = """\
2026-11-21T10:00:00Z booted: Starting
2026-11-21T10:00:00Z docker: Looking for docker
2026-11-21T10:00:05Z secrets: Reading 1 from Secret Manager
2026-11-21T10:00:05Z mirror: Looking at gs://bucket/weights/
2026-11-21T10:00:05Z image: Pulling it
2026-11-21T10:00:06Z secrets: done in 1 s
2026-11-21T10:01:05Z mirror: done in 60 s
2026-11-21T10:05:05Z image: done in 300 s
2026-11-21T10:05:05Z starting: Starting the container
2026-11-21T10:05:50Z starting: Loading safetensors checkpoint shards
  | INFO 11-21 10:05:15 [api_utils.py:273] non-default args: {'model_tag': 'm'}
  | INFO 11-21 10:05:45 [model_loader.py:625] Loading model with MODEL_IMPL_TYPE=auto
  | INFO 11-21 10:06:15 [api_server.py:682] Starting vLLM server on http://0.0.0.0:8000
2026-11-21T10:06:20Z serving: Healthy, and completed a prompt
"""


def test_what_was_gathered_side_by_side_overlaps() -> None:
    phases = {p.name: (p.began, p.seconds) for p in read(SIDE_BY_SIDE).phases}
    assert phases["docker"] == (0, 5)
    assert phases["secrets"] == (5, 1)
    assert phases["mirror"] == (5, 60)
    assert phases["image"] == (5, 300)


def test_a_container_begins_when_it_was_started_and_not_at_its_last_milestone() -> None:
    phases = {p.name: (p.began, p.seconds) for p in read(SIDE_BY_SIDE).phases}
    assert phases["container"] == (305, 10)
    assert phases["imports"][0] == 315
    assert phases["weights"] == (345, 30)


def test_a_failed_boot_has_the_engines_own_words_and_not_the_wrappers() -> None:
    cause = _cause(FAILED)
    assert cause.signature == "hbm-temporaries"
    assert "16.23 GiB, and it has 15.75" in cause.remedy
    assert cause.line.process == "EngineCore"
    assert FAILED.splitlines()[cause.line.number - 1].endswith(cause.line.text)


@pytest.mark.parametrize(
    "carrier", ["", "  | ", "Aug 07 23:27:17 t1v google_metadata_script_runner[88]: startup-script:   | "]
)
def test_a_message_that_is_broken_over_several_lines_is_read_whole(carrier: str) -> None:
    cause = _cause("\n".join(f"{carrier}{line}" for line in BROKEN.splitlines()))
    assert cause.signature == "no-room-for-program"
    assert cause.line.text.endswith("RESOURCE_EXHAUSTED: E0101: RuntimeProgramAllocationFailure:")
    # 384.11M wanted, 346.77M free of 15.75 GiB: what the two further lines of the message say.
    assert "lower serving.hbm_utilization to 0.92 (now 0.95)" in cause.remedy


def test_a_message_is_read_whole_though_another_process_writes_in_between() -> None:
    lines = BROKEN.splitlines()
    at = next(n for n, line in enumerate(lines) if "RuntimeProgramAllocationFailure" in line)
    lines.insert(at + 1, "(APIServer pid=1) INFO 08-07 23:27:17 [core_client.py:1] still waiting")
    assert "hbm_utilization to 0.92 (now 0.95)" in _cause("\n".join(lines)).remedy


@pytest.mark.parametrize("row", SIGNATURES, ids=lambda row: str(row.name))
@pytest.mark.parametrize(
    "carrier", ["", "(EngineCore_DP0 pid=9) ERROR 08-07 20:40:29 [core.py:1349] ", "  | ", "JOURNAL"]
)
def test_every_cause_is_found_behind_whatever_carries_it(row: Signature, carrier: str) -> None:
    journal = "Aug 07 20:40:29 t1v google_metadata_script_runner[88]: startup-script:   | "
    line = f"{journal if carrier == 'JOURNAL' else carrier}{row.example}"
    before = UNQUANTIZED if row.name == "hbm-temporaries-loading" else "an ordinary line"
    cause = _cause(f"{before}\n{line}\n{WRAPPER if row.ends_server else ''}\n")
    assert (cause.signature, cause.line.number) == (row.name, 2)
    assert cause.remedy


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "total_hbm_used_gb=29.00GiB exceeds total_hbm_limit_cap_gb=28.74GiB by 0.26GiB",
            "hbm_utilization to 0.94 or more",
        ),
        ("total_hbm_used_gb=48.09GiB exceeds total_hbm_limit_cap_gb=28.74GiB by 19.35GiB", "No utilization helps"),
        (EXAMPLES["no-room-for-program"], "lower serving.hbm_utilization to 0.90 (the default is 0.92)"),
        (EXAMPLES["no-room-for-program"], "lower serving.max_num_seqs to 231 (now 256"),
        (
            "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Exceeded hbm capacity by 1.86G.",
            "to 0.85 (the default is 0.92)",
        ),
        (
            "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Exceeded hbm capacity by 1.86G.",
            "to 2048 (now 4096)",
        ),
    ],
)
def test_remedies_count_with_what_the_log_says_of_its_engine(line: str, says: str) -> None:
    flags = "INFO 08-07 20:37:50 [x.py:1] non-default args: {'max_num_seqs': 256, 'max_num_batched_tokens': 4096}"
    memory = "INFO 08-07 20:38:50 [x.py:1] Init model | hbm=[(8.97, 31.24)]GiB"
    assert says in _cause(f"{flags}\n{memory}\n{line}\n").remedy


@pytest.mark.parametrize(
    ("flags", "is_on"), [("{'model_tag': 'm'}", False), ("{'speculative_config': {'a': 1}}", True)]
)
def test_speculative_decoding_is_to_be_dropped_only_where_it_is_on(flags: str, is_on: bool) -> None:
    line = f"INFO 08-07 20:37:50 [x.py:1] non-default args: {flags}"
    remedy = _cause(f"{line}\n{EXAMPLES['no-room-for-program']}\n").remedy
    assert ("speculative" in remedy) is is_on


def test_a_retry_that_went_well_is_no_cause_of_what_failed_later() -> None:
    failed = (
        "2026-11-22T10:00:00Z image: Pull failed, trying again in 5 s: toomanyrequests: You have reached your limit"
    )
    assert _cause(f"{failed}\n{FAILED}").signature == "hbm-temporaries"


def test_a_server_that_came_up_the_second_time_died_of_nothing() -> None:
    assert read(FAILED + GOOD).cause is None


def test_a_server_that_died_the_second_time_says_of_what() -> None:
    assert _cause(GOOD + FAILED).signature == "hbm-temporaries"


def test_what_a_server_dies_of_after_it_served_is_found() -> None:
    died = "(EngineCore pid=9) ERROR 08-10 19:00:00 [core.py:1] " + EXAMPLES["no-room-while-compiling"]
    assert _cause(f"{GOOD}\n{died}\n").signature == "no-room-while-compiling"


def test_requests_that_fail_on_a_server_that_serves_are_no_cause() -> None:
    failed = "(APIServer pid=1) ERROR 08-10 19:00:00 [serving.py:1] ValueError: max_tokens must be at least 1"
    assert read(f"{GOOD}\n{failed}\n").is_serving


def test_words_that_nobody_knows_are_told_as_they_are() -> None:
    cause = _cause(f"Traceback (most recent call last):\nZeroDivisionError: division by zero\n{WRAPPER}\n")
    assert (cause.signature, cause.line.text) == ("unknown", "ZeroDivisionError: division by zero")


def test_a_wrapper_alone_is_told_for_want_of_better() -> None:
    assert _cause(WRAPPER).signature == "unknown"


def test_a_boot_over_new_year_takes_no_year() -> None:
    log = "INFO 12-31 23:59:30 [a.py:1] x\nINFO 01-01 00:00:10 [a.py:1] Starting vLLM server on http://0.0.0.0:8000"
    assert read(log).seconds == 40


@settings(max_examples=60)
@given(st.data())
def test_no_ruined_log_breaks_the_reader(data: st.DataObject) -> None:
    log = data.draw(st.sampled_from([FAILED, BROKEN, GOOD[:20_000], "\n".join(row.example for row in SIGNATURES)]))
    start = data.draw(st.integers(0, len(log)))
    end = data.draw(st.integers(start, len(log)))
    lines = log[start:end].split("\n")
    junk = data.draw(st.lists(st.tuples(st.integers(0, len(lines)), st.text(max_size=40)), max_size=8))
    for at, text in junk:
        lines.insert(at, text)
    reading = read("\n".join(lines))
    assert reading.seconds >= 0
    assert all(phase.seconds is None or phase.seconds >= 0 for phase in reading.phases)


@pytest.mark.parametrize("digits", ["1.2.3", ".", "9" * 400, "0"])
def test_numbers_that_are_none_change_the_advice_and_break_nothing(digits: str) -> None:
    for row in SIGNATURES:
        for number in ("16.23", "384.11", "346.77", "1.86", "28.74", "48.09"):
            read(row.example.replace(number, digits))


def _cause(log: str) -> Cause:
    cause = read(log).cause
    assert cause is not None
    return cause


def test_the_cache_of_an_engine_is_read_whatever_its_device() -> None:
    """The line is that of a real CPU engine, whose phases were also one too few."""
    line = (
        "(EngineCore pid=20026) INFO 11-22 17:25:15 [kv_cache_utils.py:2327] CPU KV cache size: 4,194,304 tokens, "
        "Maximum concurrency for 1,024 tokens per request: 4096.00x"
    )
    assert effective_settings(line) == {"kv_cache_tokens": "4194304"}
    assert [phase.name for phase in read(line).phases] == ["compile"]


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/root/.cache/huggingface/hub/models--google--gemma-4-E2B-it/snapshots/0a1b", "google/gemma-4-E2B-it"),
        ("/root/.cache/huggingface/hub/models--gpt2/snapshots/0a1b", "gpt2"),
        ("google/gemma-4-E2B-it", "google/gemma-4-E2B-it"),
        ("/tpudeploy/weights", "/tpudeploy/weights"),
    ],
)
def test_a_model_from_the_hubs_cache_is_the_model_by_its_name(path: str, model: str) -> None:
    """An engine with HF_HUB_OFFLINE names the folder in its log, and the model in its API."""
    assert effective_settings(f"Initializing a V1 LLM engine (v0.32.0) with config: model='{path}'")["model"] == model


def test_a_start_without_graphs_does_not_count_them() -> None:
    """As with enforce_eager; both lines are of a real CPU engine."""
    reading = read(
        "(EngineCore pid=1) INFO 11-22 17:25:15 [kv_cache_utils.py:2327] CPU KV cache size: 4,194,304 tokens, Maximum "
        "concurrency for 1,024 tokens per request: 4096.00x\n"
        "(EngineCore pid=1) INFO 11-22 17:25:17 [core.py:348] init engine (profile, create kv cache, warmup model) took "
        "8.30 s (compilation: 0.00 s)\n"
    )
    assert phase_name(reading, reading.phases[0]) == "KV cache, no graphs"


def test_a_worker_that_failed_while_the_head_served_is_the_cause() -> None:
    head = "2026-09-21T14:16:42Z booted: Starting\n2026-09-21T14:17:44Z serving: Healthy, and completed a prompt\n"
    message = "Ray of worker 0 did not listen at 10.0.0.2:20488 within 360 s. Either worker 0 failed, or a firewall"
    boots = (
        "2026-09-21T14:16:43Z booted: Starting",
        "2026-09-21T14:19:39Z booted: Starting",
        f"2026-09-21T14:31:39Z failed: {message} keeps the workers apart",
    )
    failed = "".join(f"worker 12: {line}\n" for line in boots)
    cause = read(failed + head).cause
    assert cause is not None
    assert (cause.signature, cause.line.number) == ("head-unreachable", 3)
    back = "worker 12: 2026-09-21T14:40:00Z booted: Starting\n"
    assert read(failed + back + head).cause is None, "a later boot of it says more than the one before"
