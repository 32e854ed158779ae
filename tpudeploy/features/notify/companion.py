"""The companion of a run: it looks at what the states say beside the run, and sends what is news.

It never delays a deployment, and no error of it ends one. It goes by what the states say, not by what it heard: so
whatever kills a run, the next one tells it. Only a failure, which no state has, is told by the run that has it.

Why: decision 91 in docs/decisions.md.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tpudeploy.config.rules.notify import target_problem
from tpudeploy.domain import errors, events
from tpudeploy.domain.plan import Goal, Plan
from tpudeploy.domain.state import State
from tpudeploy.engine.cost_wall import budgets_now
from tpudeploy.features.notify import notice as notices
from tpudeploy.features.notify import outbox as boxes
from tpudeploy.features.notify.delivery import KEY, NotDelivered, Recipient, deliver
from tpudeploy.features.notify.notice import Notice
from tpudeploy.features.notify.outbox import Delivery, Outbox
from tpudeploy.ports import World
from tpudeploy.wiring import Adapters

OPERATORS = "TPUDEPLOY_NOTIFY"  # targets of whoever runs it, one a line
_LOCK = "_outbox"  # no deployment has such a name
_EVERY = 60.0  # seconds between two looks
_SECONDS = 5.0  # that a receiver has
_LAST_PAUSES = (0.0, 1.0, 2.0, 4.0)  # seconds before each try at the end of a run
_FIRST_PAUSE, _LONGEST_PAUSE = 60.0, 900.0  # between the tries of a run that goes on


def companion(adapters: Adapters, plan: Plan) -> Companion | None:
    """Return the companion of a run, or None without targets."""
    operators = [line.strip() for line in os.environ.get(OPERATORS, "").splitlines() if line.strip()]
    is_needed = bool(operators) or any(goal.notify.targets or goal.notify.ignored for goal in plan.goals)
    return Companion(adapters, plan, operators) if is_needed else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Backoff:
    """A target that did not accept a notice: when it is tried again, and whether it may accept it a moment later."""

    until: float
    pause: float
    is_fault: bool


class Companion:
    """A `engine.schedule.ScheduledRun` that begins before the deployments do, and ends after them, however that was."""

    def __init__(self, adapters: Adapters, plan: Plan, operators: Iterable[str]) -> None:
        self._adapters = adapters
        wrong = {text: target_problem(text) for text in operators}
        self._own = tuple(Recipient(text=text, key=_environment_key) for text, why in wrong.items() if why is None)
        self._unusable = tuple(filter(None, wrong.values()))
        has_all = bool(self._own)
        self._ignored = {goal.name: goal.notify.ignored for goal in plan.goals if goal.notify.ignored}
        self._goals = {goal.name: goal for goal in plan.goals if has_all or goal.notify.targets}
        self._targets = {goal.name: (*self._own, *self._targets_of(goal)) for goal in plan.goals}
        self._failures: list[tuple[float, str, str, str]] = []
        self._failures_lock = threading.Lock()
        self._backoffs: dict[str, _Backoff] = {}  # by the digest of a target
        self._problems: dict[str, str] = {}  # by the label of a target, or "" for the outbox
        self._world: World | None = None

    def heard(self, event: events.Event) -> None:
        """Remember a failure, from any thread. Everything else is in the states."""
        if isinstance(event, events.ChangeFailed | events.Warned) and event.code:
            with self._failures_lock:
                self._failures.append((event.at, event.address, event.code, event.message))

    def begin(self, world: World) -> None:
        """Enter what the states say before the run, and what a removal makes true: afterwards nothing says it."""
        self._world = world
        for why, hint in self._unusable:
            self._warn(world, "", f"A target in {OPERATORS} is left out: {why}.", f"{hint[:1].upper()}{hint[1:]}.")
        for name, why in self._ignored.items():
            hint = f"Set {OPERATORS} to URLs or commands of your own, one a line."
            self._warn(world, name, f"The `notify` of {name} is left out: {why}.", hint)
        self._look(world, sends=False)

    def step(self) -> float | None:
        """Look at the states, and send what is news. Return the seconds until the next look."""
        assert self._world is not None, "it has begun"
        self._look(self._world)
        return _EVERY

    def end(self, world: World, *, is_interrupted: bool) -> None:
        """Send what is left, within seconds, and say once what could not be sent."""
        for pause in () if is_interrupted else _LAST_PAUSES:
            if pause:
                world.clock.sleep(pause)
            self._backoffs = {target: each for target, each in self._backoffs.items() if not each.is_fault}
            self._look(world)
            if not any(each.is_fault for each in self._backoffs.values()):
                break
        for label, why in self._problems.items():
            message = f"Not everything was sent to {label}: it {why}." if label else f"No notification was sent: {why}"
            self._warn(world, "", message, "It is kept for a week: the next apply, destroy or apply -watch sends it.")

    def _look(self, world: World, *, sends: bool = True) -> None:
        if not self._goals:
            return None
        try:
            lease = world.state.lock(_LOCK, "notify")
        except errors.StateLocked:
            return None  # another run sends
        except (errors.TpudeployError, OSError) as error:
            return self._note_trouble(error)
        try:
            self._work(world, sends=sends)
            self._problems.pop("", None)
        except errors.Interrupted:
            raise
        except Exception as error:  # noqa: BLE001 - the run has a slice that is billed: no answer of a receiver ends it
            self._note_trouble(error)
        finally:
            world.state.unlock(lease)

    def _note_trouble(self, error: Exception) -> None:
        self._problems[""] = error.message if isinstance(error, errors.TpudeployError) else str(error)

    def _work(self, world: World, *, sends: bool) -> None:
        text, version = world.state.outbox()
        box, now = boxes.loads(text), world.clock.now()
        states = {name: world.state.read(name).state for name in self._goals}
        news = self._news(world, states, now, removes=not sends)
        current = box.with_notices(news, now).settled(lambda notice: _is_gone(notice, states), now).without_old(now)
        version = self._save(world, box, current, version)
        if not sends:
            return
        for delivery in current.waiting:
            if self._is_sent(world, delivery):
                after = current.with_sent(delivery, world.clock.now())
                version, current = self._save(world, current, after, version), after

    def _save(self, world: World, before: Outbox, after: Outbox, version: str) -> str:
        return version if after == before else world.state.replace_outbox(boxes.dumps(after), over=version)

    def _news(
        self, world: World, states: Mapping[str, State | None], now: float, *, removes: bool
    ) -> Iterator[Delivery]:
        """Yield what the states, the ledger and this run say, to each of its targets."""
        for notice in self._notices(world, states, now, removes=removes):
            for target in self._targets_for(notice):
                yield Delivery(notice=notice, target=target.digest, since=now)

    def _notices(
        self, world: World, states: Mapping[str, State | None], now: float, *, removes: bool
    ) -> Iterator[Notice]:
        for name, state in states.items():
            if state is None:
                continue
            yield from notices.of_state(state, now)
            goal = self._goals[name]
            is_removed = removes and goal.deployment is None and goal.targets is None
            removal = notices.of_removal(state, now) if is_removed else None
            if removal is not None:
                yield removal
        with self._failures_lock:
            failures = tuple(self._failures)
        for at, address, code, message in failures:
            name = address.partition("[")[0]
            state = states.get(name)
            yield notices.of_failure(name, state, at=at, where=address, code=code, message=message)
        deployments = [goal.deployment for goal in self._goals.values() if goal.deployment is not None]
        for use in budgets_now(world.state, deployments, now):
            notice = notices.of_budget(use, now)
            if notice is not None:
                yield notice

    def _targets_for(self, notice: Notice) -> Sequence[Recipient]:
        """Return whom to tell: of a team's budget, everybody."""
        if notice.deployment:
            return self._targets.get(notice.deployment, self._own)
        return tuple({each.digest: each for targets in self._targets.values() for each in targets}.values())

    def _is_sent(self, world: World, delivery: Delivery) -> bool:
        """Return whether a notice was delivered now. After a failure, its target is left alone for a while."""
        target = next((each for each in self._targets_for(delivery.notice) if each.digest == delivery.target), None)
        backoff, now = self._backoffs.get(delivery.target), world.clock.now()
        if target is None or delivery.notice.unless or (backoff is not None and now < backoff.until):
            return False
        seconds = min(_SECONDS, self._adapters.patience.call_timeout)
        try:
            deliver(target, delivery.notice, now=now, folder=self._adapters.folder, seconds=seconds)
        except NotDelivered as failure:
            pause = _FIRST_PAUSE if backoff is None else min(backoff.pause * 2, _LONGEST_PAUSE)
            self._backoffs[target.digest] = _Backoff(until=now + pause, pause=pause, is_fault=failure.is_fault)
            self._problems[target.label] = str(failure)
            return False
        self._backoffs.pop(target.digest, None)
        self._problems.pop(target.label, None)
        return True

    def _targets_of(self, goal: Goal) -> Iterator[Recipient]:
        for text in goal.notify.targets:
            secret = goal.notify.secret
            yield Recipient(text=text, key=self._secret_key(goal, secret) if secret else _environment_key)

    def _secret_key(self, goal: Goal, secret: str) -> Callable[[], bytes]:
        project = None if goal.deployment is None else goal.deployment.project
        keys: dict[str, bytes] = {}

        def read() -> bytes:
            from tpudeploy.adapters.google import secrets

            if secret not in keys:
                try:
                    place = project or self._adapters.project() or ""
                    keys[secret] = secrets.read(self._adapters.connection, place, secret).encode()
                except errors.TpudeployError as error:
                    why = f"got nothing, because the key that signs cannot be read: {error.message.rstrip('.')}"
                    raise NotDelivered(why) from error
            return keys[secret]

        return read

    @staticmethod
    def _warn(world: World, name: str, message: str, hint: str) -> None:
        world.emit(events.Warned(at=world.clock.now(), address=name, message=message, hint=hint))


def _environment_key() -> bytes:
    key = os.environ.get(KEY, "")
    if not key:
        raise NotDelivered(f"got nothing, because there is no key that signs (notify_key, or {KEY})")
    return key.encode()


def _is_gone(notice: Notice, states: Mapping[str, State | None]) -> bool:
    """Return whether a removal is complete. That of a deployment of which this run knows nothing is left as it is."""
    if notice.deployment not in states:
        return False
    state = states[notice.deployment]
    return state is None or state.lineage != notice.unless or not state.slice_attempts
