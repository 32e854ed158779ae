"""Boot reports, which machines write into their guest attributes, read no more often than Google's limit allows.

Google allows about ten queries of a VM's guest attributes per minute, writes and reads together; above that, it may
drop what is being written. The machine itself makes four per minute, six at worst (templates/boot/report.sh). The
other four are for readers. A run of ours is one reader: it reads each machine at most every 15 s.

Why: decision 55 in docs/decisions.md.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from tpudeploy.adapters.google.translate import Absent, PreconditionFailed, translate_errors
from tpudeploy.domain import errors
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import BootPhase, BootReport, SliceRef
from tpudeploy.ports import Clock

NAMESPACE = "tpudeploy"
READ_EVERY = 15.0  # seconds
_REPORT = "report"
_PHASES = frozenset(phase.value for phase in BootPhase)


class BootReports:
    """Reads the reports of machines, and answers from what it read within the last `READ_EVERY` seconds."""

    def __init__(self, clock: Clock, query: Callable[[SliceRef], Mapping[str, Any]]) -> None:
        """Use `query` to read the guest attributes of our namespace, in Google's form."""
        self._clock = clock
        self._send_query = query
        self._reports: dict[tuple[str, Zone, str], tuple[float, BootReport | None]] = {}
        self._lock = threading.Lock()

    def read(self, ref: SliceRef) -> BootReport | None:
        """Return the machine's report, or None where it has not written one or cannot. Raise `errors.Fault`."""
        now = self._clock.now()
        machine = _machine(ref)
        with self._lock:
            read_at, report = self._reports.get(machine, (None, None))
        if read_at is not None and 0 <= now - read_at < READ_EVERY:
            return report
        report = self._query(ref)
        with self._lock:
            self._reports[machine] = (now, report)
        return report

    def forget(self, ref: SliceRef) -> None:
        """Discard the cached report, so that the next `read` queries the machine."""
        with self._lock:
            self._reports.pop(_machine(ref), None)

    def _query(self, ref: SliceRef) -> BootReport | None:
        # That TPU VMs allow writes of guest attributes is unverified, so a missing report is an answer.
        try:
            with translate_errors(f"read the report of {ref.name}"):
                response = self._send_query(ref)
        except (Absent, PreconditionFailed, errors.Refused, errors.Denied):
            return None
        return of_slice([parse(attributes) for attributes in _attributes(response)])


def _machine(ref: SliceRef) -> tuple[str, Zone, str]:
    return ref.project, ref.zone, ref.name


def parse(attributes: Mapping[str, str]) -> BootReport | None:
    """Return the report in the attributes of our namespace, or None where they hold no known phase.

    A report is one attribute. Earlier scripts wrote one attribute per fact, and machines that booted with them still
    run them. Where both exist, the report by the script that last started a container counts.
    """
    report = _facts(attributes.get(_REPORT, ""))
    older = _older_facts(attributes)
    facts = report or older
    if report and (_number(older.get("started")) or 0) > (_number(report.get("at")) or 0):
        facts = older
    if facts.get("phase") not in _PHASES:
        return None
    return BootReport(
        phase=BootPhase(facts["phase"]),
        detail=facts.get("detail", ""),
        spec=facts.get("spec", ""),
        answer=facts.get("answer", ""),
        started=_number(facts.get("started")),
        pulled=_number(facts.get("pulled")),
        change=facts.get("change", ""),
        undone=facts.get("undone", ""),
        cause=facts.get("cause", ""),
        timeline=facts.get("timeline", ""),
        cache=facts.get("cache", ""),
        worker=_number(facts.get("worker")),
        failed_at=_number(facts.get("failed_at")),
        preempted_at=_number(facts.get("preempted")),
        loaded=facts.get("loaded", ""),
        unended=facts.get("unended", ""),
        at=_number(facts.get("at")),
        used_at=_number(facts.get("used")),
        served_at=_number(facts.get("served")),
    )


