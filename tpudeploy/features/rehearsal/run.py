"""One run of a rehearsal: stage by stage, saved after each, so that a run that was killed deletes what it left."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from tpudeploy.adapters.project import STATES
from tpudeploy.adapters.state import disk
from tpudeploy.adapters.state.holder import describe
from tpudeploy.config.trust import looks_secret
from tpudeploy.domain import errors
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.availability import Pair, Standing
from tpudeploy.domain.deployment import Place, Provisioning
from tpudeploy.domain.events import Event, PhaseChanged
from tpudeploy.domain.lock import Lease
from tpudeploy.domain.names import Zone
from tpudeploy.domain.report import Wait
from tpudeploy.domain.serialization import to_json
from tpudeploy.domain.slices import Phase, SliceRef
from tpudeploy.domain.state import Attempt
from tpudeploy.features.rehearsal import FactFinding, FactVerdict, compare, not_seen, view
from tpudeploy.features.rehearsal import reads as rehearsal_reads
from tpudeploy.features.rehearsal import slice as rehearsal_slice
from tpudeploy.features.rehearsal.budget import DELETION, LATENESS, USE, WAITING, Step, cost, step_at, steps
from tpudeploy.features.rehearsal.facts import RehearsalStage, facts_of
from tpudeploy.features.rehearsal.recorder import Recorder
from tpudeploy.features.rehearsal.redaction import Redaction
from tpudeploy.features.rehearsal.requests import WaitingRequest
from tpudeploy.features.rehearsal.slice import RunningInstance
from tpudeploy.features.rehearsal.use import NAME, SliceUse, profile, raise_interrupt
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace

_FORMAT = "tpudeploy.features.rehearsal-journal/1"
_SHORTEST_SECRET = 6
_JOURNAL = "journal"
_ANSWER = 300.0  # seconds: how long Google may take to accept a request
_GRANT = 900.0  # seconds: how long a slice is waited for
_POLL = 15.0
_LAG = 60.0  # seconds: the most that passes between a grant and the observation of it
# What each stage requests. The end of each of these runs is documented (features/rehearsal/budget.py).
_REQUESTS: Mapping[RehearsalStage, tuple[Provisioning, Backend]] = {
    RehearsalStage.QUEUE: (Provisioning.FLEX_START, Backend.QUEUED_RESOURCE),
    RehearsalStage.INSERT: (Provisioning.FLEX_START, Backend.GCE_INSTANCE),
    RehearsalStage.INSTANCE: (Provisioning.SPOT, Backend.GCE_INSTANCE),
    RehearsalStage.SLICE: (Provisioning.FLEX_START, Backend.QUEUED_RESOURCE),
}
_SEEN_AT_THE_END = frozenset({"preemption", "instance-preemption", "instance-run-end", "slice-deletion"})
_NO_END = "Google showed no end of the run, so that its cost is not bounded. It was deleted at once."


def choose_steps(workspace: Workspace, ceiling: float) -> tuple[Step, ...]:
    """Return the stages at the cheapest places, and which of them the ceiling allows. Without one, only reads."""
    if not ceiling:
        return steps({}, ceiling)
    (table,) = workspace.zones(type="v6e-1")
    return steps({stage: _cheapest(table.pairs, *request) for stage, request in _REQUESTS.items()}, ceiling)


def _cheapest(pairs: tuple[Pair, ...], provisioning: Provisioning, backend: Backend) -> tuple[Place, float] | None:
    """Return the cheapest place with its price in USD per hour of one chip; one whose quota looks too small comes last.

    A request there is refused and costs nothing.
    """
    own_pairs = tuple(pair for pair in pairs if pair.backend is backend) or pairs
    prices: dict[Zone, tuple[bool, float]] = {}
    for pair in own_pairs:
        price = pair.price.usd_per_chip_hour
        is_open = pair.provisioning is provisioning and pair.standing is not Standing.CLOSED
        if is_open and price is not None:
            prices[pair.zone] = (pair.standing is Standing.DOUBTFUL, price)
    if not prices:
        return None
    zone = min(prices, key=lambda each: (prices[each], each))
    return Place(zone, provisioning, backend), prices[zone][1]


class RehearsalRun:
    """Goes through the stages. `findings` are what was seen so far, `usd` what that cost at list price.

    Only one runs in a folder at a time: `go` and `clean_up` hold the lock of the journal until `close`.
    """

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
        self._folder = disk.Folder(folder, root=workspace.adapters.folder)
        self._ceiling = ceiling
        self._on_event = on_event
        self._journals = disk.Folder(workspace.adapters.folder / STATES / "rehearsal")
        self._clock = workspace.adapters.clock
        self._lease: Lease | None = None
        self._active: Step | None = None
        self._requested_at: float | None = None
        self._granted_at: float | None = None
        self._is_resumed = False
        self._loss = ""  # Google's text, once it took the slice back
        self.findings: tuple[FactFinding, ...] = ()
        self.usd = 0.0
        secrets = [v for name, v in os.environ.items() if looks_secret(name) and len(v) >= _SHORTEST_SECRET]
        self._redaction = Redaction(project=project, secrets=secrets)

    def go(self, chosen: tuple[Step, ...]) -> None:
        """Go through the stages that are allowed, and those facts of them that no earlier run has seen.

        Raise `errors.StateLocked` if another rehearsal runs in this folder, `errors.Interrupted` if it is stopped,
        `errors.CloudError` if what it requested cannot be deleted. The journal then has what a later run, or
        `clean_up`, must delete.
        """
        self.clean_up()
        for step in chosen:
            if not step.is_allowed or all(self._has_seen(fact.id) for fact in facts_of(step.stage)):
                continue
            # What an earlier run of the same rehearsal spent counts too.
            if step.usd and self.usd + step.usd > self._ceiling:
                self._skip(step.stage, f"${self.usd:.2f} are spent, so this could exceed the ceiling.")
            elif step.stage is RehearsalStage.SLICE and self._differs("instance-run-end"):
                self._skip(step.stage, "Google did not end a run, so that the cost of another one is not bounded.")
            elif step.stage is RehearsalStage.READ:
                self._read()
            else:
                self._request(step)
        self._journals.replace(f"{_JOURNAL}.json", json.dumps({"format": _FORMAT, "done": True}))

    def clean_up(self) -> None:
        """Take over what an earlier run saved, and delete what it requested. Raise as `go` does."""
        self._lock()
        self._resume()
        if self._active is not None:
            self._give_back(self._active)

    def close(self) -> None:
        """Free the locks of the rehearsal, and its connections."""
        if self._lease is not None:
            self._own_workspace.adapters.states.unlock(self._lease)
            self._lease = None
        if "_own_workspace" in self.__dict__:
            self._own_workspace.close()

    def write_report(self, document: Mapping[str, Any]) -> None:
        """Write the report as a document and as text. Raise `errors.StateError` if it cannot be written."""
        text = view.report(self.findings, usd=self.usd, ceiling=self._ceiling, paint=Paint())
        clean = self._redaction.text
        document_text = json.dumps(document, indent=1, ensure_ascii=False)
        self._folder.replace("report.json", clean(document_text) + "\n")
        self._folder.replace("report.txt", clean(text) + "\n")

    def _lock(self) -> None:
        """Take the lock of the journal, which the kernel releases when this process ends."""
        try:
            self._lease = self._own_workspace.adapters.states.lock(_JOURNAL, "rehearse")
        except errors.StateLocked as error:
            raise errors.StateLocked(
                f"Another rehearsal runs in this folder: {describe(error.holder)}.",
                hint="Wait until it has ended. Two would count each other's costs wrongly.",
                holder=error.holder,
            ) from error

    def _read(self) -> None:
        connection = self._workspace.adapters.connection
        Recorder(connection, self._folder.sub("exchanges"), self._redaction)
        try:
            for fact in facts_of(RehearsalStage.READ):
                if not self._has_seen(fact.id):
                    self._note(rehearsal_reads.look(connection, self._project, fact.id))
        finally:
            connection.on_exchange = None

    def _request(self, step: Step) -> None:
        """Request a slice at the step's place, look at it, and give it back."""
        self._active, self._requested_at, self._granted_at, self._loss = step, self._clock.now(), None, ""
        self._save()
        look_at_deletion: Callable[[float], FactFinding] | None = None
        look = self._use if step.stage in USE else self._look_while_waiting
        try:
            look_at_deletion = look(step)
        except errors.Interrupted:
            raise  # the caller deletes what was requested, with a clock that is not stopped
        except errors.TpudeployError as error:
            self._skip(step.stage, error.message)
        began = self._clock.now()
        self._give_back(step)
        if look_at_deletion is not None:
            self._note(look_at_deletion(max(0.0, self._clock.now() - began)))

    def _look_while_waiting(self, step: Step) -> Callable[[float], FactFinding] | None:
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

    def _use(self, step: Step) -> Callable[[float], FactFinding] | None:
        """Request a slice and use it until its time is over. Raise and return as `_look_while_waiting` does."""
        self._record()
        ref = self._apply(step, wait=Wait.GRANTED, timeout=_GRANT)
        if ref is None or not ref.was_granted:
            self._skip(step.stage, f"No slice was granted within {_GRANT / 60:.0f} minutes.")
            return None
        granted_at = self._granted_at or self._clock.now()
        use = SliceUse(
            self._own_workspace,
            step,
            self._project,
            ref,
            ends=granted_at + USE[step.stage],
            on_event=self._hear,
        )
        look = self._use_instance if step.stage is RehearsalStage.INSTANCE else self._use_queued_resource
        return look(step, ref, use)

    def _use_queued_resource(self, step: Step, ref: SliceRef, use: SliceUse) -> Callable[[float], FactFinding] | None:
        """Look at a slice of the Cloud TPU API, and return the look at its deletion."""
        connection = self._own_workspace.adapters.connection
        self._note(rehearsal_slice.look_at_run(connection, ref))
        if self._differs("slice-run"):
            self._skip(step.stage, _NO_END)
            return None
        for finding in (*rehearsal_slice.look(connection, ref), *use.look()):
            self._note(finding)
        if not self._loss:
            self._note(rehearsal_slice.look_at_rate(connection, ref))
        self._note_loss(step.stage)
        self._look_for_preemption("preemption", ("SUSPEND", "PREEMPTED", "no node"))
        return lambda seconds: rehearsal_slice.look_at_deletion(connection, ref, seconds=seconds, most=DELETION)

    def _use_instance(self, step: Step, ref: SliceRef, use: SliceUse) -> None:
        """Look at an instance, and wait until Google ends its run."""
        instance = RunningInstance(self._own_workspace.adapters.connection, ref, self._clock)
        self._note(instance.look_at_run())
        run_end = instance.run_end()
        if run_end is None:
            self._skip(step.stage, _NO_END)
            return
        for finding in (*instance.look(), *use.look()):
            self._note(finding)
        while not self._loss and not instance.is_absent() and self._clock.now() < run_end + LATENESS:
            self._clock.sleep(_POLL)
        is_early = self._clock.now() < run_end - _LAG
        self._note_loss(step.stage)
        self._look_for_preemption("instance-preemption", ("TERMINATED", "STOP", "gone"), is_early=is_early)
        if is_early:
            self._note(not_seen("instance-run-end", "Google took the instance back before."))
        else:
            self._note(instance.look_at_end(self._clock.now() - run_end))

    def _note_loss(self, stage: RehearsalStage) -> None:
        """Note the reason for what could not be seen of a machine that Google took back."""
        reason = f"Google took the slice back: {self._loss or 'it is gone'}."
        for fact in facts_of(stage):
            if not self._has_seen(fact.id) and fact.id not in _SEEN_AT_THE_END:
                self._note(not_seen(fact.id, reason))

    def _look_for_preemption(self, fact: str, words: tuple[str, ...], *, is_early: bool = True) -> None:
        """Note how Google showed that it took the slice back, if it did. Nothing of ours ends one before its time."""
        if not is_early or not self._loss:
            self._note(not_seen(fact, "None happened."))
            return
        is_as_believed = any(word in self._loss for word in words)
        self._note(compare(fact, is_as_believed=is_as_believed, observation=f"The slice was {self._loss}."))

    def _apply(self, step: Step, *, wait: Wait, timeout: float) -> SliceRef | None:
        """Request the slice of a step and return it, or None where nothing was requested; then its facts are noted.

        It is requested once: another request would be another run, which the ceiling does not count.
        """
        plan = self._own_workspace.plan([profile(step, self._project)], on_event=self._hear)
        report = self._own_workspace.apply(plan, wait=wait, timeout=timeout, max_requests=1, on_event=self._hear)
        raise_interrupt(report)
        state = self._own_workspace.adapters.states.read(NAME).state
        if state is not None and state.attempts:
            return state.attempts[0].ref
        self._skip(step.stage, "Nothing was requested." if report.error is None else report.error.message)
        return None

    def _record(self) -> Recorder:
        return Recorder(self._own_workspace.adapters.connection, self._folder.sub("exchanges"), self._redaction)

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
        state = self._own_workspace.adapters.states.read(NAME).state
        attempts = () if state is None else state.attempts
        grants = [attempt.granted_at for attempt in attempts if attempt.granted_at is not None]
        has_outlived_run = self._has_outlived_run(attempts)
        plan = self._own_workspace.plan([profile(step, self._project)], destroy=True, on_event=self._hear)
        report = self._own_workspace.apply(plan, on_event=self._hear)
        raise_interrupt(report)
        if report.error is not None:
            hint = "Run `tpudeploy rehearse` again: it begins with what is left. Google ends each slice with its run."
            raise errors.CloudError(report.error.message, hint=hint) from report.error
        if self._granted_at is not None:
            grants.append(self._granted_at)
        if grants:
            seconds, most = self._clock.now() - min(grants), step.run_seconds + LATENESS
            if seconds < 0:
                seconds = most  # the clock was set back, so nobody knows how long it ran
            elif not has_outlived_run:
                # Google ended it at the end of its run, if no deletion did.
                seconds = min(seconds, most)
            self.usd += cost(step.usd_per_hour, seconds)
        self._active = self._granted_at = self._requested_at = None
        self._is_resumed = False
        self._save()

    def _has_outlived_run(self, attempts: Iterable[Attempt]) -> bool:
        """Return whether a slice is up although its run is over. Raise `errors.CloudError` if it cannot be observed."""
        slices = self._own_workspace.adapters.world().cloud.slices(attempt.ref for attempt in attempts)
        latest_end = self._clock.now() - LATENESS
        return any(
            slice_.phase is Phase.UP and slice_.ends_at is not None and slice_.ends_at < latest_end for slice_ in slices
        )

    def _skip(self, stage: RehearsalStage, because: str) -> None:
        for fact in facts_of(stage):
            if not self._has_seen(fact.id):
                self.findings = (*self.findings, not_seen(fact.id, because))
        self._save()

    @cached_property
    def _own_workspace(self) -> Workspace:
        """The workspace of the rehearsal's own deployment, whose states are in a folder of their own.

        What it requests is in the ledger of the workspace, and within the budgets of its team.
        """
        adapters = self._workspace.adapters
        own = type(self._workspace)(
            self._journals.path, project=self._project, clock=adapters.clock, patience=adapters.patience
        )
        own.adapters.accounts = adapters.states
        return own

    def _has_seen(self, fact: str) -> bool:
        return any(finding.fact == fact for finding in self.findings)

    def _differs(self, fact: str) -> bool:
        return any(finding.fact == fact and finding.verdict is FactVerdict.DIFFERS for finding in self.findings)

    def _note(self, finding: FactFinding) -> None:
        # It replaces what was noted when the rest of its stage was skipped.
        self.findings = (*(each for each in self.findings if each.fact != finding.fact), finding)
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
        self._journals.replace(f"{_JOURNAL}.json", json.dumps(journal))

    def _resume(self) -> None:
        """Take over the findings and the costs of a run of this project that did not end."""
        try:
            journal = json.loads(self._journals.read(f"{_JOURNAL}.json"))
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
        self.usd = max(0.0, float(journal["usd"]))
        self.findings = tuple(
            FactFinding(fact=str(row["fact"]), verdict=FactVerdict(row["verdict"]), observation=str(row["observation"]))
            for row in journal["findings"]
        )
        active = journal["active"]
        if active is not None:
            place = Place(Zone(active["zone"]), Provisioning(active["provisioning"]), Backend(active["backend"]))
            self._active = step_at(
                RehearsalStage(active["stage"]), place, float(active["usd_per_hour"]), is_allowed=True
            )
            self._is_resumed = True
        self._granted_at, self._requested_at = journal["granted_at"], journal["requested_at"]
