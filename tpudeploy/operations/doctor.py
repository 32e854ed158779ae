"""Check every precondition of a profile, line by line, with what to do. Nothing is created; exit 13 if one fails."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from tpudeploy import catalog, loading
from tpudeploy.availability.diagnosis import Diagnosis, FindingGrade
from tpudeploy.availability.diagnosis import doctor as view
from tpudeploy.availability.doctor import diagnose
from tpudeploy.availability.doctor.case import DoctorInput
from tpudeploy.availability.fix_script import fix_script as script_of
from tpudeploy.domain import exits
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.slices import BootReport
from tpudeploy.domain.state import State
from tpudeploy.operations.arguments import AProfile, Arg, Refresh
from tpudeploy.operations.declaration import Operation
from tpudeploy.results import Result, document, result
from tpudeploy.sizing.checks import check
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace


@result
class Preconditions(Result):
    """The preconditions of a profile, each with its grade."""

    FORMAT = "doctor"
    emulated: bool
    diagnosis: Diagnosis

    @property
    def exit_code(self) -> int:
        return exits.CHECK_FAILED if self.diagnosis.count(FindingGrade.FAIL) else exits.SUCCESS

    def values(self) -> dict[str, Any]:
        return {"emulated": self.emulated, **self.diagnosis.to_dict()}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        counts = {
            "type": "object",
            "additionalProperties": {"type": "integer"},
            "description": "the number of preconditions per grade; `fail` stops an apply",
        }
        return document("doctor", {"emulated": bool, "counts": counts}, Diagnosis)

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return view(self.diagnosis, paint, width=width, emulated=self.emulated)


@result
class FixScript(Result):
    """The commands for what a profile's project lacks, as a bash script. `failures` are what stops an apply."""

    FORMAT = "fix-script"
    IS_VERBATIM = True
    script: Annotated[str, "bash, which asks for values of secrets and holds none"]
    failures: int

    @property
    def exit_code(self) -> int:
        return exits.CHECK_FAILED if self.failures else exits.SUCCESS

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return self.script.rstrip("\n")


def doctor(
    workspace: Workspace,
    profile: AProfile,
    *,
    refresh: Refresh = False,
    fix_script: Annotated[bool, Arg("Print the gcloud commands for what is missing, as a script, instead.")] = False,
) -> Preconditions | FixScript:
    """Check every precondition of a profile in its Google Cloud project, with what to do. Creates nothing.

    An answer that Google does not give is marked as unknown. With `fix_script`, return the commands for what is missing
    as a script instead.
    """
    profile = loading.profile(profile)
    deployment = workspace.offline_deployment(profile)
    adapters = workspace.adapters
    (places,) = workspace.zones([profile], refresh=refresh)
    state = workspace.or_unknown(lambda: adapters.states.read(deployment.name).state)
    case = DoctorInput(
        deployment=deployment,
        diagnostics=(*workspace.warnings(profile), *check([deployment])),
        offline=adapters.survey.lacking(deployment.project),
        facts=adapters.survey.project_facts(deployment),
        zones=places,
        state=state,
        holder=workspace.or_unknown(lambda: adapters.states.holder(deployment.name)),
        reports=_reports(workspace, state),
    )
    diagnosis = diagnose(case)
    if fix_script:
        return FixScript(script=script_of(diagnosis), failures=diagnosis.count(FindingGrade.FAIL))
    return Preconditions(emulated=adapters.is_emulated, diagnosis=diagnosis)


def _reports(workspace: Workspace, state: State | Unknown | None) -> Mapping[str, BootReport | Unknown | None]:
    """Return the reports of the slices of several hosts that were granted, by name."""
    reports: dict[str, BootReport | Unknown | None] = {}
    for attempt in () if state is None or isinstance(state, Unknown) else state.attempts:
        kind = catalog.accelerator_type(attempt.ref.accelerator_type)
        if kind is not None and kind.hosts > 1 and attempt.granted_at is not None and attempt.releasing_at is None:
            read = partial(workspace.adapters.world().cloud.report, attempt.ref)
            reports[attempt.name] = workspace.or_unknown(read)
    return reports


OPERATION = Operation(
    run=doctor,
    results=(Preconditions, FixScript),
    title="Check preconditions",
    tool="doctor",
)
