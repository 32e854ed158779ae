"""Define the JSON Schemas of documents that are no result of an operation, by the name in their `format`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tpudeploy.ab_test.result import Result
from tpudeploy.domain.accuracy import Verdict
from tpudeploy.domain.benchmark import Run
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.plan import Plan
from tpudeploy.domain.report import Report
from tpudeploy.planning.deviation import Kind
from tpudeploy.schemas.schema_of import (
    NUMBER,
    TEXT,
    TEXTS,
    WHOLE,
    As,
    Schema,
    document,
    list_of,
    mapping_of,
    object_of,
)

_SHEET = object_of(
    {
        **dict.fromkeys(("id", "deployment", "url", "model"), TEXT),
        **dict.fromkeys(("asked", "right", "unanswered", "cut", "concurrency", "max_tokens"), WHOLE),
        "questions": TEXT,
    }
)
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


DOCUMENTS: Mapping[str, Callable[[], Schema]] = {
    "error": _document("error", _ERROR),
    "accuracy": _document(
        "accuracy", {"after": _SHEET, "before": _SHEET, "verdict": Verdict}, optional=("before", "verdict")
    ),
    "replica-runs": _document(
        "replica-runs",
        {"runs": tuple[Run, ...]},
        printed_as={Run: As(adds={"format": {"const": "tpudeploy.run/1"}, "hash": TEXT})},
    ),
    "ab": _class_document("ab", Result, {"left": WHOLE, "margin": NUMBER}),
    "files": _document("files", {"files": TEXTS}),
    "profiles": _document("profiles", {"profiles": TEXTS}),
    "completion": _document("completion", {"shell": TEXT, "script": TEXT}),
    "emulator": _document("emulator", {"environment": mapping_of(TEXT)}),
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
