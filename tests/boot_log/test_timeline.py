"""Which parts of a start made it take so long, and what a machine's own account of it says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from boot_log.test_reading import SIDE_BY_SIDE

from tpudeploy.boot_log.reading import StartPhase
from tpudeploy.boot_log.starts import critical_path, timeline
from tpudeploy.domain.slices import BootPhase, BootReport

ACCOUNT = """\
booted 100
docker 100
secrets 105
secrets 105 106
image 106
mirror 105 165
image 105 405
starting 405
starting 450
serving 480
"""


def test_the_longest_way_leaves_out_what_ran_beside_it() -> None:
    boot = timeline("gemma[0]", "slice", SIDE_BY_SIDE, None)
    assert boot is not None
    assert [phase.name for phase in boot.critical] == ["docker", "image", "container", "imports", "weights"]
    assert boot.is_whole


def test_the_machines_own_account_tells_the_same_of_what_it_gathered() -> None:
    boot = timeline("gemma[0]", "slice", "", _report(ACCOUNT))
    assert boot is not None
    assert {p.name: (p.began, p.seconds) for p in boot.reading.phases} == {
        "docker": (0, 5),
        "secrets": (5, 1),
        "mirror": (5, 60),
        "image": (5, 300),
        "container": (305, 75),
    }
    assert [phase.name for phase in boot.critical] == ["docker", "image", "container"]
    assert not boot.is_whole


RESTARTED = f"""\
{ACCOUNT}image 9000
image 9000 9004
starting 9004
starting 9050
serving 9100
"""


def test_a_restart_in_place_is_a_start_of_its_own_in_the_machines_account() -> None:
    boot = timeline("gemma[0]", "slice", "", _report(RESTARTED))
    assert boot is not None
    assert {p.name: (p.began, p.seconds) for p in boot.reading.phases} == {"image": (0, 4), "container": (4, 96)}
    assert boot.reading.seconds == 100
    assert boot.reading.is_serving


def test_a_restart_under_way_shows_nothing_of_the_boot_before() -> None:
    boot = timeline("gemma[0]", "slice", "", _report(RESTARTED.partition("serving 9100")[0]))
    assert boot is not None
    assert {p.name: (p.began, p.seconds) for p in boot.reading.phases} == {"image": (0, 4), "container": (4, None)}
    assert not boot.reading.is_serving


RESTART_LOG = """\
2026-11-21T12:00:00Z image: Pulling it
2026-11-21T12:00:20Z image: done in 20 s
2026-11-21T12:00:20Z starting: Starting the container
  | INFO 11-21 12:00:30 [api_utils.py:273] non-default args: {'model_tag': 'm'}
  | INFO 11-21 12:00:40 [model_loader.py:625] Loading model with MODEL_IMPL_TYPE=auto
  | INFO 11-21 12:01:10 [api_server.py:682] Starting vLLM server on http://0.0.0.0:8000
2026-11-21T12:01:20Z serving: Healthy, and completed a prompt
"""


def test_a_restart_in_place_is_a_start_of_its_own_in_the_log() -> None:
    access = '  | INFO 11-21 11:59:59 [launcher.py:9] 10.0.0.1:80 - "GET /health HTTP/1.1" 200 OK\n'
    boot = timeline("gemma[0]", "slice", SIDE_BY_SIDE + access + RESTART_LOG, None)
    assert boot is not None
    phases = {p.name: (p.began, p.seconds) for p in boot.reading.phases}
    began = phases["image"][0]
    assert {name: (at - began, seconds) for name, (at, seconds) in phases.items()} == {
        "image": (0, 20),
        "container": (20, 10),
        "imports": (30, 10),
        "weights": (40, 30),
    }
    assert boot.reading.seconds <= 80


def test_a_part_that_never_ended_is_shown_as_unfinished() -> None:
    boot = timeline("gemma[0]", "slice", "", _report("booted 100\ndocker 100\nimage 103\n"))
    assert boot is not None
    assert {p.name: p.seconds for p in boot.reading.phases} == {"docker": 3, "image": None}
    assert not boot.reading.is_serving


def test_words_that_are_none_of_ours_draw_nothing() -> None:
    assert timeline("gemma[0]", "slice", "", _report("image a b\n\nimage -1 2\n x")) is None
    assert timeline("gemma[0]", "slice", "", None) is None


def _report(account: str) -> BootReport:
    return BootReport(phase=BootPhase.SERVING, timeline=account)


def test_a_timeline_names_its_machine_and_what_its_cache_had() -> None:
    boot = timeline("gemma[0]", "slice", "", replace(_report(ACCOUNT), cache="hit: 40 programs were here"))
    assert boot is not None
    assert (boot.address, boot.slice_name, boot.cache) == ("gemma[0]", "slice", "hit: 40 programs were here")
    assert (boot.reading.graphs, boot.reading.seconds) == (0, 380)
    logged = timeline("gemma[0]", "slice", SIDE_BY_SIDE, None)
    assert logged is not None
    assert (logged.address, logged.slice_name, logged.cache) == ("gemma[0]", "slice", "")
    assert timeline("gemma[0]", "slice", "", None) is None


@pytest.mark.parametrize(("ends", "is_waited_for"), [(20, True), (21, True), (22, False)])
def test_a_part_that_ends_a_second_after_the_next_began_may_have_been_waited_for(
    ends: int, *, is_waited_for: bool
) -> None:
    parts = [
        StartPhase(name="mirror", began=0, seconds=ends),
        StartPhase(name="secrets", began=0, seconds=3),
        StartPhase(name="container", began=20, seconds=10),
    ]
    path = [phase.name for phase in critical_path(parts)]
    assert path == (["mirror", "container"] if is_waited_for else ["secrets", "container"])
    assert critical_path([StartPhase(name="container", began=0, seconds=None)]) == ()
