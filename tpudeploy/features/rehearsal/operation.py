"""Check the unverified facts about Google Cloud that tpudeploy relies on, cheapest first.

It runs on your project, below a ceiling in dollars, leaves nothing there, and writes a report of what differs, with the
requests and replies as files without secrets. An interrupted rehearsal continues.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from tpudeploy.domain import exits
from tpudeploy.domain.errors import ConfigError
from tpudeploy.domain.events import Event
from tpudeploy.features.rehearsal import FactFinding, FactVerdict, view
from tpudeploy.features.rehearsal.budget import Step
from tpudeploy.operations.arguments import Arg, Usd
from tpudeploy.operations.declaration import Access, ApprovalForm, Operation
from tpudeploy.results import Result, result
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace

_FOLDER = "rehearsal"


@result
class Rehearsal(Result):
    """What a rehearsal does, and what it saw. Before it starts, `findings` is empty."""

    FORMAT = "rehearsal"
    project: str
    ceiling: Annotated[float, "USD"]
    steps: tuple[Step, ...]
    findings: tuple[FactFinding, ...] = ()
    usd: Annotated[float, "spent at list price"] = 0.0
    folder: Annotated[str, "where the report and the exchanges are"] = ""

    @property
    def exit_code(self) -> int:
        is_other = any(finding.verdict is FactVerdict.DIFFERS for finding in self.findings)
        return exits.CHECK_FAILED if is_other else exits.SUCCESS

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        del width
        if not self.folder:
            return view.proposal(self.steps, project=self.project, ceiling=self.ceiling, paint=paint)
        text = view.report(self.findings, usd=self.usd, ceiling=self.ceiling, paint=paint)
        return f"{text}\nReport and exchanges, without secrets: {self.folder}"


def rehearse(
    workspace: Workspace,
    *,
    max_cost: Annotated[Usd, Arg("What it may cost at most, in USD (default: 0, which only reads).")] = 0.0,
    output: Annotated[
        str | Path,
        Arg(f"The folder for the report and the exchanges (default: {_FOLDER}).", name="out", metavar="FOLDER"),
    ] = _FOLDER,
    dry_run: Annotated[bool, Arg("Show the steps and what they can cost, and stop.")] = False,
    on_event: Callable[[Event], None] | None = None,
) -> Rehearsal:
    """Look at every unverified fact that `max_cost` dollars allow, and write a report into the folder `output`.

    With 0 it only reads. With `dry_run`, return what it would do and cost, and read nothing but prices. A rehearsal
    that was interrupted first deletes what it left, and continues.

    Each request says when Google ends its run, and the runs together cost at most `max_cost`, whatever becomes of this
    process.

    Raise `errors.ConfigError` without a project, `errors.StateLocked` if another rehearsal runs in this folder,
    `errors.Interrupted` if it is stopped, `errors.CloudError` if what it requested cannot be deleted.
    """
    from tpudeploy.features.rehearsal.run import RehearsalRun, choose_steps

    project = workspace.adapters.project()
    if not project:
        raise ConfigError("No Google Cloud project is set.", hint="Set GOOGLE_CLOUD_PROJECT.")
    chosen = choose_steps(workspace, max_cost)
    if dry_run:
        return Rehearsal(project=project, ceiling=max_cost, steps=chosen)
    folder = workspace.adapters.folder / output
    run = RehearsalRun(workspace, project, folder, ceiling=max_cost, on_event=on_event)
    try:
        run.go(chosen)
    finally:
        run.close()
    rehearsal = Rehearsal(
        project=project, ceiling=max_cost, steps=chosen, findings=run.findings, usd=run.usd, folder=str(output)
    )
    run.write_report(rehearsal.to_dict())
    return rehearsal


def clean_up(workspace: Workspace, *, on_event: Callable[[Event], None] | None = None) -> None:
    """Delete what an interrupted rehearsal requested. Raise `errors.CloudError` if it cannot be deleted."""
    from tpudeploy.features.rehearsal.run import RehearsalRun

    project = workspace.adapters.project() or ""
    folder = workspace.adapters.folder / _FOLDER
    run = RehearsalRun(workspace, project, folder, ceiling=0.0, on_event=on_event)
    try:
        run.clean_up()
    finally:
        run.close()


OPERATION = Operation(
    run=rehearse,
    results=(Rehearsal,),
    access=Access.END,
    title="Rehearse",
    takes_events=True,
    approval=ApprovalForm(
        question="Do you want to start this rehearsal?",
        otherwise="Review the steps, then pass -auto-approve.",
    ),
)
