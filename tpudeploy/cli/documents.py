"""Build the documents that `--json` prints and that agent tools return."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from tpudeploy.domain.boot_log import Draft, NoDraft
from tpudeploy.domain.serialization import to_json

if TYPE_CHECKING:
    from pathlib import Path

    from tpudeploy.ab_test.result import Result
    from tpudeploy.ab_test.turns import Proposal
    from tpudeploy.accuracy.sheet import Sheet
    from tpudeploy.adapters.vllm_client import Completion
    from tpudeploy.domain.accuracy import Verdict
    from tpudeploy.domain.availability import Zones
    from tpudeploy.domain.benchmark import Run
    from tpudeploy.domain.boot_log import Reading
    from tpudeploy.domain.comparison import Comparison
    from tpudeploy.domain.deployment import Deployment
    from tpudeploy.domain.diagnosis import Diagnosis
    from tpudeploy.domain.diagnostics import Diagnostic
    from tpudeploy.domain.errors import TpudeployError
    from tpudeploy.domain.metrics import Metrics
    from tpudeploy.domain.orphans import Orphans
    from tpudeploy.domain.plan import Plan
    from tpudeploy.domain.recommendation import OperatingPoint, Recommendation
    from tpudeploy.domain.report import Report
    from tpudeploy.domain.status import DeploymentStatus, Timeline
    from tpudeploy.domain.verify import Details, Verification
    from tpudeploy.planning.deviation import Deviation
    from tpudeploy.sizing.sweep import Sweep

Document = dict[str, object]


def text(document: Mapping[str, object]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)


def status(deployments: Iterable[DeploymentStatus], *, emulated: bool) -> Document:
    return {"format": "tpudeploy.status/1", "emulated": emulated, "deployments": [d.to_dict() for d in deployments]}


def details(details: Iterable[Details]) -> Document:
    """Return what `status --details` adds."""
    return {"details": [d.to_dict() for d in details]}


def timelines(timelines: Iterable[Timeline]) -> Document:
    """Return what `status --timeline` adds."""
    return {"timelines": [t.to_dict() for t in timelines]}


def zones(tables: Iterable[Zones], *, emulated: bool) -> Document:
    return {"format": "tpudeploy.zones/1", "emulated": emulated, "tables": [t.to_dict() for t in tables]}


def doctor(diagnosis: Diagnosis, *, emulated: bool) -> Document:
    return {"format": "tpudeploy.doctor/1", "emulated": emulated, **diagnosis.to_dict()}


def comparison(comparison: Comparison) -> Document:
    """Return a comparison with every compared cell; each run has the number of its cells instead of the cells."""
    document = to_json(comparison)
    document["runs"] = [{**run, "cells": len(run["cells"])} for run in document["runs"]]
    return {"format": "tpudeploy.comparison/1", **document}


def ab(result: Result) -> Document:
    """Return the result of an A/B with every effect; its runs are given by id."""
    return {"format": "tpudeploy.ab/1", **result.to_dict()}


def ab_proposal(proposal: Proposal) -> Document:
    """Return what an A/B will do; seconds and USD are null if they cannot be predicted."""
    experiment = proposal.experiment
    return {
        "format": "tpudeploy.ab_proposal/1",
        "id": experiment.id,
        "deployment": experiment.deployment,
        "path": experiment.path,
        "a": experiment.a.value,
        "b": experiment.b.value,
        "turns": [side for _, side in proposal.turns],
        "restarts": proposal.restarts,
        "silent_seconds_least": proposal.least,
        "silent_seconds_most": proposal.most,
        "seconds": proposal.seconds,
        "usd": proposal.usd,
        "questions": experiment.questions,
        "diagnostics": to_json(proposal.diagnostics),
    }


def operating(run: Run, loads: Mapping[tuple[int | None, int | None], Iterable[OperatingPoint]]) -> Document:
    """Return the operating points of each load of a run."""
    rows = [
        {"context_tokens": context, "output_tokens": output, "points": [to_json(point) for point in points]}
        for (context, output), points in loads.items()
    ]
    emulated = run.subject.is_emulated
    return {"format": "tpudeploy.operating/1", "run": run.id, "emulated": emulated, "loads": rows}


def recommendation(recommendation: Recommendation, profile: str | None) -> Document:
    """Return a recommendation with the profile for the best choice, as YAML."""
    return {"format": "tpudeploy.recommendation/1", **to_json(recommendation), "profile": profile}


def verify(verification: Verification) -> Document:
    return {"format": "tpudeploy.verify/1", **verification.to_dict()}


def size(deployment: Deployment, diagnostics: Iterable[Diagnostic], sweep: Sweep | None) -> Document:
    document: Document = {"format": "tpudeploy.size/1", "name": deployment.name, **deployment.budget.to_dict()}
    document["diagnostics"] = [asdict(d) for d in diagnostics]
    if sweep is not None:
        document["sweep"] = {
            "best": [option.to_dict() for option in sweep.best],
            "failures": [asdict(failure) for failure in sweep.failures],
            "tried": sweep.tried,
        }
    return document


def logs(readings: Mapping[str, Reading], addresses: Mapping[str, str] | None = None) -> Document:
    """Return the readings of logs by the name of their slice or file; `addresses` are the replicas of slices."""
    replicas = addresses or {}
    trees = [{"log": n, "replica": replicas.get(n), **reading.to_dict()} for n, reading in readings.items()]
    return {"format": "tpudeploy.logs/1", "logs": trees}


def draft(draft: Draft | NoDraft | None) -> Document:
    """Return what `logs --ask` adds; nothing if no model was asked."""
    if draft is None:
        return {}
    has_draft = isinstance(draft, Draft)
    return {"draft": draft.to_dict() if has_draft else None, "no_draft": None if has_draft else draft.to_dict()}


def replica_runs(runs: Iterable[Run]) -> Document:
    """Return the whole run of each replica that `bench` measured."""
    from tpudeploy.benchmark.runfile import dumps

    return {"format": "tpudeploy.replica-runs/1", "runs": [json.loads(dumps(run)) for run in runs]}


def runs(runs: Iterable[Run]) -> Document:
    """Return runs with the number of their cells instead of the cells."""
    trees = [{**to_json(run), "cells": len(run.cells)} for run in runs]
    return {"format": "tpudeploy.runs/1", "runs": trees}


def metrics(metrics: Metrics) -> Document:
    return {"format": "tpudeploy.metrics/1", **metrics.to_dict()}


def answer(completion: Completion) -> Document:
    """Return a completion with its speed; a rate is null if no time passed."""
    return {
        "format": "tpudeploy.query/1",
        "answer": completion.text,
        "ttft_seconds": round(completion.seconds_to_first, 4),
        "total_seconds": round(completion.seconds, 4),
        "prompt_tokens": completion.prompt_tokens,
        "completion_tokens": completion.completion_tokens,
        "tokens_per_second": rate(completion.tokens_per_second),
        "tokens_per_second_after_first": rate(completion.tokens_per_second_then),
    }


def gc(garbage: Orphans, report: Report | None, error: TpudeployError | None) -> Document:
    """Return the orphans, the report of their removal, and the error that stopped it; either may be null."""
    report_document = None if report is None else report.to_dict()
    return {**garbage.to_dict(), "report": report_document, "error": None if error is None else error.to_dict()}


def output(name: str, outputs: Mapping[str, object]) -> Document:
    """Return the outputs of one deployment, or one of them."""
    return {"format": "tpudeploy.output/1", "name": name, **outputs}


def outputs(deployments: Mapping[str, Mapping[str, object]]) -> Document:
    """Return the outputs of every deployment that has an endpoint."""
    return {
        "format": "tpudeploy.outputs/1",
        "deployments": [{"name": name, **values} for name, values in deployments.items()],
    }


def files(paths: Iterable[Path]) -> Document:
    """Return the paths of the files that a command wrote."""
    return {"format": "tpudeploy.files/1", "files": [str(path) for path in paths]}


def version(tpudeploy: str, vllm: str) -> Document:
    return {"format": "tpudeploy.version/1", "tpudeploy": tpudeploy, "vllm": vllm}


def completion(shell: str, script: str) -> Document:
    return {"format": "tpudeploy.completion/1", "shell": shell, "script": script}


def shipped_profiles(names: Iterable[str]) -> Document:
    return {"format": "tpudeploy.profiles/1", "profiles": list(names)}


def render(name: str, what: str, text: str, content: object) -> Document:
    """Return a rendered text. `content` holds the values of a JSON text, else null."""
    return {"format": "tpudeploy.render/1", "name": name, "what": what, "text": text, "content": content}


def alerts(text: str, remarks: Iterable[str]) -> Document:
    return {"format": "tpudeploy.alerts/1", "text": text, "remarks": list(remarks)}


def explanation(code: str, text: str) -> Document:
    return {"format": "tpudeploy.explanation/1", "code": code, "title": text.partition("\n")[0], "text": text}


def explanations(groups: Mapping[str, Mapping[str, str]]) -> Document:
    """Return every code with its title, by origin."""
    listed = [
        {"name": name, "codes": [{"code": code, "title": text.partition("\n")[0]} for code, text in texts.items()]}
        for name, texts in groups.items()
    ]
    return {"format": "tpudeploy.explanations/1", "groups": listed}


def unlock(name: str, id_: str) -> Document:
    return {"format": "tpudeploy.unlock/1", "name": name, "id": id_}


def emulator(environment: Mapping[str, str]) -> Document:
    """Return the variables that send every Google call to the emulator."""
    return {"format": "tpudeploy.emulator/1", "environment": dict(environment)}


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


def rate(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def accuracy(before: Sheet | None, after: Sheet, verdict: Verdict | None) -> Document:
    """Return the scores of servers, without their answers, which are in the files that `id` names."""
    tree: Document = {"format": "tpudeploy.accuracy/1", "after": _sheet(after)}
    if before is not None and verdict is not None:
        tree |= {"before": _sheet(before), "verdict": verdict.to_dict()}
    return tree


def _sheet(sheet: Sheet) -> Document:
    return {
        "id": sheet.id,
        "deployment": sheet.deployment,
        "url": sheet.url,
        "model": sheet.model,
        "questions": sheet.terms.questions,
        "asked": len(sheet.answers),
        "right": sheet.right,
        "unanswered": sheet.unanswered,
        "cut": sheet.cut,
        "concurrency": sheet.concurrency,
        "max_tokens": sheet.terms.max_tokens,
    }
