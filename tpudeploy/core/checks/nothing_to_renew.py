"""A successor that is never asked for: the run of the first has no end."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Severity

CODE = "TPU2004"
MEANING = """A run without an end has no successor

lifecycle.on_run_end: renew has a second slice take over before Google ends the run of the first. Without
placement.max_run_duration no run ends by itself; what is preempted is asked for again by `apply -watch`, or by the next
apply. Either of:

  placement: {max_run_duration: 12h}    what flex-start needs
  lifecycle: {on_run_end: release}      the default"""


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
