"""tpudeploy's own policy in a world: the real `decide`, its steps carried out as by `apply -watch`, until one lasts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from bench.hunting.cloud import Cloud
from bench.hunting.outcome import Outcome, next_look
from bench.hunting.setting import CHIPS, HORIZON, LASTING, LOOK_EVERY
from bench.hunting.worlds import World

import tpudeploy as td
from tpudeploy import Workspace
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import AUTO, Candidate, Deployment, Provisioning
from tpudeploy.domain.life import ReleaseBegan, ReleaseWithdrawn
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.slices import BootPhase, BootReport, Health, Observed, Phase, Refusal
from tpudeploy.domain.state import Attempt, Boot, Record, State
from tpudeploy.domain.step import Done, Forget, GiveUp, Reclaim, Release, Request, Step, Wait
from tpudeploy.emulator import VirtualClock
from tpudeploy.engine.budget import CreateBudget
from tpudeploy.node.fingerprint import server_print
from tpudeploy.node.node_facts import SPEC_KEY
from tpudeploy.node.request import valid_until_seconds
from tpudeploy.planning.resolve import in_turn
from tpudeploy.reconcile.attempt_status import DecisionContext
from tpudeploy.reconcile.decide import decide
from tpudeploy.reconcile.merge_observation import merge_observation
from tpudeploy.reconcile.refusals import add_refusal

PROFILE = Path(__file__).parents[3] / "profiles" / "gemma4-e2b-v6e1.yaml"
MODELS = (Provisioning.FLEX_START, Provisioning.SPOT)
PATIENCE = Patience()

Tell = Callable[[float, Record, Step], None]


def hunt(
    world: World,
    requests: int | None,
    models: tuple[Provisioning, ...] = MODELS,
    *,
    tell: Tell = lambda _at, _record, _step: None,
    skips: bool = True,
    backends: tuple[Backend, ...] = (Backend.QUEUED_RESOURCE,),
) -> Outcome:
    """At most `requests` at once (None: any number), in every zone, with these models and APIs in order of preference.

    `tell` hears every step before it is taken. `skips`: looks are left out before which nothing has changed or fallen
    due; it comes to the same, sooner.
    """
    return _Hunt(world, deployment(world, requests, models, backends), tell, skips=skips).outcome()


def deployment(
    world: World,
    requests: int | None,
    models: tuple[Provisioning, ...],
    backends: tuple[Backend, ...] = (Backend.QUEUED_RESOURCE,),
) -> Deployment:
    zones = tuple(place.zone for place in world.of_api(Backend.QUEUED_RESOURCE))
    candidates = tuple(
        Candidate(zone=zone, provisioning=model, usd_per_chip_hour=None, backend=backend)
        for model in models
        for zone, backend in in_turn(zones, backends)
    )
    chosen = AUTO if len(backends) > 1 else backends[0].value
    most = requests or len(candidates)
    return replace(
        _any_deployment(chosen),
        candidates=candidates,
        max_parallel_requests=most,
        search_usd_per_hour=None,
        first_requests=None,
    )


@cache
def _any_deployment(backend: str) -> Deployment:
    profile = td.Profile.load(PROFILE, set={"tpu.type": f"v6e-{CHIPS}", "placement.backend": backend})
    return Workspace.open().deployment(profile, offline=True)


class _Hunt:
    def __init__(self, world: World, aim: Deployment, tell: Tell, *, skips: bool) -> None:
        self._aim = aim
        self._print = server_print(aim.attributes)
        self._cloud = Cloud(world, metadata={SPEC_KEY: self._print})
        self._boot = world.setting.boot
        self._state = State(deployment=aim.name, lineage="0" * 32, records=(Record(index=0),))
        self._clock = VirtualClock(start=0.0)
        self._creates = {b: CreateBudget(self._clock, every=PATIENCE.create_every) for b in aim.backends}
        self._tell = tell
        self._skips = skips
        self._now = 0.0
        self._usable_at = math.inf
        self._kept: str | None = None

    def outcome(self) -> Outcome:
        while self._now < HORIZON and (pause := self._tick()) is not None:
            if pause > 0:
                due = min(self._cloud.next_turn(), self._now + pause, *self._due_by_itself())
                assert due < math.inf, "nothing will ever happen, and nothing is waited for"
                self._now = next_look(self._now, due if self._skips else self._now)
                self._cloud.pass_until(self._now)
        return Outcome.of(self._cloud, now=self._now, usable_at=self._usable_at, winner=self._kept)

    def _tick(self) -> float | None:
        """Look, decide, act; seconds until that is due again, infinite until something changes, None at the end."""
        observed = self._look()
        self._state = merge_observation(self._state, observed)
        self._clock.sleep(self._now - self._clock.now())
        creates = {backend: budget.available() for backend, budget in self._creates.items()}
        creates_in = {backend: budget.opens_in() for backend, budget in self._creates.items()}
        moment = DecisionContext(observed=observed, patience=PATIENCE, creates=creates, creates_in=creates_in)
        steps = decide(self._aim, self._record, moment)
        for step in steps:
            self._tell(self._now, self._record, step)
            if not self._act(step):
                return 0.0  # a refusal: what is left was decided without knowing it
        if all(isinstance(step, Done) for step in steps):
            remaining = self._usable_at + LASTING - self._now
            return remaining if remaining > 0 else None
        if not any(isinstance(step, Done) for step in steps):
            self._kept, self._usable_at = None, math.inf
        if all(isinstance(step, Done | GiveUp) for step in steps):
            return None
        due = [s.seconds for s in steps if isinstance(s, Wait) and s.seconds is not None]
        if any(isinstance(step, Forget) for step in steps):
            due.append(LOOK_EVERY)  # without it, there may be something else to do
        return min(due, default=math.inf)

    def _look(self) -> Observed:
        slices = self._cloud.slices
        up = [name for name in slices if self._cloud.active_since(name) + self._boot <= self._now]
        report = BootReport(phase=BootPhase.SERVING, spec=self._print)
        return Observed(
            at=self._now,
            slices=slices,
            reports=dict.fromkeys(up, report),
            health=dict.fromkeys(up, Health(serving=True, detail="")),
        )

    def _act(self, step: Step) -> bool:
        """Whether the steps after it are still right."""
        match step:
            case Request():
                return self._request(step)
            case Release():
                attempt = self._attempt(step.name)
                self._store(
                    attempt.after(ReleaseBegan(releasing_at=self._now, reason=step.reason, is_spare=step.is_spare)),
                    step.refusal,
                )
                self._cloud.release(self._now, step.name)
            case Reclaim():
                self._store(self._attempt(step.name).after(ReleaseWithdrawn()), None)
            case Forget():
                self._drop(self._attempt(step.name), step.refusal)
                self._cloud.forget(step.name)
            case Done():
                self._usable_at = self._now if step.name != self._kept else self._usable_at
                self._kept = step.name
            case Wait() | GiveUp():
                pass
            case _:
                raise AssertionError(f"a slice as it was asked for needs a {type(step).__name__}")
        return True

    def _request(self, step: Request) -> bool:
        place = step.candidate
        lapses = self._now + valid_until_seconds(self._aim, place)
        attempt = Attempt(
            name=str(self._state.slice_name(step.replica)),
            project="p",
            zone=place.zone,
            provisioning=place.provisioning,
            spec=self._aim.attributes_at(place.backend),
            asked_at=self._now,
            expires_at=lapses,
            boot=Boot(server=self._print),
        )
        self._store(attempt, None)
        self._state = replace(self._state, next_attempt=self._state.next_attempt + 1)
        self._creates[place.backend].spend()
        refusal = self._cloud.ask(
            self._now, attempt.name, place.zone, place.provisioning, lapses, backend=place.backend
        )
        if refusal is not None:
            self._drop(attempt, refusal)
        return refusal is None

    @property
    def _record(self) -> Record:
        return self._state.record(0)

    def _attempt(self, name: str) -> Attempt:
        attempt = self._record.attempt(name)
        assert attempt is not None
        return attempt

    def _store(self, attempt: Attempt, refusal: Refusal | None) -> None:
        self._save(self._record.with_attempt(attempt), attempt, refusal)

    def _drop(self, attempt: Attempt, refusal: Refusal | None) -> None:
        self._save(self._record.without(attempt.name), attempt, refusal)

    def _save(self, record: Record, attempt: Attempt, refusal: Refusal | None) -> None:
        if refusal is not None:
            others = [a for a in record.attempts if a.name != attempt.name]
            refusals = add_refusal(
                record.refusals, attempt, refusal, own_attempts=others, now=self._now, patience=PATIENCE
            )
            record = replace(record, refusals=refusals)
        self._state = self._state.with_record(record)

    def _due_by_itself(self) -> Iterator[float]:
        """When a slice serves, and when a deletion that did not take is due to be asked for again: no step tells these."""
        for attempt in self._record.attempts:
            observed = self._cloud.slices.get(attempt.name)
            serves_at = self._cloud.active_since(attempt.name) + self._boot
            if self._now < serves_at < math.inf:
                yield serves_at
            if attempt.releasing_at is not None and observed is not None and observed.phase is not Phase.LEAVING:
                yield attempt.releasing_at + PATIENCE.release_again