def of_slice(reports: Sequence[BootReport | None]) -> BootReport | None:
    """Return the report of a slice, from those of its hosts in any order.

    A slice is as far as the host that is least far, and has failed if one of them has. Of those that failed, the first
    one has the cause: the others lose it, and fail for that reason.
    """
    if len(reports) == 1:
        return reports[0]
    workers = _by_worker(reports)
    if not any(workers):
        return None
    head = workers[0] or BootReport(phase=BootPhase.BOOTED)
    phase, detail = _least_progress(workers)
    notices = [each.preempted_at for each in workers if each is not None and each.preempted_at is not None]
    return replace(
        head,
        phase=phase,
        detail=detail,
        cause=_cause_of_undone_change(head, workers),
        worker=None,
        workers=workers,
        # Google takes back all hosts of a slice or none.
        preempted_at=max(notices, default=None),
    )


def _by_worker(reports: Sequence[BootReport | None]) -> tuple[BootReport | None, ...]:
    """Return the report of each worker, worker 0 first.

    That the answer of Google has an element for each worker is documented; its order is not, so each report has its
    number. One of a host that has not found its number takes its place in the answer, or the first one that is free.
    """
    by_worker = {report.worker: report for report in reports if report is not None and report.worker is not None}
    for place, report in enumerate(reports):
        if report is not None and report.worker is None:
            free = [number for number in range(len(reports)) if number not in by_worker]
            by_worker[place if place in free else free[0]] = report
    return tuple(by_worker.get(number) for number in range(len(reports)))


def _least_progress(workers: Sequence[BootReport | None]) -> tuple[BootPhase, str]:
    """Return the phase and the detail of the worker that is least far."""
    head = workers[0]
    workers = [each if head is None else _without_earlier_failure(each, head.change) for each in workers]
    number, report = min(enumerate(workers), key=lambda pair: (_progress(pair[1]), _failed_at(pair[1]), pair[0]))
    phase, detail = BootPhase.BOOTED, "it has not reported yet"
    if report is not None:
        phase, detail = report.phase, report.detail
    # The slice is known by its head, so only another worker is named.
    if number == 0:
        return phase, detail
    return phase, f"worker {number} of {len(workers)}: {detail or phase}"


def _without_earlier_failure(report: BootReport | None, change: str) -> BootReport | None:
    """Return a report without the failure of an earlier change than the one that worker 0 works on.

    Each host picks up a change by itself: until a failed one does, its last report is about the start before.
    """
    if report is None or report.phase is not BootPhase.FAILED or report.change == change:
        return report
    return replace(report, phase=BootPhase.BOOTED, detail="it has not picked up the change yet", failed_at=None)


def _cause_of_undone_change(head: BootReport, workers: Sequence[BootReport | None]) -> str:
    """Return why the change that the head undid failed, from the worker where it failed first."""
    # Most boots undo nothing. Then no worker has a cause to compare with the head's.
    if not head.undone:
        return head.cause
    # Only the workers that undid the same change count. The head is one of them.
    undone = [(n, each) for n, each in enumerate(workers) if each is not None and each.undone == head.undone]
    number, report = min(undone, key=lambda pair: (_failed_at(pair[1]), pair[0]))
    return report.cause if number == 0 else f"worker {number} of {len(workers)}: {report.cause}"


def _failed_at(report: BootReport | None) -> float:
    """Return when the work of a host last failed, or infinity if that is not known."""
    return inf if report is None or report.failed_at is None else report.failed_at


def _progress(report: BootReport | None) -> int:
    """Return how far a host is: a failure is worst, and a host that has not reported is the least far."""
    if report is None:
        return 1
    return 0 if report.phase is BootPhase.FAILED else 2 + tuple(BootPhase).index(report.phase)


def _attributes(response: Mapping[str, Any]) -> list[Mapping[str, str]]:
    """Return the attributes of each host in an answer: of the workers of a node, or of one instance."""
    return [
        {
            str(item.get("key")): str(item.get("value", ""))
            for item in worker.get("queryValue", {}).get("items", ())
            if item.get("namespace") == NAMESPACE
        }
        for worker in response.get("guestAttributes", (response,))
    ]


def _facts(text: str) -> Mapping[str, str]:
    """Return the facts in a report; none if it is cut off or not a JSON object."""
    try:
        tree = json.loads(text, strict=False)
    except ValueError:
        return {}
    return {str(key): str(value) for key, value in tree.items()} if isinstance(tree, dict) else {}


def _older_facts(attributes: Mapping[str, str]) -> Mapping[str, str]:
    """Return an earlier script's facts. It wrote an undone change and its cause as one attribute."""
    undone, _, cause = attributes.get("undone", "").partition(" ")
    return {**attributes, "undone": undone, "cause": cause}


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
