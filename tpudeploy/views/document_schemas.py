"""Define the JSON Schemas of the documents that commands print with --json, by the name in their `format`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tpudeploy.ab_test.result import Result
from tpudeploy.domain.accuracy import Verdict
from tpudeploy.domain.availability import Zones
from tpudeploy.domain.benchmark import Run
from tpudeploy.domain.comparison import Comparison
from tpudeploy.domain.diagnosis import Diagnosis
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.garbage import Garbage
from tpudeploy.domain.metrics import Metered
from tpudeploy.domain.plan import Plan
from tpudeploy.domain.recommendation import OperatingPoint, Recommendation
from tpudeploy.domain.report import Report
from tpudeploy.domain.state import Attempt, Record, Written
from tpudeploy.domain.status import DeploymentStatus
from tpudeploy.domain.verify import Details
from tpudeploy.planning.deviation import Kind
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

# A list of runs counts the cells of each run instead of listing them.
_COUNTED = {Run: As(adds={"cells": WHOLE}, drops=frozenset({"cells"}))}
_PHASE = object_of({"name": TEXT, "began": NUMBER, "seconds": nullable(NUMBER)})
_CAUSE = object_of({"signature": TEXT, "what": TEXT, "line": WHOLE, "text": TEXT, "process": TEXT, "remedy": TEXT})
_LOG = object_of(
    {
        "log": TEXT,
        "replica": nullable(TEXT),
        "serving": TRUTH,
        "seconds": NUMBER,
        "phases": list_of(_PHASE),
        "graphs": WHOLE,
        "cause": nullable(_CAUSE),
        "notes": list_of(object_of({"line": WHOLE, "text": TEXT, "why": TEXT})),
        "load": nullable(ANYTHING),  # figures as in `tpudeploy metrics`
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
# The keys for a model that can be sized; otherwise `cannot_size_because` replaces them.
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


def _document(kind: str, keys: Mapping[str, Any] | None = None, **more: Any) -> Callable[[], Schema]:
    head = {"format": {"const": f"tpudeploy.{kind}/1"}}
    return lambda: document(f"tpudeploy {kind}", {**head, **(keys or {})}, **more)


def _class_document(kind: str, cls: type, keys: Mapping[str, Any] | None = None, **more: Any) -> Callable[[], Schema]:
    """Return the schema of a document that is one class's `to_dict` and further keys."""
    return _document(kind, keys, cls=cls, **more)


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
    "error": _document("error", _ERROR),
    "diagnostics": _document("diagnostics", {"valid": TRUTH, "profiles": [_CHECKED]}),
    "size": _document(
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
    "render": _document("render", {"name": TEXT, "what": TEXT, "text": TEXT, "content": ANYTHING}),
    "doctor": _class_document("doctor", Diagnosis, {"emulated": TRUTH, "counts": mapping_of(WHOLE)}),
    "zones": _document("zones", {"emulated": TRUTH, "tables": tuple[Zones, ...]}),
    "gc": _class_document("gc", Garbage, {"report": Report | None, "error": TpudeployError | None}),
    "status": _document(
        "status",
        {
            "emulated": TRUTH,
            "deployments": tuple[DeploymentStatus, ...],
            "details": tuple[Details, ...],
            "timelines": list_of(_TIMELINE),
        },
        optional=("details", "timelines"),
    ),
    "show": _document(
        "show",
        {"states": list_of(_STATE), "values": object_of({"root_module": object_of({"resources": list_of(_RESOURCE)})})},
    ),
    "output": _document("output", {"name": TEXT, **_OUTPUTS}, optional=_OUTPUTS),
    "outputs": _document("outputs", {"deployments": list_of(object_of({"name": TEXT, **_OUTPUTS}))}),
    "logs": _document(
        "logs",
        {
            "logs": list_of(_LOG),
            "draft": nullable(_DRAFT),
            "no_draft": nullable(object_of({"because": TEXT, "hint": TEXT})),
        },
        optional=("draft", "no_draft"),
    ),
    "verify": _document(
        "verify",
        {
            "name": TEXT,
            "holds": TRUTH,
            "settings": list_of(_SETTING),
            "silent": mapping_of(mapping_of(TEXT)),
            "absent": TEXTS,
        },
    ),
    "accuracy": _document(
        "accuracy", {"after": _SHEET, "before": _SHEET, "verdict": Verdict}, optional=("before", "verdict")
    ),
    "metrics": _document("metrics", {"replicas": tuple[Metered, ...]}),
    "query": _document(
        "query",
        {
            "answer": TEXT,
            **dict.fromkeys(("ttft_seconds", "total_seconds"), NUMBER),
            **dict.fromkeys(("prompt_tokens", "completion_tokens"), nullable(WHOLE)),
            **dict.fromkeys(("tokens_per_second", "tokens_per_second_after_first"), nullable(NUMBER)),
        },
    ),
    "replica-runs": _document(
        "replica-runs",
        {"runs": tuple[Run, ...]},
        printed_as={Run: As(adds={"format": {"const": "tpudeploy.run/1"}, "hash": TEXT})},
    ),
    "runs": _document("runs", {"runs": tuple[Run, ...]}, printed_as=_COUNTED),
    "comparison": _class_document("comparison", Comparison, printed_as=_COUNTED),
    "ab": _class_document("ab", Result, {"left": WHOLE, "margin": NUMBER}),
    "operating": _document(
        "operating",
        {
            "emulated": TRUTH,
            "run": TEXT,
            "loads": [
                {"context_tokens": int | None, "output_tokens": int | None, "points": tuple[OperatingPoint, ...]}
            ],
        },
    ),
    "recommendation": _class_document("recommendation", Recommendation, {"profile": nullable(TEXT)}),
    "alerts": _document("alerts", {"text": TEXT, "remarks": TEXTS}),
    "import": _document("import", {"type": {"const": "import"}, "address": TEXT, "slice": Attempt}),
    "state-list": _document("state-list", {"resources": list_of(object_of({"address": TEXT, "slices": TEXTS}))}),
    "state-show": _document(
        "state-show",
        {"deployment": TEXT, "lineage": TEXT, "serial": WHOLE, "resources": tuple[Record, ...]},
        printed_as={Record: As(adds={"address": TEXT})},
    ),
    "state-change": _state_changes,
    "state-history": _document(
        "state-history",
        {
            "deployment": TEXT,
            "states": [
                {"serial": WHOLE, "lineage": TEXT, "is_current": TRUTH, "written": Written | None, "slices": TEXTS}
            ],
        },
    ),
    "unlock": _document("unlock", {"name": TEXT, "id": TEXT}),
    "files": _document("files", {"files": TEXTS}),
    "profiles": _document("profiles", {"profiles": TEXTS}),
    "explanation": _document("explanation", dict.fromkeys(("code", "title", "text"), TEXT)),
    "explanations": _document(
        "explanations",
        {"groups": list_of(object_of({"name": TEXT, "codes": list_of(object_of({"code": TEXT, "title": TEXT}))}))},
    ),
    "completion": _document("completion", {"shell": TEXT, "script": TEXT}),
    "emulator": _document("emulator", {"environment": mapping_of(TEXT)}),
    "version": _document("version", {"tpudeploy": TEXT, "vllm": TEXT}),
    "ci": _document(
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
