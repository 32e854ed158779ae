"""One run of a rehearsal: stage by stage, saved after each, so that a run that was killed deletes what it left."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tpudeploy.adapters.google import rehearsal_reads
from tpudeploy.adapters.google.recorder import Recorder
from tpudeploy.adapters.google.rehearsal_requests import WaitingRequest
from tpudeploy.adapters.project import STATES
from tpudeploy.adapters.state import disk
from tpudeploy.config.trust import looks_secret
from tpudeploy.domain import errors
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.availability import Pair, Standing
from tpudeploy.domain.deployment import Place, Provisioning
from tpudeploy.domain.names import Zone
from tpudeploy.domain.serialization import to_json
from tpudeploy.domain.wait import Wait
from tpudeploy.loading import Profile
from tpudeploy.rehearsal import view
from tpudeploy.rehearsal.budget import DELETION, WAITING, Step, step_at, steps
from tpudeploy.rehearsal.facts import Stage, facts_of
from tpudeploy.rehearsal.findings import Finding, Verdict, not_seen
from tpudeploy.rehearsal.redaction import Redaction
from tpudeploy.text.paint import Paint

if TYPE_CHECKING:
    from tpudeploy.domain.events import Event
    from tpudeploy.workspace import Workspace

_FORMAT = "tpudeploy.rehearsal-journal/1"
_SHORTEST_SECRET = 6
NAME = "rehearsal"
_ANSWER = 300.0  # seconds: how long Google may take to accept a request
_POLL = 15.0


def choose_steps(workspace: Workspace, ceiling: float) -> tuple[Step, ...]:
    """Return the stages at the cheapest places, and which of them the ceiling allows. Without one, only reads."""
    if not ceiling:
        return steps({}, ceiling)
    (table,) = workspace.zones(type="v6e-1")
    demands = {
        Stage.QUEUE: (Provisioning.FLEX_START, Backend.QUEUED_RESOURCE),
        Stage.INSERT: (Provisioning.FLEX_START, Backend.GCE_INSTANCE),
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
        self._granted_at: float | None = None
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
            if self.usd + (step.usd or 0.0) > max(self._ceiling, 0.0):
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
        if "_inner" in self.__dict__:
            self._inner.close()

    def write_report(self, document: Mapping[str, Any]) -> None:
        """Write the report as a document and as text. Raise `errors.StateError` if it cannot be written."""
        text = view.report(self.findings, usd=self.usd, paint=Paint())
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
        self._active = step
        self._save()
        request: WaitingRequest | None = None
        try:
            request = self._look_while_waiting(step)
        except errors.Interrupted:
            raise  # the caller deletes what was requested, with a clock that is not stopped
        except errors.TpudeployError as error:
            self._skip(step.stage, error.message)
        began = self._clock.now()
        self._give_back(step)
        if request is not None:
            self._note(request.look_at_deletion(self._clock.now() - began, DELETION))

    def _look_while_waiting(self, step: Step) -> WaitingRequest | None:
        """Request a slice and look at it until it waits. Raise `errors.TpudeployError` if it cannot be requested."""
        recorder = Recorder(self._inner.adapters.connection, self._folder / "exchanges", self._redaction)
        plan = self._inner.plan([_profile(step, self._project)], on_event=self._on_event)
        report = self._inner.apply(plan, wait=Wait.ACCEPTED, timeout=_ANSWER, on_event=self._on_event)
        state = self._inner.adapters.states.read(NAME).state
        if state is None or not state.attempts:
            because = "Nothing was requested." if report.error is None else report.error.message
            self._skip(step.stage, because)
            return None
        request = WaitingRequest(self._inner.adapters.connection, state.attempts[0].ref, recorder)
        # An instance that waits may never be listed: then this waits for as long as it may.
        ends = self._clock.now() + WAITING
        while not request.is_waiting() and not request.was_granted() and self._clock.now() < ends:
            self._clock.sleep(_POLL)
        if request.was_granted():
            self._granted_at = self._clock.now() - _POLL
            self._skip(step.stage, "It was granted at once.")
        else:
            for finding in request.look():
                self._note(finding)
        return request

    def _give_back(self, step: Step) -> None:
        """Delete what a step requested, and add what it cost. Raise `errors.CloudError` if it cannot be deleted."""
        profile = _profile(step, self._project)
        state = self._inner.adapters.states.read(NAME).state
        grants = [attempt.granted_at for attempt in (state.attempts if state else ()) if attempt.granted_at is not None]
        if self._granted_at is not None:
            grants.append(self._granted_at)
        report = self._inner.apply(
            self._inner.plan([profile], destroy=True, on_event=self._on_event), on_event=self._on_event
        )
        if report.error is not None:
            raise report.error
        if grants:
            self.usd += (self._clock.now() - min(grants)) * step.usd_per_hour / 3600
        self._active = self._granted_at = None
        self._save()

    def _skip(self, stage: Stage, because: str) -> None:
        for fact in facts_of(stage):
            if not self._has_seen(fact.id):
                self.findings = (*self.findings, not_seen(fact.id, because))
        self._save()

    @cached_property
    def _inner(self) -> Workspace:
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
        self._granted_at = journal["granted_at"]


def _profile(step: Step, project: str) -> Profile:
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
            "serving": {"image": "vllm/vllm-tpu:v0.32.0", "max_model_len": 4096},
            "placement": placement,
        }
    )
