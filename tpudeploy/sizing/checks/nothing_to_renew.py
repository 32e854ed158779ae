"""A successor that is never asked for: the run of the first has no end."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation, Severity

CODE = "TPU2004"
EXPLANATION = Explanation(
    "lifecycle.on_run_end has no run to renew",
    "With lifecycle.on_run_end: renew, a second slice takes over before Google ends the run of the first. Without "
    "placement.max_run_duration no run ends by itself. (`apply -watch`, or the next apply, replaces a preempted "
    "slice in any case.)",
    "placement: {max_run_duration: 12h}",
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    if deployment.lifecycle.renew and deployment.max_run_seconds is None:
        yield Diagnostic(
            code=CODE,
            severity=Severity.WARNING,
            message=f"{deployment.name} renews runs that end, and none does: placement.max_run_duration is not set.",
            path="lifecycle.on_run_end",
            location=deployment.origin("lifecycle.on_run_end"),
            hint="Set placement.max_run_duration, or leave lifecycle.on_run_end out.",
        )
