"""The document of `ci`, and its JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tpudeploy.cli.documents import Document
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.plan import Plan
from tpudeploy.domain.report import RunReport
from tpudeploy.planning.deviation import Deviation, DeviationKind
from tpudeploy.schemas.documents import formatted
from tpudeploy.schemas.schema_of import TEXT, list_of, object_of


def pipeline(
    does: str,
    *,
    plan: Plan | None = None,
    report: RunReport | None = None,
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


DOCUMENTS = {
    "ci": formatted(
        "ci",
        {
            "does": {"enum": ["plan", "apply", "drift", "ab", "bench"]},
            "message": TEXT,
            "plan": Plan | None,
            "report": RunReport | None,
            "deviations": list_of(object_of({"name": TEXT, "kind": {"enum": [str(kind) for kind in DeviationKind]}})),
            "unknown": [{"name": TEXT, "error": TpudeployError}],
        },
    ),
}
