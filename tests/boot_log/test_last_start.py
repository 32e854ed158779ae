"""How long the last start of a server took, by its log and by the machine's own report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tpudeploy.boot_log.starts import last_start, reported_start, timeline
from tpudeploy.domain.slices import BootPhase, BootReport
from tpudeploy.domain.starts import MeasuredStart

LOG = """\
2026-08-10T17:50:00Z booted: Starting
2026-08-10T17:51:00Z starting: Starting the container
(APIServer pid=1) INFO 08-10 17:51:00 [utils.py:233] non-default args: {'model_tag': 'm'}
(EngineCore pid=2) INFO 08-10 17:58:00 [core.py:348] init engine (profile, create kv cache, warmup model) took 380.10 s (compilation: 300.00 s)
(APIServer pid=1) INFO:     Application startup complete.
2026-08-10T18:00:00Z starting: Starting the container
(APIServer pid=1) INFO 08-10 18:00:20 [utils.py:233] non-default args: {'model_tag': 'm'}
(EngineCore pid=2) INFO 08-10 18:01:40 [core.py:348] init engine (profile, create kv cache, warmup model) took 60.10 s (compilation: 3.20 s)
(APIServer pid=1) INFO 08-10 18:01:50 [launcher.py:99] API server: waiting for HTTP server to start
(APIServer pid=1) INFO:     Application startup complete.
2026-08-10T18:02:00Z cache: hit: 40 programs were here, 0 were compiled anew
"""


def test_of_several_servers_in_one_boot_the_last_ones_start_is_read() -> None:
    assert last_start(LOG) == MeasuredStart(seconds=110, compile_seconds=3.2, programs_cached=40, programs=40)
    assert last_start(LOG.partition("Application startup")[0]) is None, "it is not up yet"
    assert last_start("") is None
    partly = last_start(LOG.replace("hit: 40 programs were here, 0", "hit: 30 programs were here, 10"))
    assert partly == MeasuredStart(seconds=110, compile_seconds=3.2, programs_cached=30, programs=40)


def test_a_restart_in_place_is_drawn_from_its_own_beginning() -> None:
    drawn = timeline("m[0]", "m-0-0", LOG, None)
    assert drawn is not None
    reading = drawn.reading
    assert (reading.phases[0].began, reading.seconds) == (0, 110)
    assert all(0 <= phase.began <= reading.seconds and (phase.seconds or 0) >= 0 for phase in reading.phases)


PROGRESS = """\
2026-11-27T22:00:00Z starting: Starting the container
2026-11-27T22:00:31Z starting: Loading safetensors checkpoint shards: 0% Completed
2026-11-27T22:10:50Z starting: Compiling graph 188
  | (APIServer pid=1) INFO 11-27 22:00:05 [api_utils.py:273] non-default args: {'model_tag': 'm'}
  | (EngineCore pid=327) INFO 11-27 22:10:55 [core.py:348] init engine (profile, create kv cache, warmup model) took 600.00 s (compilation: 393.98 s)
  | (APIServer pid=1) INFO 11-27 22:11:00 [api_server.py:682] Starting vLLM server on http://0.0.0.0:8000
  | (APIServer pid=1) INFO:     Application startup complete.
2026-11-27T22:11:05Z serving: Healthy, and completed a prompt
"""


def test_without_the_scripts_count_jax_tells_what_was_in_the_cache() -> None:
    looked_up = "\n".join(
        ["Persistent compilation cache hit for 'jit_f'"] * 2 + ["PERSISTENT COMPILATION CACHE MISS for 'jit_g'"]
    )
    start = last_start(LOG.partition("2026-08-10T18:02:00Z")[0] + looked_up)
    assert start == MeasuredStart(seconds=110, compile_seconds=3.2, programs_cached=2, programs=3)


def test_without_the_scripts_lines_a_start_begins_with_the_servers_arguments() -> None:
    bare = "\n".join(line for line in LOG.splitlines() if "Starting the container" not in line)
    assert last_start(bare) == MeasuredStart(seconds=90, compile_seconds=3.2, programs_cached=40, programs=40)


def test_progress_lines_of_the_machine_are_not_the_beginning_of_a_start() -> None:
    assert last_start(PROGRESS) == MeasuredStart(seconds=660, compile_seconds=393.98)


def test_a_log_in_another_time_zone_begins_with_its_container() -> None:
    elsewhere = PROGRESS.replace("INFO 11-27 22:", "INFO 11-28 07:")
    assert last_start(elsewhere) == MeasuredStart(seconds=655, compile_seconds=393.98)


def test_the_server_of_several_hosts_starts_in_a_container_that_runs_already() -> None:
    start = last_start(PROGRESS.replace("Starting the container", "Starting the server"))
    assert start == MeasuredStart(seconds=660, compile_seconds=393.98)


def test_a_start_shorter_than_its_compilation_is_no_figure() -> None:
    assert last_start(PROGRESS.replace("compilation: 393.98", "compilation: 3939.8")) is None


def test_without_a_log_the_machines_own_report_tells_the_start() -> None:
    report = BootReport(
        phase=BootPhase.SERVING,
        timeline="booted 100\nstarting 140\nserving 900\nstarting 1000\nserving 1497",
        cache="miss: 0 programs were here, 40 were compiled anew",
    )
    assert reported_start(report) == MeasuredStart(seconds=497, programs_cached=0, programs=40)
    assert reported_start(BootReport(phase=BootPhase.SERVING)) is None
    assert reported_start(replace(report, cache="")) == MeasuredStart(seconds=497)
    assert reported_start(replace(report, cache="hit: 30 programs were here, 10 were compiled anew")) == MeasuredStart(
        seconds=497, programs_cached=30, programs=40
    )


@pytest.mark.parametrize(
    ("account", "seconds"),
    [
        ("starting 140\nserving 140", 0),
        pytest.param("starting 140", None, id="it does not serve yet"),
        pytest.param("serving 900", None, id="when it began is not in it"),
        pytest.param("starting 140\nserving 900\nstarting 1000", None, id="the next container starts"),
        pytest.param("starting 140\nserving soon", None, id="a row that is no time"),
    ],
)
def test_a_start_is_reported_once_its_container_serves(account: str, seconds: float | None) -> None:
    start = reported_start(BootReport(phase=BootPhase.SERVING, timeline=account))
    assert (None if start is None else start.seconds) == seconds
