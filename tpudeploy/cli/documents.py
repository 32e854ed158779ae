"""The documents that `--json` prints, and that an agent is answered with: each is made here, once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from tpudeploy.domain.draft import Draft, NoDraft
from tpudeploy.domain.tree import tree

if TYPE_CHECKING:
    from pathlib import Path

    from tpudeploy.adapters.vllm_client import Completion
    from tpudeploy.core.ab.proposal import Proposal
    from tpudeploy.core.ab.result import Result
    from tpudeploy.core.accuracy.sheet import Sheet
    from tpudeploy.core.accuracy.verdict import Verdict
    from tpudeploy.core.deviation import Deviation
    from tpudeploy.core.sizing.sweep import Sweep
    from tpudeploy.domain.attestation import Verification
    from tpudeploy.domain.benchmark import Run
    from tpudeploy.domain.bootlog import Reading
    from tpudeploy.domain.comparison import Comparison
    from tpudeploy.domain.deployment import Deployment
    from tpudeploy.domain.details import Details
    from tpudeploy.domain.diagnosis import Diagnosis
    from tpudeploy.domain.diagnostics import Diagnostic
    from tpudeploy.domain.errors import TpudeployError
    from tpudeploy.domain.garbage import Garbage
    from tpudeploy.domain.gates import Zones
    from tpudeploy.domain.metrics import Metrics
    from tpudeploy.domain.plan import Plan
    from tpudeploy.domain.recommendation import OperatingPoint, Recommendation
    from tpudeploy.domain.report import Report
    from tpudeploy.domain.status import DeploymentStatus
    from tpudeploy.domain.timeline import Timeline

Document = dict[str, object]


def text(of: Mapping[str, object]) -> str:
    return json.dumps(of, indent=2, ensure_ascii=False)


def status(found: Iterable[DeploymentStatus], *, emulated: bool) -> Document:
    return {"format": "tpudeploy.status/1", "emulated": emulated, "deployments": [d.to_dict() for d in found]}


def details(found: Iterable[Details]) -> Document:
    """What `status --details` adds."""
    return {"details": [d.to_dict() for d in found]}


def timelines(found: Iterable[Timeline]) -> Document:
    """What `status --timeline` adds."""
    return {"timelines": [t.to_dict() for t in found]}


def zones(found: Iterable[Zones], *, emulated: bool) -> Document:
    return {"format": "tpudeploy.zones/1", "emulated": emulated, "tables": [t.to_dict() for t in found]}


def doctor(found: Diagnosis, *, emulated: bool) -> Document:
    return {"format": "tpudeploy.doctor/1", "emulated": emulated, **found.to_dict()}


def comparison(found: Comparison) -> Document:
    """With every cell that is compared, and of each run all but its cells."""
    told = tree(found)
    told["runs"] = [{**each, "cells": len(each["cells"])} for each in told["runs"]]
    return {"format": "tpudeploy.comparison/1", **told}


def ab(found: Result) -> Document:
    """What an A/B came to, with every effect; its runs by their ids."""
    return {"format": "tpudeploy.ab/1", **found.to_dict()}


def ab_proposal(found: Proposal) -> Document:
    """What an A/B is going to do; seconds and USD are null where they cannot be predicted."""
    experiment = found.experiment
    return {
        "format": "tpudeploy.ab_proposal/1",
        "id": experiment.id,
        "deployment": experiment.deployment,
        "path": experiment.path,
        "a": experiment.a.value,
        "b": experiment.b.value,
        "turns": [side for _, side in found.turns],
        "restarts": found.restarts,
        "silent_seconds_least": found.least,
        "silent_seconds_most": found.most,
        "seconds": found.seconds,
        "usd": found.usd,
        "questions": experiment.questions,
        "diagnostics": tree(found.diagnostics),
    }


def operating(run: Run, found: Mapping[tuple[int, int], Iterable[OperatingPoint]]) -> Document:
    """The operating points of each load of a run."""
    loads = [
        {"context_tokens": context, "output_tokens": output, "points": [tree(each) for each in points]}
        for (context, output), points in found.items()
    ]
    emulated = run.subject.is_emulated
    return {"format": "tpudeploy.operating/1", "run": run.id, "emulated": emulated, "loads": loads}


def recommendation(found: Recommendation, profile: str | None) -> Document:
    """With the profile for the best choice, as YAML."""
    return {"format": "tpudeploy.recommendation/1", **tree(found), "profile": profile}


def verify(found: Verification) -> Document:
    return {"format": "tpudeploy.verify/1", **found.to_dict()}


def size(of: Deployment, diagnostics: Iterable[Diagnostic], swept: Sweep | None) -> Document:
    told: Document = {"format": "tpudeploy.size/1", "name": of.name, **of.budget.to_dict()}
    told["diagnostics"] = [asdict(d) for d in diagnostics]
    if swept is not None:
        told["sweep"] = {
            "best": [option.to_dict() for option in swept.best],
            "failures": [asdict(failure) for failure in swept.failures],
            "tried": swept.tried,
        }
    return told


def logs(readings: Mapping[str, Reading], addresses: Mapping[str, str] | None = None) -> Document:
    """`readings` by the name of their slice, or file; `addresses` are those of the replicas, by slice."""
    replicas = addresses or {}
    trees = [{"log": n, "replica": replicas.get(n), **reading.to_dict()} for n, reading in readings.items()]
    return {"format": "tpudeploy.logs/1", "logs": trees}


def draft(of: Draft | NoDraft | None) -> Document:
    """What `logs --ask` adds; nothing where nobody was asked."""
    if of is None:
        return {}
    is_there = isinstance(of, Draft)
    return {"draft": of.to_dict() if is_there else None, "no_draft": None if is_there else of.to_dict()}


def replica_runs(found: Iterable[Run]) -> Document:
    """What `bench` measured of several replicas: a run each, whole."""
    from tpudeploy.core.bench.runfile import dumps

    return {"format": "tpudeploy.replica-runs/1", "runs": [json.loads(dumps(run)) for run in found]}


def runs(found: Iterable[Run]) -> Document:
    """Without their cells, but with how many there are."""
    trees = [{**tree(run), "cells": len(run.cells)} for run in found]
    return {"format": "tpudeploy.runs/1", "runs": trees}


def metrics(found: Metrics) -> Document:
    return {"format": "tpudeploy.metrics/1", **found.to_dict()}


def answer(of: Completion) -> Document:
    """A completion with its speed; a rate is null where no time passed."""
    return {
        "format": "tpudeploy.query/1",
        "answer": of.text,
        "ttft_seconds": round(of.seconds_to_first, 4),
        "total_seconds": round(of.seconds, 4),
        "prompt_tokens": of.prompt_tokens,
        "completion_tokens": of.completion_tokens,
        "tokens_per_second": rate(of.tokens_per_second),
        "tokens_per_second_after_first": rate(of.tokens_per_second_then),
    }


def gc(found: Garbage, report: Report | None, error: TpudeployError | None) -> Document:
    """What nothing needs, what came of removing it, and what stopped that; both null where there is none."""
    removed = None if report is None else report.to_dict()
    return {**found.to_dict(), "report": removed, "error": None if error is None else error.to_dict()}


def output(name: str, outputs: Mapping[str, object]) -> Document:
    """The outputs of one deployment, or the one that was named."""
    return {"format": "tpudeploy.output/1", "name": name, **outputs}


def outputs(found: Mapping[str, Mapping[str, object]]) -> Document:
    """The outputs of every deployment that has an endpoint."""
    return {"format": "tpudeploy.outputs/1", "deployments": [{"name": name, **each} for name, each in found.items()]}


def files(paths: Iterable[Path]) -> Document:
    """What a command wrote."""
    return {"format": "tpudeploy.files/1", "files": [str(path) for path in paths]}


def version(tpudeploy: str, vllm: str) -> Document:
    return {"format": "tpudeploy.version/1", "tpudeploy": tpudeploy, "vllm": vllm}


def completion(shell: str, script: str) -> Document:
    return {"format": "tpudeploy.completion/1", "shell": shell, "script": script}


def shipped(names: Iterable[str]) -> Document:
    return {"format": "tpudeploy.profiles/1", "profiles": list(names)}


def render(name: str, what: str, text: str, content: object) -> Document:
    """`content` are the values of a text that is JSON; null where it is not."""
    return {"format": "tpudeploy.render/1", "name": name, "what": what, "text": text, "content": content}


def alerts(text: str, remarks: Iterable[str]) -> Document:
    return {"format": "tpudeploy.alerts/1", "text": text, "remarks": list(remarks)}


def explanation(code: str, text: str) -> Document:
    return {"format": "tpudeploy.explanation/1", "code": code, "title": text.partition("\n")[0], "text": text}


def explanations(groups: Mapping[str, Mapping[str, str]]) -> Document:
    """Every code with its title, by where it comes from."""
    listed = [
        {"name": name, "codes": [{"code": code, "title": text.partition("\n")[0]} for code, text in texts.items()]}
        for name, texts in groups.items()
    ]
    return {"format": "tpudeploy.explanations/1", "groups": listed}


def unlocked(name: str, id_: str) -> Document:
    return {"format": "tpudeploy.unlock/1", "name": name, "id": id_}


def emulator(environment: Mapping[str, str]) -> Document:
    """The variables that send every Google call to the emulator."""
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
    """What `ci` did, or why there was nothing to do; `exit_code` of the process says how it ended."""
    return {
        "format": "tpudeploy.ci/1",
        "does": does,
        "message": message,
        "plan": None if plan is None else plan.to_dict(),
        "report": None if report is None else report.to_dict(),
        "deviations": [{"name": each.name, "kind": each.kind} for each in deviations],
        "unknown": [{"name": name, "error": error.to_dict()} for name, error in (unknown or {}).items()],
    }


def rate(of: float | None) -> float | None:
    return None if of is None else round(of, 2)


def accuracy(before: Sheet | None, after: Sheet, found: Verdict | None) -> Document:
    """What servers had right, without their answers: those are in the files that `id` names."""
    tree: Document = {"format": "tpudeploy.accuracy/1", "after": _sheet(after)}
    if before is not None and found is not None:
        tree |= {"before": _sheet(before), "verdict": found.to_dict()}
    return tree


def _sheet(of: Sheet) -> Document:
    return {
        "id": of.id,
        "deployment": of.deployment,
        "url": of.url,
        "model": of.model,
        "questions": of.terms.questions,
        "asked": len(of.answers),
        "right": of.right,
        "unanswered": of.unanswered,
        "cut": of.cut,
        "concurrency": of.concurrency,
        "max_tokens": of.terms.max_tokens,
    }
