"""Report the machine of a slice to Google as faulty, or else delete the slice, and hold its place back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

from tpudeploy import catalog
from tpudeploy.boot_log.read import read
from tpudeploy.boot_log.signatures import HARDWARE_FAULTS
from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.config.tokens import masked
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Place, Provisioning
from tpudeploy.domain.errors import CloudError, StateError
from tpudeploy.domain.events import Event
from tpudeploy.domain.host_fault import FaultBehavior, HostFault
from tpudeploy.domain.names import Address, Zone
from tpudeploy.domain.state import Attempt
from tpudeploy.engine import report_host as engine
from tpudeploy.operations.arguments import Arg
from tpudeploy.operations.declaration import Access, ApprovalForm, Operation, Preview
from tpudeploy.operations.import_slice import replica_address
from tpudeploy.reconcile.failed_landings import HOST_FAULT, hold_seconds
from tpudeploy.results import Result, result
from tpudeploy.text import words
from tpudeploy.text.paint import Paint
from tpudeploy.text.words import duration
from tpudeploy.workspace import Workspace

_MOST = 500  # characters of a description; the limit of Compute Engine is not published


@result
class ReportedHost(Result):
    """The report of a host: what Google is told, and what became of it. In a dry run nothing was sent."""

    FORMAT = "report-host"
    address: str
    name: str
    zone: Zone
    provisioning: Provisioning
    backend: Backend
    behavior: FaultBehavior
    description: Annotated[str, "what Google is told"]
    is_dry_run: bool
    hosts: Annotated[int, "the machines of the slice"] = 1
    is_accepted: Annotated[bool, "Google accepted the report, and stops the machine"] = False
    is_deleted: Annotated[bool, "the slice was deleted, because Google was not told"] = False
    refusal: Annotated[str, "Google's words, if it did not accept the report"] = ""

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        head = f"{self.address}: {self.name} in {self._place}"
        if self.is_dry_run:
            return "\n".join([head, f"  {words.plain(self.description)}", "", *self._intentions()])
        if self.is_accepted:
            return paint.green(f"Reported the host of {self.name} to Google ({self.behavior}).") + f" {self._end()}"
        why = f"Google did not accept the report: {words.plain(self.refusal)}\n" if self.refusal else ""
        return f"{why}Deleted {self.name}. `tpudeploy apply` requests another slice."

    def _intentions(self) -> list[str]:
        if self.hosts > 1:
            actions = [f"The slice has {self.hosts} hosts, of which a report names one, so the slice is deleted."]
        elif BACKENDS[self.backend].reports_hosts:
            actions = [
                f"Google is told that its host has a fault ({self.behavior}). {self._end()}",
                "If Google does not accept the report, the slice is deleted.",
            ]
        else:
            api = BACKENDS[self.backend].api
            actions = [f"{api[0].upper()}{api[1:]} has no call that reports a host, so the slice is deleted."]
        hold = duration(hold_seconds(HOST_FAULT, 1))
        return [*actions, f"{self._place} is not asked again for {hold}, if there is another place."]

    @property
    def _place(self) -> Place:
        return Place(self.zone, self.provisioning, self.backend)

    def _end(self) -> str:
        """Return what follows an accepted report (docs.cloud.google.com: 10 to 12 minutes; TPUs are unverified)."""
        if self.provisioning is Provisioning.ON_DEMAND:
            return "Google stops the machine within about 12 minutes, and restarts it on another host."
        return "Google stops the machine within about 12 minutes. After that, `tpudeploy apply` requests another slice."


def report_host(
    workspace: Workspace,
    address: Annotated[str, Arg("The replica: NAME, or NAME[INDEX].", metavar="ADDR", positional=True)],
    *,
    behavior: Annotated[
        str, Arg("What is wrong with the machine.", choices=tuple(FaultBehavior), agents=None)
    ] = FaultBehavior.CHIP_ERROR,
    description: Annotated[
        str | None,
        Arg(
            "What to tell Google (default: the fault that the boot log names). Write no secret into it.",
            metavar="TEXT",
            agents=None,
        ),
    ] = None,
    dry_run: Annotated[bool, Arg("Show what would be reported, and do nothing.", agents=None)] = False,
    on_event: Callable[[Event], None] | None = None,
) -> ReportedHost:
    """Report the host of a slice to Google as faulty. Google stops the machine, and its place is held back.

    At the Cloud TPU API, which has no such call, and where Google does not accept the report, the slice is deleted.
    `description` is by default the fault that the boot log names. With `dry_run`, only return what would be sent. Raise
    `errors.StateError` without a slice or a fault, `errors.UsageError` for an invalid address, `errors.Denied` and
    `errors.Fault`.
    """
    where, world = replica_address(address), workspace.adapters.world(on_event)
    attempt = engine.kept_slice(world.state.read(where.deployment).state, where)
    text = _fault_in_log(workspace, where, attempt) if description is None else description
    fault = HostFault(behavior=FaultBehavior(behavior), description=text[:_MOST])
    proposal = ReportedHost(
        address=str(where),
        name=attempt.name,
        zone=attempt.zone,
        provisioning=attempt.provisioning,
        backend=attempt.backend,
        behavior=fault.behavior,
        description=fault.description,
        is_dry_run=True,
        hosts=_hosts_of(attempt),
    )
    if dry_run:
        return proposal
    report = engine.report_host(world, where, fault)
    return replace(
        proposal,
        is_dry_run=False,
        is_accepted=report.is_accepted,
        is_deleted=not report.is_accepted,
        refusal=report.refusal,
    )


def _hosts_of(attempt: Attempt) -> int:
    kind = catalog.accelerator_type(str(attempt.spec.get("tpu.type", "")))
    return 1 if kind is None else kind.hosts


def _fault_in_log(workspace: Workspace, where: Address, attempt: Attempt) -> str:
    """Return the fault of the machine that its boot log names, without anything that looks like a credential.

    Raise `errors.StateError` if it names none, or cannot be read.
    """
    hint = f"If you know of one, describe it: tpudeploy report-host '{where}' -description TEXT"
    try:
        lines = workspace.boot_logs(where.deployment, on_unreadable=lambda *_: None).get(attempt.name, ())
    except CloudError as error:
        raise StateError(f"The boot log of {attempt.name} cannot be read: {error.message}", hint=hint) from error
    cause = read("\n".join(lines)).cause
    if cause is None or cause.signature not in HARDWARE_FAULTS:
        raise StateError(f"The boot log of {attempt.name} names no fault of the machine.", hint=hint)
    return masked(f"{cause.what}: {cause.line.text.strip()}")


def _proposal(workspace: Workspace, **values: Any) -> Preview:
    """Return what Google would be told, which it then is: the log is read once."""
    proposal = report_host(workspace, **{**values, "dry_run": True})
    return Preview(result=proposal, values={**values, "description": proposal.description})


OPERATION = Operation(
    run=report_host,
    results=(ReportedHost,),
    access=Access.END,
    title="Report a faulty host",
    options=("lock_timeout", "backend"),
    takes_events=True,
    approval=ApprovalForm(
        question="Do you really want to report this host? There is no undo.",
        otherwise="Review the report, then pass -auto-approve.",
        preview=_proposal,
    ),
)
