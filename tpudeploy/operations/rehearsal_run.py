"""One run of a rehearsal: stage by stage, saved after each, so that a run that was killed deletes what it left."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tpudeploy.adapters.google import rehearsal_reads, rehearsal_slice
from tpudeploy.adapters.google.recorder import Recorder
from tpudeploy.adapters.google.rehearsal_requests import WaitingRequest
from tpudeploy.adapters.project import STATES
from tpudeploy.adapters.state import disk
from tpudeploy.config.trust import looks_secret
from tpudeploy.domain import errors
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.availability import Pair, Standing
from tpudeploy.domain.deployment import Place, Provisioning
from tpudeploy.domain.events import PhaseChanged
from tpudeploy.domain.names import Zone
from tpudeploy.domain.serialization import to_json
from tpudeploy.domain.slices import BootPhase, Phase, SliceRef
from tpudeploy.domain.wait import Wait
from tpudeploy.loading import Profile
from tpudeploy.rehearsal import view
from tpudeploy.rehearsal.budget import DELETION, USE, WAITING, Step, step_at, steps
from tpudeploy.rehearsal.facts import Stage, facts_of
from tpudeploy.rehearsal.findings import Finding, Verdict, compare, not_seen
from tpudeploy.rehearsal.redaction import Redaction
from tpudeploy.text.paint import Paint

if TYPE_CHECKING:
    from tpudeploy.domain.events import Event
    from tpudeploy.plans import Report
    from tpudeploy.ports import TpuCloud
    from tpudeploy.workspace import Workspace

_FORMAT = "tpudeploy.rehearsal-journal/1"
_SHORTEST_SECRET = 6
NAME = "rehearsal"
_ANSWER = 300.0  # seconds: how long Google may take to accept a request
_GRANT = 900.0  # seconds: how long a slice is waited for
_POLL = 15.0
_LAG = 60.0  # seconds: the most that passes between a grant and the observation of it
# Of the time of a slice, the last parts are for the change in place and for the reset.
_CHANGE, _RESET = 240.0, 360.0
_PHASES = tuple(BootPhase)
_CONTEXT, _CHANGED_CONTEXT = 4096, 2048


def choose_steps(workspace: Workspace, ceiling: float) -> tuple[Step, ...]:
    """Return the stages at the cheapest places, and which of them the ceiling allows. Without one, only reads."""
    if not ceiling:
        return steps({}, ceiling)
    (table,) = workspace.zones(type="v6e-1")
    demands = {
        Stage.QUEUE: (Provisioning.FLEX_START, Backend.QUEUED_RESOURCE),
        Stage.INSERT: (Provisioning.FLEX_START, Backend.GCE_INSTANCE),
        Stage.SLICE: (Provisioning.SPOT, Backend.QUEUED_RESOURCE),
    }
    return steps({stage: _cheapest(table.pairs, *where) for stage, where in demands.items()}, ceiling)


def _cheapest(pairs: tuple[Pair, ...], provisioning: Provisioning, backend: Backend) -> tuple[Place, float] | None:
    """Return the cheapest place that can be asked, with its price in USD per hour of one chip."""
    own_pairs = tuple(pair for pair in pairs if pair.backend is backend) or pairs
    prices = {
        pair.zone: pair.price.usd_per_chip_hour
        for pair in own_pairs
        if pair.provisioning is provisioning
        and pair.standing is not Standing.CLOSED
        and pair.price.usd_per_chip_hour is not None
    }
    if not prices:
        return None
    zone = min(prices, key=lambda each: (prices[each], each))
    return Place(zone, provisioning, backend), prices[zone]


class RehearsalRun:
    """Goes through the stages. `findings` are what was seen so far, `usd` what that cost at list price."""

    def __init__(
        self,
        workspace: Workspace,
        project: str,
        folder: Path,
        *,
        ceiling: float,
        on_event: Callable[[Event], None] | None,
    ) -> None:
        self._workspace = workspace
        self._project = project
        self._folder = folder
        self._ceiling = ceiling
        self._on_event = on_event
        self._journal = workspace.adapters.folder / STATES / "rehearsal" / "journal.json"
        self._clock = workspace.adapters.clock
        self._active: Step | None = None
        self._requested_at: float | None = None
        self._granted_at: float | None = None
        self._is_resumed = False
        self._loss = ""  # Google's text, once it took the slice back
        self.findings: tuple[Finding, ...] = ()
        self.usd = 0.0
        secrets = [v for name, v in os.environ.items() if looks_secret(name) and len(v) >= _SHORTEST_SECRET]
        self._redaction = Redaction(project=project, secrets=secrets)

    def go(self, chosen: tuple[Step, ...]) -> None:
        """Go through the stages that are allowed, and those facts of them that no earlier run has seen.

        Raise `errors.Interrupted` if it is stopped, `errors.CloudError` if what it requested cannot be deleted. The
        journal then has what a later run, or `clean_up`, must delete.
        """
        self.clean_up()
        for step in chosen:
            if not step.is_allowed or all(self._has_seen(fact.id) for fact in facts_of(step.stage)):
                continue
            # What an earlier run of the same rehearsal spent counts too.
            if step.usd and self.usd + step.usd > self._ceiling:
                self._skip(step.stage, f"${self.usd:.2f} are spent, so this could exceed the ceiling.")
            elif step.stage is Stage.READ:
                self._read()
            else:
                self._request(step)
        disk.replace(self._journal, json.dumps({"format": _FORMAT, "done": True}))

    def clean_up(self) -> None:
        """Take over what an earlier run saved, and delete what it requested. Raise as `go` does."""
        self._resume()
        if self._active is not None:
            self._give_back(self._active)

    def close(self) -> None:
        """Free the lock of the rehearsal's state, and its connections."""
        if "_own_workspace" in self.__dict__:
            self._own_workspace.close()

    def write_report(self, document: Mapping[str, Any]) -> None:
        """Write the report as a document and as text. Raise `errors.StateError` if it cannot be written."""
        text = view.report(self.findings, usd=self.usd, ceiling=self._ceiling, paint=Paint())
        clean = self._redaction.text
        disk.replace(self._folder / "report.json", clean(json.dumps(document, indent=1, ensure_ascii=False)) + "\n")
        disk.replace(self._folder / "report.txt", clean(text) + "\n")

    def _read(self) -> None:
        connection = self._workspace.adapters.connection
        Recorder(connection, self._folder / "exchanges", self._redaction)
        try:
            for fact in facts_of(Stage.READ):
                if not self._has_seen(fact.id):
                    self._note(rehearsal_reads.look(connection, self._project, fact.id))
        finally:
            connection.on_exchange = None

    def _request(self, step: Step) -> None:
        """Request a slice at the step's place, look at it, and give it back."""
        self._active, self._requested_at, self._granted_at = step, self._clock.now(), None
        self._save()
        look_at_deletion: Callable[[float], Finding] | None = None
        try:
            look_at_deletion = self._use(step) if step.stage is Stage.SLICE else self._look_while_waiting(step)
        except errors.Interrupted:
            raise  # the caller deletes what was requested, with a clock that is not stopped
        except errors.TpudeployError as error:
            self._skip(step.stage, error.message)
        began = self._clock.now()
        self._give_back(step)
        if look_at_deletion is not None:
            self._note(look_at_deletion(self._clock.now() - began))

    def _look_while_waiting(self, step: Step) -> Callable[[float], Finding] | None:
        """Request a slice and look at it until it waits. Raise `errors.TpudeployError` if it cannot be requested.

        Return the look at its deletion, which takes how long that lasted.
        """
        recorder = self._record()
        ref = self._apply(step, wait=Wait.ACCEPTED, timeout=_ANSWER)
        if ref is None:
            return None
        request = WaitingRequest(self._own_workspace.adapters.connection, ref, recorder)
        # An instance that waits may never be listed: then this waits for as long as it may.
        ends = self._clock.now() + WAITING
        while not request.is_waiting() and not request.was_granted() and self._clock.now() < ends:
            self._clock.sleep(_POLL)
        if request.was_granted():
            self._granted_at = self._requested_at
            self._skip(step.stage, "It was granted at once.")
        else:
            for finding in request.look():
                self._note(finding)
        return lambda seconds: request.look_at_deletion(seconds, DELETION)

    def _use(self, step: Step) -> Callable[[float], Finding] | None:
        """Request a slice and use it until its time is over. Raise and return as `_look_while_waiting` does."""
        self._record()
        ref = self._apply(step, wait=Wait.GRANTED, timeout=_GRANT)
        if ref is None or not ref.was_granted:
            self._skip(step.stage, f"No slice was granted within {_GRANT / 60:.0f} minutes.")
            return None
        connection = self._own_workspace.adapters.connection
        ends = (self._granted_at or self._clock.now()) + USE
        for finding in rehearsal_slice.look(connection, ref):
            self._note(finding)
        self._look_at_port(step, ends)
        cloud = self._own_workspace.adapters.world(self._hear).cloud
        self._look_at_report(cloud, ref)
        self._note(rehearsal_slice.look_at_rate(connection, ref))
        self._look_at_log(ref)
        self._look_at_change(step, cloud, ref, ends)
        self._look_at_reset(cloud, ref, ends)
        self._look_for_preemption()
        return lambda seconds: rehearsal_slice.look_at_deletion(connection, ref, seconds=seconds, most=DELETION)

    def _look_at_port(self, step: Step, ends: float) -> None:
        """Wait for a completion, and leave time for the change and the reset."""
        error = self._converge(_profile(step, self._project), ends - _CHANGE - _RESET)
        if error is None:
            self._note(compare("port", is_as_believed=True, observation="A completion came back."))
        else:
            self._note(not_seen("port", error.message))

    def _look_at_report(self, cloud: TpuCloud, ref: SliceRef) -> None:
        report = cloud.report(ref)
        observation = "No report arrived." if report is None else f"It reports {report.phase.value}."
        self._note(compare("guest-attributes", is_as_believed=report is not None, observation=observation))

    def _look_at_log(self, ref: SliceRef) -> None:
        try:
            lines = self._own_workspace.adapters.cloud_logs.lines(ref)
        except errors.CloudError as error:
            self._note(not_seen("boot-log", error.message))
        else:
            self._note(compare("boot-log", is_as_believed=bool(lines), observation=f"It has {len(lines)} lines."))

    def _look_at_change(self, step: Step, cloud: TpuCloud, ref: SliceRef, ends: float) -> None:
        """Change the profile in place. Only what the machine does not acknowledge says that it did not see it."""
        before = cloud.report(ref)
        error = self._converge(_profile(step, self._project, context=_CHANGED_CONTEXT), ends - _RESET)
        after = cloud.report(ref)
        is_acknowledged = before is not None and after is not None and after.change not in {"", before.change}
        if error is not None and is_acknowledged:
            text = "The machine took the change over; its server did not start in time."
            self._note(compare("change-in-place", is_as_believed=True, observation=text))
        elif error is None:
            self._note(compare("change-in-place", is_as_believed=True, observation="The server was changed in place."))
        elif isinstance(error, errors.ChangeNotAcknowledged):
            self._note(compare("change-in-place", is_as_believed=False, observation=error.message))
        else:
            self._note(not_seen("change-in-place", error.message))

    def _look_at_reset(self, cloud: TpuCloud, ref: SliceRef, ends: float) -> None:
        """Reset the slice, and wait until the machine reports an earlier phase than before."""
        before = cloud.report(ref)
        if before is None or before.phase not in {BootPhase.STARTING, BootPhase.SERVING}:
            self._note(not_seen("script-reruns", "The machine reports no start that could be repeated."))
            return
        cloud.restart(ref)
        while self._clock.now() < ends:
            self._clock.sleep(_POLL)
            report = cloud.report(ref)
            if report is not None and _PHASES.index(report.phase) < _PHASES.index(before.phase):
                observation = f"The machine reports {report.phase.value} again."
                self._note(compare("script-reruns", is_as_believed=True, observation=observation))
                return
        self._note(not_seen("script-reruns", "The time was over before the machine reported another boot."))

    def _look_for_preemption(self) -> None:
        """Note how Google showed that it took the slice back, if it did. Nothing of ours ends one before its time."""
        if not self._loss:
            self._note(not_seen("preemption", "None happened."))
            return
        is_as_believed = any(word in self._loss for word in ("SUSPEND", "PREEMPTED", "no node"))
        self._note(compare("preemption", is_as_believed=is_as_believed, observation=f"The slice was {self._loss}."))

    def _converge(self, profile: Profile, ends: float) -> errors.TpudeployError | None:
        """Apply a profile until it serves or the time is over, and return why it does not serve."""
        timeout = ends - self._clock.now()
        if timeout <= 0:
            return errors.CloudError("The time was over.")
        plan = self._own_workspace.plan([profile], on_event=self._hear)
        report = self._own_workspace.apply(plan, wait=Wait.SERVING, timeout=timeout, on_event=self._hear)
        _raise_interrupt(report)
        return report.error

    def _apply(self, step: Step, *, wait: Wait, timeout: float) -> SliceRef | None:
        """Request the slice of a step and return it, or None where nothing was requested; then its facts are noted."""
        plan = self._own_workspace.plan([_profile(step, self._project)], on_event=self._hear)
        report = self._own_workspace.apply(plan, wait=wait, timeout=timeout, on_event=self._hear)
        _raise_interrupt(report)
        state = self._own_workspace.adapters.states.read(NAME).state
        if state is not None and state.attempts:
            return state.attempts[0].ref
        self._skip(step.stage, "Nothing was requested." if report.error is None else report.error.message)
        return None

    def _record(self) -> Recorder:
        return Recorder(self._own_workspace.adapters.connection, self._folder / "exchanges", self._redaction)

    def _hear(self, event: Event) -> None:
        """Note the grant, from which a slice is billed, and its loss; pass the event on."""
        is_grant = isinstance(event, PhaseChanged) and event.phase in {Phase.PROVISIONING, Phase.UP}
        if is_grant and self._granted_at is None:
            # Before this run's first look, it is not known when the slice was granted: at most since its request.
            self._granted_at = self._requested_at if self._is_resumed else event.at - _LAG
            self._save()
        if isinstance(event, PhaseChanged) and event.phase in {Phase.LOST, Phase.SUSPENDING, Phase.HUSK}:
            self._loss = self._loss or event.detail
        if self._on_event is not None:
            self._on_event(event)

    def _give_back(self, step: Step) -> None:
        """Delete what a step requested, and add what it cost. Raise `errors.CloudError` if it cannot be deleted."""
        profile = _profile(step, self._project)
        state = self._own_workspace.adapters.states.read(NAME).state
        grants = [attempt.granted_at for attempt in (state.attempts if state else ()) if attempt.granted_at is not None]
        plan = self._own_workspace.plan([profile], destroy=True, on_event=self._hear)
        report = self._own_workspace.apply(plan, on_event=self._hear)
        if report.error is not None:
            raise report.error
        if self._granted_at is not None:
            grants.append(self._granted_at)
        if grants:
            self.usd += (self._clock.now() - min(grants)) * step.usd_per_hour / 3600
        self._active = self._granted_at = self._requested_at = None
        self._is_resumed = False
        self._save()

    def _skip(self, stage: Stage, because: str) -> None:
        for fact in facts_of(stage):
            if not self._has_seen(fact.id):
                self.findings = (*self.findings, not_seen(fact.id, because))
        self._save()

    @cached_property
    def _own_workspace(self) -> Workspace:
        """The workspace of the rehearsal's own deployment, whose states are in a folder of their own."""
        adapters = self._workspace.adapters
        return type(self._workspace)(
            self._journal.parent, project=self._project, clock=adapters.clock, patience=adapters.patience
        )

    def _has_seen(self, fact: str) -> bool:
        return any(finding.fact == fact for finding in self.findings)

    def _note(self, finding: Finding) -> None:
        self.findings = (*self.findings, finding)
        self._save()

    def _save(self) -> None:
        journal = {
            "format": _FORMAT,
            "project": self._project,
            "findings": to_json(self.findings),
            "usd": self.usd,
            "active": None if self._active is None else to_json(self._active),
            "granted_at": self._granted_at,
            "requested_at": self._requested_at,
        }
        disk.replace(self._journal, json.dumps(journal))

    def _resume(self) -> None:
        """Take over the findings and the costs of a run of this project that did not end."""
        try:
            journal = json.loads(self._journal.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        except ValueError:
            return  # an unreadable journal holds nothing that Google does not list: `gc` finds our resources
        if journal.get("format") != _FORMAT or journal.get("done"):
            return
        if journal["project"] != self._project:
            if journal["active"] is None:
                return
            raise errors.ConfigError(
                f"A rehearsal in {journal['project']} did not end, and may have left a slice there.",
                hint=f"Run: GOOGLE_CLOUD_PROJECT={journal['project']} tpudeploy rehearse",
            )
        self.usd = float(journal["usd"])
        self.findings = tuple(
            Finding(fact=str(row["fact"]), verdict=Verdict(row["verdict"]), observation=str(row["observation"]))
            for row in journal["findings"]
        )
        active = journal["active"]
        if active is not None:
            place = Place(Zone(active["zone"]), Provisioning(active["provisioning"]), Backend(active["backend"]))
            self._active = step_at(Stage(active["stage"]), place, float(active["usd_per_hour"]), is_allowed=True)
            self._is_resumed = True
        self._granted_at, self._requested_at = journal["granted_at"], journal["requested_at"]


def _raise_interrupt(report: Report) -> None:
    """Raise `errors.Interrupted` where a run was stopped: it says nothing about Google."""
    if isinstance(report.error, errors.Interrupted):
        raise report.error


def _profile(step: Step, project: str, *, context: int = _CONTEXT) -> Profile:
    """Return the profile of the slice that a stage requests: the smallest, at one place."""
    assert step.provisioning is not None
    placement: dict[str, Any] = {
        "project": project,
        "zones": [str(step.zone)],
        "provisioning": [str(step.provisioning)],
        "backend": str(step.backend),
        "max_parallel_requests": 1,
        "valid_until": "30m",
    }
    if step.provisioning is Provisioning.FLEX_START:
        placement["max_run_duration"] = "30m"
    return Profile.from_mapping(
        {
            "version": 1,
            "name": NAME,
            "model": {"id": "google/gemma-4-E2B-it"},
            "tpu": {"type": "v6e-1"},
            "serving": {"image": "vllm/vllm-tpu:v0.32.0", "max_model_len": context},
            "placement": placement,
        }
    )
