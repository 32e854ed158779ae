"""The JSON Schemas of the documents that commands print with --json, by the name in their `format`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tpudeploy.core.ab.result import Result
from tpudeploy.core.accuracy.verdict import Verdict
from tpudeploy.core.deviation import Kind
from tpudeploy.domain.benchmark import Run
from tpudeploy.domain.comparison import Comparison
from tpudeploy.domain.details import Details
from tpudeploy.domain.diagnosis import Diagnosis
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.garbage import Garbage
from tpudeploy.domain.gates import Zones
from tpudeploy.domain.metrics import Metered
from tpudeploy.domain.plan import Plan
from tpudeploy.domain.recommendation import OperatingPoint, Recommendation
from tpudeploy.domain.report import Report
from tpudeploy.domain.state import Attempt, Record, Written
from tpudeploy.domain.status import DeploymentStatus
from tpudeploy.views.schema_of import (
    ANYTHING,
    NUMBER,
    TEXT,
    TEXTS,
    TRUTH,
    WHOLE,
    As,
    Schema,
    document,
    list_of,
    mapping_of,
    nullable,
    object_of,
)

# A run in a list: its cells are counted, and not listed.
_COUNTED = {Run: As(adds={"cells": WHOLE}, drops=frozenset({"cells"}))}
_PHASE = object_of({"name": TEXT, "began": NUMBER, "seconds": nullable(NUMBER)})
_CAUSE = object_of({"signature": TEXT, "what": TEXT, "line": WHOLE, "text": TEXT, "process": TEXT, "remedy": TEXT})
_LOG = object_of(
    {
        "log": TEXT,
        "serving": TRUTH,
        "seconds": NUMBER,
        "phases": list_of(_PHASE),
        "graphs": WHOLE,
        "cause": nullable(_CAUSE),
        "notes": list_of(object_of({"line": WHOLE, "text": TEXT, "why": TEXT})),
    }
)
_TIMELINE = object_of(
    {
        "address": TEXT,
        "slice": TEXT,
        "serving": TRUTH,
        "seconds": NUMBER,
        "phases": list_of(_PHASE),
        "critical": TEXTS,
        "cache": TEXT,
        "whole": TRUTH,
    }
)
_DRAFT = object_of({"log": TEXT, "by": TEXT, "model": TEXT, "is_checked": {"const": False}, "text": TEXT})
_SETTING = object_of(
    {
        "replica": TEXT,
        "name": TEXT,
        "declared": TEXT,
        "effective": mapping_of(TEXT),
        "verdict": TEXT,
        "deviation": nullable(NUMBER),
    }
)
_OPTION = object_of(
    {
        **dict.fromkeys(("accelerator_type", "kv_cache_dtype"), TEXT),
        **dict.fromkeys(("tensor_parallel_size", "data_parallel_size", "max_model_len", "kv_cache_tokens"), WHOLE),
        **dict.fromkeys(("hbm_utilization", "max_concurrency", "cold_start_seconds"), NUMBER),
        "usd_per_hour": nullable(NUMBER),
    }
)
_SWEEP = object_of(
    {
        "best": list_of(_OPTION),
        "failures": list_of(object_of({"accelerator_type": TEXT, "settings": TEXT, "because": TEXT})),
        "tried": WHOLE,
    }
)
# Of a model that can be sized; where it cannot, `cannot_size_because` stands instead.
_BUDGET: Mapping[str, Schema] = {
    **dict.fromkeys(("model", "accelerator_type", "start_basis"), TEXT),
    **dict.fromkeys(("tensor_parallel_size", "data_parallel_size", "max_model_len", "block_size", "num_blocks"), WHOLE),
    **dict.fromkeys(("hbm_bytes_per_chip", "weights_bytes_per_chip", "kv_bytes_per_chip"), WHOLE),
    **dict.fromkeys(("kv_bytes_per_token_per_chip", "program_bytes_per_chip", "free_bytes_per_chip"), NUMBER),
    **dict.fromkeys(("kv_cache_tokens", "cold_start_seconds", "warm_start_seconds"), WHOLE),
    "max_concurrency": NUMBER,
    "weights": mapping_of(WHOLE),
    "precision": object_of({"weights": TEXT, "kv": TEXT, "compute": TEXT}),
    "token_buckets": list_of(WHOLE),
    "request_buckets": list_of(WHOLE),
    "graphs": object_of({"total": WHOLE, "by_category": mapping_of(WHOLE)}),
    "estimates": TEXTS,
    "cannot_size_because": TEXT,
    "at_least": nullable(ANYTHING),  # the budget without what only adds to the memory
    "sweep": _SWEEP,
}
_SHEET = object_of(
    {
        **dict.fromkeys(("id", "deployment", "url", "model"), TEXT),
        **dict.fromkeys(("asked", "right", "unanswered", "cut", "concurrency", "max_tokens"), WHOLE),
        "questions": TEXT,
    }
)
_OUTPUTS: Mapping[str, Schema] = {"endpoint": TEXT, "url": TEXT, "generation": WHOLE, "since": NUMBER}
_STATE = object_of({"deployment": TEXT, "lineage": TEXT, "serial": WHOLE})
_RESOURCE = object_of({"address": TEXT, "mode": TEXT, "type": TEXT, "name": TEXT, "index": WHOLE, "values": ANYTHING})
_CHECKED = {"file": TEXT, "valid": TRUTH, "diagnostics": tuple[Diagnostic, ...]}
_ERROR: Mapping[str, Any] = {
    "type": {"const": "error"},
    "code": TEXT,
    "exit_code": WHOLE,
    "message": TEXT,
    "hint": TEXT,
    "diagnostics": tuple[Diagnostic, ...],
}


def _kind(kind: str, keys: Mapping[str, Any] | None = None, **more: Any) -> Callable[[], Schema]:
    head = {"format": {"const": f"tpudeploy.{kind}/1"}}
    return lambda: document(f"tpudeploy {kind}", {**head, **(keys or {})}, **more)


def _of(kind: str, of: type, keys: Mapping[str, Any] | None = None, **more: Any) -> Callable[[], Schema]:
    """Of a document that is one class's `to_dict`, and what stands beside it."""
    return _kind(kind, keys, of=of, **more)


