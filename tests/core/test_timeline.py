"""Which parts of a start made it take so long, and what a machine's own account of it says."""

from __future__ import annotations

from boot_log.test_reading import SIDE_BY_SIDE

from tpudeploy.boot_log.starts import timeline
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
    assert [phase.name for phase in boot.critical] == ["docker", "image", "imports", "weights"]
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
