"""A person, a tool that may die at any effect, a cloud that fails; and what must hold at every moment of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

from tpudeploy.adapters.project import STATES
from tpudeploy.adapters.state.local import LocalState
from tpudeploy.domain.errors import CloudError, StalePlan
from tpudeploy.domain.events import Event
from tpudeploy.domain.names import SliceName
from tpudeploy.domain.plan import Action, Plan
from tpudeploy.domain.report import Report
from tpudeploy.domain.state import State
from tpudeploy.emulator import Emulator, VirtualClock, running
from tpudeploy.loading import Profile
from tpudeploy.ports import World
from tpudeploy.workspace import Workspace

PROFILE = """\
version: 1
name: gemma
model: {{id: google/gemma-4-E2B-it}}
tpu: {{type: {type}}}
serving: {{image: "vllm/vllm-tpu:v0.32.0", max_model_len: {max_model_len}}}
placement:
  zones: [{zones}]
  provisioning: [{provisioning}]
  max_run_duration: 12h
  valid_until: 15m
  max_parallel_requests: {requests}
  labels: {{team: {team}}}
lifecycle: {{replace: {replace}}}
replicas: {replicas}
"""
DEFAULTS: Mapping[str, Any] = {
    "type": "v6e-1",
    "max_model_len": 16384,
    "zones": "us-east5-a, us-east5-b, europe-west4-a",
    "provisioning": "spot",
    "requests": 1,
    "team": "search",
    "replace": "create-before-destroy",
    "replicas": 1,
}
RE_RUNS = 12
LONG = 2400.0  # longer than a request may wait
# Which requests a shown action may lead to.
SHOWN: Mapping[Action, set[str]] = {
    Action.NO_OP: set(),
    Action.CREATE: {"create", "delete", "patch", "reset"},
    Action.UPDATE: {"patch", "delete"},
    Action.RESTART: {"patch", "reset", "delete"},
    Action.REPLACE: {"create", "patch", "delete"},
    Action.DESTROY: {"delete"},
}
_ENDING = {"FAILED", "SUSPENDED", "SUSPENDING", "DELETING"}


class Killed(BaseException):
    """kill -9, as it looks from inside: nothing catches it, and nothing runs after it."""


@dataclass
class Fuse:
    """Kills before the effect numbered `at`, counted from 0; None never. After one effect is before the next."""

    at: int | None = None
    passed: list[str] = field(default_factory=list)

    def burn(self, where: str) -> None:
        self.passed.append(where)
        if len(self.passed) - 1 == self.at:
            raise Killed(where)


class Mortal:
    """A port: its effects are where the process may end. Looks are not, for they leave nothing behind."""

    EFFECTS = frozenset({"request", "release", "update", "restart", "write", "publish"})

    def __init__(
        self, port: object, fuse: Fuse, *, before: Callable[[str, Any], None], after: Callable[[], None]
    ) -> None:
        self._port, self._fuse, self._before, self._after = port, fuse, before, after

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        if name not in self.EFFECTS:
            return method

        def effect(*given: Any, **named: Any) -> Any:
            self._fuse.burn(name)
            self._before(name, given[0])
            answer = method(*given, **named)
            self._after()
            return answer

        return effect


class MortalWorkspace(Workspace):
    """The library as it is, its effects watched."""

    fuse: Fuse
    before: Callable[[str, Any], None]
    after: Callable[[], None]

    def _world(self, on_event: Callable[[Event], None] | None) -> World:
        world = super()._world(on_event)
        return replace(world, cloud=self._mortal(world.cloud), state=self._mortal(world.state))

    def _mortal(self, port: object) -> Any:
        return Mortal(port, self.fuse, before=self.before, after=self.after)


@dataclass
class Watch:
    """The tool's clock: the world's time, by as much `ahead` as it is wrong."""

    world: VirtualClock
    ahead: float = 0.0

    def now(self) -> float:
        return self.world.now() + self.ahead

    def sleep(self, seconds: float) -> None:
        self.world.sleep(seconds)

    def stop(self) -> None:
        self.world.stop()


@dataclass
class Trial:
    """One folder, one cloud, one clock. Every act ends with its report, an error of ours, or a kill."""

    folder: Path
    clock: VirtualClock
    watch: Watch
    emulator: Emulator
    wanted: dict[str, Any] = field(default_factory=lambda: dict(DEFAULTS))
    history: list[str] = field(default_factory=list)
    _plan: Plan | None = None
    _leaving: set[str] = field(default_factory=set)
    _seen: State | None = None

    def apply(self, fuse: Fuse | None = None) -> Report | None:
        """None where the run was killed or said why it could not; what it said is the last of `history`."""
        return self._act(fuse or Fuse(), destroy=False)

    def destroy(self, fuse: Fuse | None = None) -> Report | None:
        return self._act(fuse or Fuse(), destroy=True)

    def plan(self) -> Plan:
        with self._workspace(Fuse()) as workspace:
            return workspace.plan([self.profile()])

    def until_done(self, act: Callable[[], Report | None]) -> None:
        """Run again, as a person would, until it says that it is done."""
        for _ in range(RE_RUNS):
            report = act()
            if report is not None and report.error is None:
                return
        raise AssertionError(f"does not converge: {self.history}")

    def heal(self) -> None:
        """No more trouble for whatever is asked from now on."""
        self.emulator._cloud.troubles.clear()

    def must_serve(self) -> None:
        """Exactly the wanted slices, nothing beside them, and nothing left to do."""
        states = Counter(state for zone in self.emulator.live().values() for state in zone.values())
        assert states == {"ACTIVE": self.wanted["replicas"]}, (self.emulator.live(), self.history)
        types = {s.accelerator.name for s in self.emulator._cloud.slices.values()}
        assert types == {self.wanted["type"]}, self.history
        assert self.state is not None
        assert self.state.goal is None, self.history
        assert (self.folder / "endpoints" / "gemma.json").exists(), self.history
        plan = self.plan()
        assert plan.is_empty, (plan.changes, self.history)

    def must_be_gone(self) -> None:
        assert self.emulator.live() == {}, self.history
        assert self.state is None or (self.state.attempts, self.state.goal) == ((), None), self.history
        assert not (self.folder / "endpoints" / "gemma.json").exists(), self.history

    @property
    def state(self) -> State | None:
        return LocalState(self.folder / STATES, self.clock, who="a reader").read("gemma").state

    def _act(self, fuse: Fuse, *, destroy: bool) -> Report | None:
        self.history.append(f"{'destroy' if destroy else 'apply'} {self.wanted} fuse {fuse.at}")
        began = len(self.emulator.requests)
        try:
            with self._workspace(fuse) as workspace:
                self._plan = workspace.plan([self.profile()], destroy=destroy)
                attempts = () if self.state is None else self.state.attempts
                self._leaving = {a.name for a in attempts if a.releasing_at is not None}
                self.history.append(f"plan {[(c.address, c.action.value) for c in self._plan.changes]}")
                report = workspace.apply(self._plan, timeout=LONG)
        except Killed as killed:
            self.history.append(f"killed before {killed}")
            return None
        except (CloudError, StalePlan) as error:
            self.history.append(f"{type(error).__name__}: {error.message}")
            return None
        finally:
            self._check()
            self._check_shown(began)
        self.history.append(f"report {report.error!r}")
        return report

    def profile(self) -> Any:
        path = self.folder / "gemma.yaml"
        path.write_text(PROFILE.format(**self.wanted), encoding="utf-8")
        return Profile.load(path)

    @contextmanager
    def _workspace(self, fuse: Fuse) -> Iterator[MortalWorkspace]:
        with MortalWorkspace(self.folder, clock=self.watch) as workspace:
            workspace.fuse, workspace.before, workspace.after = fuse, self._before, self._check
            yield workspace

    def _before(self, effect: str, what: Any) -> None:
        """What stands is given back only where the plan said so, or where another one is kept.

        What serves is restarted only where the plan named the attribute that changed.
        """
        if effect not in {"release", "restart"} or what.name not in self.emulator.billed():
            return
        assert self._plan is not None
        name = _parsed(what.name)
        change = next(c for c in self._plan.changes if c.replica == name.replica)
        if effect == "restart":
            assert change.fields or "phase=serving" not in self.emulator.log(what.name), (change, self.history)
            return
        action = change.action
        if what.name in self._leaving:
            return  # an earlier run had its yes
        others = [n for n in self.emulator.billed() if n != what.name and _parsed(n).replica == name.replica]
        assert others or action in {Action.REPLACE, Action.DESTROY}, (what, action, self.history)

    def _check(self) -> None:
        """What holds at every moment, in the middle of a run too."""
        state = self.state
        if state is None:
            assert self.emulator.live() == {}
            return
        if self._seen is not None:
            assert state.lineage == self._seen.lineage
            assert state.serial > self._seen.serial or state == self._seen, "the serial only grows"
        self._seen = state
        known = {a.name: (r.index, a) for r in state.records for a in r.attempts}
        live = {name: cloud for zone in self.emulator.live().values() for name, cloud in zone.items()}
        assert live.keys() <= known.keys(), ("asked for and forgotten", live, known, self.history)
        kept = [known[n] for n in live if live[n] not in _ENDING and known[n][1].releasing_at is None]
        per = Counter((replica, a.spec["tpu.type"], str(a.spec["placement.zones"])) for replica, a in kept)
        assert all(count == 1 for count in per.values()), ("two slices for one replica", kept, self.history)

    def _check_shown(self, began: int) -> None:
        """Every request that changed something is one that the plan had shown for that replica."""
        asked = [(r.method, r.path) for r in self.emulator.requests[began:]]
        for replica, verb in filter(None, (_change(*request) for request in asked)):
            assert self._plan is not None
            actions = {c.replica: c.action for c in self._plan.changes}
            assert verb in SHOWN[actions[replica]], (replica, verb, actions, self.history)


@contextmanager
def trial(trouble: Iterable[Mapping[str, Any]] = (), **scenario: Any) -> Iterator[Trial]:
    """A person with an empty folder before an emulated cloud with that trouble."""
    clock = VirtualClock()
    settings = {"nodes": "simulated", "boot": {"boot_seconds": 60}, "trouble": list(trouble), **scenario}
    with (
        TemporaryDirectory() as folder,
        running(clock=clock, scenario=settings) as emulator,
        patch.dict("os.environ", {**emulator.environment, "GOOGLE_CLOUD_PROJECT": "emulated"}),
    ):
        yield Trial(folder=Path(folder), clock=clock, watch=Watch(clock), emulator=emulator)


def _parsed(name: str) -> SliceName:
    parsed = SliceName.parse(name)
    assert parsed is not None, name
    return parsed


def _change(method: str, target: str) -> tuple[int, str] | None:
    """(replica, what it does) of a request that changes something; None for one that only looks."""
    where = urlsplit(target)
    last = where.path.rpartition("/")[2]
    if method == "POST" and last == "queuedResources":
        return _parsed(parse_qs(where.query)["queuedResourceId"][0]).replica, "create"
    verbs = {"DELETE": "delete", "PATCH": "patch"}
    if method in verbs:
        return _parsed(last).replica, verbs[method]
    if last.endswith(":reset"):
        return _parsed(last.removesuffix(":reset")).replica, "reset"
    return None
