"""The reports of several hosts are one: as far as the host that is least far, and failed if one of them has."""

from __future__ import annotations

from typing import Any

import pytest

from tpudeploy.adapters.google.reports import of_slice
from tpudeploy.domain.slices import BootPhase, BootReport

BOOTED, STARTING, SERVING, FAILED = BootPhase.BOOTED, BootPhase.STARTING, BootPhase.SERVING, BootPhase.FAILED


def report(worker: int | None, phase: BootPhase, detail: str = "", **facts: Any) -> BootReport:
    return BootReport(worker=worker, phase=phase, detail=detail, **facts)


@pytest.mark.parametrize(
    ("reports", "phase", "detail"),
    [
        pytest.param(
            [report(0, STARTING, "Compiling"), report(1, STARTING, "Waiting")],
            STARTING,
            "Compiling",
            id="equally far: worker 0 speaks",
        ),
        pytest.param(
            [report(1, BOOTED, "Starting"), report(0, SERVING)],
            BOOTED,
            "worker 1 of 2: Starting",
            id="in any order, by the number in the report",
        ),
        pytest.param(
            [report(0, SERVING), report(1, SERVING), None],
            BOOTED,
            "worker 2 of 3: it has not reported yet",
            id="one that has not reported is the least far",
        ),
        pytest.param([None, report(1, STARTING)], BOOTED, "it has not reported yet", id="nor has worker 0"),
        pytest.param(
            [report(0, BOOTED), None, report(2, FAILED, "no disk")],
            FAILED,
            "worker 2 of 3: no disk",
            id="one that failed is worse than one that is missing",
        ),
        pytest.param(
            [report(0, FAILED, "lost worker 1", failed_at=70), report(1, FAILED, "no disk", failed_at=60)],
            FAILED,
            "worker 1 of 2: no disk",
            id="of several that failed, the first has the cause",
        ),
        pytest.param(
            [report(0, STARTING, change="2"), report(1, FAILED, "no head", change="1", failed_at=60)],
            BOOTED,
            "worker 1 of 2: it has not picked up the change yet",
            id="one that failed before the change that worker 0 works on",
        ),
        pytest.param(
            [report(0, STARTING, change="2"), report(1, FAILED, "no head", change="2", failed_at=60)],
            FAILED,
            "worker 1 of 2: no head",
            id="one that failed in the change that worker 0 works on",
        ),
        pytest.param(
            [report(0, STARTING), None, report(None, FAILED, "no rank")],
            FAILED,
            "worker 2 of 3: no rank",
            id="one that failed before it had found its number, by its place in the answer",
        ),
        pytest.param(
            [report(1, STARTING), report(None, FAILED, "no rank")],
            FAILED,
            "no rank",
            id="or in the place that is free",
        ),
    ],
)
def test_a_slice_is_as_far_as_its_least_host(reports: list[BootReport | None], phase: BootPhase, detail: str) -> None:
    whole = of_slice(reports)
    assert whole is not None
    assert (whole.phase, whole.detail) == (phase, detail)
    assert [each and each.worker for each in whole.workers] == [
        number if any(each and each.worker == number for each in reports) else None for number in range(len(reports))
    ]
    assert sum(each is None for each in whole.workers) == reports.count(None)


def test_what_a_slice_says_of_its_server_is_what_worker_0_says() -> None:
    head = report(0, SERVING, spec="new", change="7", answer="Hello", undone="6", cause="because")
    whole = of_slice([report(1, STARTING, spec="old", change="3"), head])
    assert whole is not None
    assert (whole.spec, whole.change, whole.answer, whole.undone, whole.cause) == ("new", "7", "Hello", "6", "because")


def test_a_change_that_all_hosts_undid_failed_because_of_the_first_of_them() -> None:
    head = report(0, SERVING, undone="6", cause="lost worker 1", failed_at=70)
    whole = of_slice([head, report(1, SERVING, undone="6", cause="no disk", failed_at=60)])
    assert whole is not None
    assert (whole.undone, whole.cause) == ("6", "worker 1 of 2: no disk")
    other = of_slice([head, report(1, SERVING, undone="5", cause="no disk", failed_at=30)])
    assert other is not None
    assert other.cause == "lost worker 1", "what was undone before is another change"


def test_a_slice_of_which_no_host_has_reported_has_no_report() -> None:
    assert of_slice([None, None]) is None
    assert of_slice([None]) is None


def test_one_host_is_its_own_slice() -> None:
    alone = report(None, STARTING, "Compiling")
    assert of_slice([alone]) is alone