def _verb(name: str, keys: Mapping[str, Schema]) -> Schema:
    return object_of({"format": {"const": "tpudeploy.state-change/1"}, "type": {"const": name}, **keys})


def _state_changes() -> Schema:
    forgotten = object_of({"deployment": TEXT, "forgotten": TEXTS})
    verbs = [
        _verb("mv", {"source": TEXT, "target": TEXT}),
        _verb("rm", {"changes": list_of(forgotten), "is_dry_run": TRUTH}),
        _verb("push", {"deployment": TEXT, "is_changed": TRUTH, "forgotten": TEXTS}),
    ]
    return document("tpudeploy state-change", {}, choices=verbs)


DOCUMENTS: Mapping[str, Callable[[], Schema]] = {
    "error": _kind("error", _ERROR),
    "diagnostics": _kind("diagnostics", {"valid": TRUTH, "profiles": [_CHECKED]}),
    "size": _kind(
        "size",
        {
            "name": TEXT,
            "fits": nullable(TRUTH),
            "would_not_start": TEXTS,
            "diagnostics": tuple[Diagnostic, ...],
            **_BUDGET,
        },
        optional=_BUDGET,
    ),
    "render": _kind("render", {"name": TEXT, "what": TEXT, "text": TEXT, "content": ANYTHING}),
    "doctor": _of("doctor", Diagnosis, {"emulated": TRUTH, "counts": mapping_of(WHOLE)}),
    "zones": _kind("zones", {"emulated": TRUTH, "tables": tuple[Zones, ...]}),
    "gc": _of("gc", Garbage, {"report": Report | None, "error": TpudeployError | None}),
    "status": _kind(
        "status",
        {
            "emulated": TRUTH,
            "deployments": tuple[DeploymentStatus, ...],
            "details": tuple[Details, ...],
            "timelines": list_of(_TIMELINE),
        },
        optional=("details", "timelines"),
    ),
    "show": _kind(
        "show",
        {"states": list_of(_STATE), "values": object_of({"root_module": object_of({"resources": list_of(_RESOURCE)})})},
    ),
    "output": _kind("output", {"name": TEXT, **_OUTPUTS}, optional=_OUTPUTS),
    "outputs": _kind("outputs", {"deployments": list_of(object_of({"name": TEXT, **_OUTPUTS}))}),
    "logs": _kind(
        "logs",
        {
            "logs": list_of(_LOG),
            "draft": nullable(_DRAFT),
            "no_draft": nullable(object_of({"because": TEXT, "hint": TEXT})),
        },
        optional=("draft", "no_draft"),
    ),
    "verify": _kind(
        "verify",
        {"name": TEXT, "holds": TRUTH, "settings": list_of(_SETTING), "silent": mapping_of(mapping_of(TEXT))},
    ),
    "accuracy": _kind(
        "accuracy", {"after": _SHEET, "before": _SHEET, "verdict": Verdict}, optional=("before", "verdict")
    ),
    "metrics": _kind("metrics", {"replicas": tuple[Metered, ...]}),
    "query": _kind(
        "query",
        {
            "answer": TEXT,
            **dict.fromkeys(("ttft_seconds", "total_seconds"), NUMBER),
            **dict.fromkeys(("prompt_tokens", "completion_tokens"), WHOLE),
            **dict.fromkeys(("tokens_per_second", "tokens_per_second_after_first"), nullable(NUMBER)),
        },
    ),
    "runs": _kind("runs", {"runs": tuple[Run, ...]}, written=_COUNTED),
    "comparison": _of("comparison", Comparison, written=_COUNTED),
    "ab": _of("ab", Result, {"left": WHOLE, "margin": NUMBER}),
    "operating": _kind(
        "operating",
        {
            "emulated": TRUTH,
            "run": TEXT,
            "loads": [{"context_tokens": WHOLE, "output_tokens": WHOLE, "points": tuple[OperatingPoint, ...]}],
        },
    ),
    "recommendation": _of("recommendation", Recommendation, {"profile": nullable(TEXT)}),
    "alerts": _kind("alerts", {"text": TEXT, "remarks": TEXTS}),
    "import": _kind("import", {"type": {"const": "import"}, "address": TEXT, "slice": Attempt}),
    "state-list": _kind("state-list", {"resources": list_of(object_of({"address": TEXT, "slices": TEXTS}))}),
    "state-show": _kind(
        "state-show",
        {"deployment": TEXT, "lineage": TEXT, "serial": WHOLE, "resources": tuple[Record, ...]},
        written={Record: As(adds={"address": TEXT})},
    ),
    "state-change": _state_changes,
    "state-history": _kind(
        "state-history",
        {
            "deployment": TEXT,
            "states": [
                {"serial": WHOLE, "lineage": TEXT, "is_current": TRUTH, "written": Written | None, "slices": TEXTS}
            ],
        },
    ),
    "unlock": _kind("unlock", {"name": TEXT, "id": TEXT}),
    "files": _kind("files", {"files": TEXTS}),
    "profiles": _kind("profiles", {"profiles": TEXTS}),
    "explanation": _kind("explanation", dict.fromkeys(("code", "title", "text"), TEXT)),
    "explanations": _kind(
        "explanations",
        {"groups": list_of(object_of({"name": TEXT, "codes": list_of(object_of({"code": TEXT, "title": TEXT}))}))},
    ),
    "completion": _kind("completion", {"shell": TEXT, "script": TEXT}),
    "emulator": _kind("emulator", {"environment": mapping_of(TEXT)}),
    "version": _kind("version", {"tpudeploy": TEXT, "vllm": TEXT}),
    "ci": _kind(
        "ci",
        {
            "does": {"enum": ["plan", "apply", "drift"]},
            "message": TEXT,
            "plan": Plan | None,
            "report": Report | None,
            "deviations": list_of(object_of({"name": TEXT, "kind": {"enum": [str(kind) for kind in Kind]}})),
            "unknown": [{"name": TEXT, "error": TpudeployError}],
        },
    ),
}


def names() -> Iterable[str]:
    return DOCUMENTS
