"""Build the documents that `--json` prints and that agent tools return."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tpudeploy.domain.benchmark import Run
    from tpudeploy.domain.errors import TpudeployError
    from tpudeploy.domain.orphans import Orphans
    from tpudeploy.domain.plan import Plan
    from tpudeploy.domain.report import Report
    from tpudeploy.planning.deviation import Deviation

Document = dict[str, object]


def text(document: Mapping[str, object]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)


def replica_runs(runs: Iterable[Run]) -> Document:
    """Return the whole run of each replica that `bench` measured."""
    from tpudeploy.benchmark.runfile import dumps

    return {"format": "tpudeploy.replica-runs/1", "runs": [json.loads(dumps(run)) for run in runs]}


def gc(garbage: Orphans, report: Report | None, error: TpudeployError | None) -> Document:
    """Return the orphans, the report of their removal, and the error that stopped it; either may be null."""
    report_document = None if report is None else report.to_dict()
    return {**garbage.to_dict(), "report": report_document, "error": None if error is None else error.to_dict()}


def completion(shell: str, script: str) -> Document:
    return {"format": "tpudeploy.completion/1", "shell": shell, "script": script}


def shipped_profiles(names: Iterable[str]) -> Document:
    return {"format": "tpudeploy.profiles/1", "profiles": list(names)}


def emulator(environment: Mapping[str, str]) -> Document:
    """Return the variables that send every Google call to the emulator."""
    return {"format": "tpudeploy.emulator/1", "environment": dict(environment)}


def router(name: str, restarts: int) -> Document:
    """Return how often the router was started again, once it has ended."""
    return {"format": "tpudeploy.router/1", "name": name, "restarts": restarts}


def dashboard(url: str) -> Document:
    """Return the address of the page, with its token."""
    return {"format": "tpudeploy.dashboard/1", "url": url}


def pipeline(
    does: str,
    *,
    plan: Plan | None = None,
    report: Report | None = None,
    deviations: Iterable[Deviation] = (),
    unknown: Mapping[str, TpudeployError] | None = None,
    message: str = "",
) -> Document:
    """Return what `ci` did, or why there was nothing to do; the process's exit code says how it ended."""
    return {
        "format": "tpudeploy.ci/1",
        "does": does,
        "message": message,
        "plan": None if plan is None else plan.to_dict(),
        "report": None if report is None else report.to_dict(),
        "deviations": [{"name": deviation.name, "kind": deviation.kind} for deviation in deviations],
        "unknown": [{"name": name, "error": error.to_dict()} for name, error in (unknown or {}).items()],
    }
