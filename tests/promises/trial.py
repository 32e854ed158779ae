"""A person, a tool that may die at any effect, a cloud that fails; and what must hold at every moment of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

from command_line import UNKIND
from promises.mortal import INSTANCE_METHODS, METHODS, Fuse, Killed, MortalWorkspace, Watch, is_group

from tpudeploy import catalog
from tpudeploy.adapters.google.compute_engine.instances import request_id
from tpudeploy.adapters.project import STATES
from tpudeploy.adapters.state import stored
from tpudeploy.adapters.state.local import LocalState
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.errors import CloudError, StalePlan, StateLocked
from tpudeploy.domain.names import ROUTER, SliceName, Zone
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.plan import Action, Plan
from tpudeploy.domain.report import RunReport
from tpudeploy.domain.state import Attempt, Record, State
from tpudeploy.emulator import Emulator, VirtualClock, running
from tpudeploy.loading import Profile

PROFILE = """\
version: 1
name: gemma
model: {{id: google/gemma-4-E2B-it}}
tpu: {{type: {type}}}
serving: {{image: "vllm/vllm-tpu:v0.32.0", max_model_len: {max_model_len}, setup: [{setup}]}}
placement:
  backend: {api}
  zones: [{zones}]
  provisioning: [{provisioning}]
  max_run_duration: {run}
  valid_until: 15m
  max_parallel_requests: {requests}
  max_search_price_per_hour: {search_usd}
  labels: {{team: {team}}}
lifecycle: {{replace: {replace}, update: {update}, on_run_end: {on_run_end}}}
replicas: {replicas}
{router}
"""
ROUTER_ON_VM = "router: {kind: haproxy, host: vm}"
THREE = ("us-east5-a", "us-east5-b", "europe-west4-a")
# The first six offer flex-start too.
TWELVE = (
    *THREE,
    "asia-northeast1-b",
    "southamerica-west1-a",
    "us-central1-a",
    "us-central1-b",
    "us-central1-c",
    "us-east1-d",
    "us-east5-c",
    "us-south1-a",
    "us-west1-c",
)
DEFAULTS: Mapping[str, Any] = {
    "api": "queued-resource",
    "type": "v6e-1",
    "max_model_len": 16384,
    "setup": "",  # anything else makes the server fail, after a boot
    "zones": ", ".join(THREE),
    "provisioning": "spot",
    "requests": 1,
    "search_usd": "null",
    "team": "search",
    "replace": "create-before-destroy",
    "update": "in-place",
    "on_run_end": "release",
    "run": "12h",
    "replicas": 1,
    "router": "",
}
_ROUNDING = 1e-6
TRIES = 5000  # of whoever is told that somebody else is at it, until the other one is done
RE_RUNS = 12
LONG = 2400.0  # longer than a request may wait
HALF_AN_HOUR = 1800.0
# Which requests a shown action may lead to.
SHOWN: Mapping[Action, set[str]] = {
    Action.NO_OP: set(),
    Action.CREATE: {"create", "delete", "patch", "reset"},
    Action.UPDATE: {"patch", "delete"},
    Action.RESTART: {"patch", "reset", "delete"},
    Action.REPLACE: {"create", "patch", "reset", "delete"},
    Action.DESTROY: {"delete"},
}
GROUP_PARTS = ("resourcePolicies", "regionInstanceTemplates", "regionInstanceGroupManagers")
_INSERTS = {"instances", "resourcePolicies", "instanceTemplates", "instanceGroupManagers"}
_ENDING = {
    "LEFT",
    "FAILED",
    "SUSPENDED",
    "SUSPENDING",
    "DELETING",
    "STOPPING",
    "STOPPED",
    "TERMINATED",
    "DEPROVISIONING",
}
_INSTANCE_VERBS = {"setMetadata": "patch", "setLabels": "patch", "setTags": "patch", "reset": "reset"}
_SERVING = {"queued-resource": "ACTIVE", "gce-instance": "RUNNING"}
_AUTO = "auto"
# Observations without news are all alike, and a life has hundreds: here a run makes the first of them after 10 s.
CALM = Patience(poll_first=10.0)


@dataclass
class Trial:
    """One folder, one cloud, one clock. Every act ends with its report, an error of ours, or a kill."""

    folder: Path
    clock: VirtualClock
    watch: Watch
    emulator: Emulator
    backend: str | None = None
    patience: Patience = CALM
    wanted: dict[str, Any] = field(default_factory=lambda: dict(DEFAULTS))
    history: list[str] = field(default_factory=list)
    _plan: Plan | None = None
    _leaving: set[str] = field(default_factory=set)
    _previous_state: State | None = None
    _name_by_request: dict[str, str] = field(default_factory=dict)  # an insert has no name in its URL

    def apply(self, fuse: Fuse | None = None) -> RunReport | None:
        """Run `apply`. Return None where it was killed or failed; its message is the last of `history`."""
        return self._act(fuse or Fuse(), destroy=False)

    def destroy(self, fuse: Fuse | None = None) -> RunReport | None:
        return self._act(fuse or Fuse(), destroy=True)

    def plan(self) -> Plan:
        with self._workspace(Fuse()) as workspace:
            return workspace.plan([self.profile()])

    def meanwhile(self, act: Callable[[], RunReport | None]) -> None:
        """What somebody else does, to its end, while a run of this trial stands still in the middle of a step."""
        mine = self._plan, self._leaving
        self.until_done(act)
        self._plan, self._leaving = mine

    def until_done(self, act: Callable[[], RunReport | None]) -> None:
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
        api = self.wanted["api"]
        serving = set(_SERVING.values()) if api == _AUTO else {_SERVING[api]}
        machines = {"e2-small"} if self.wanted["router"] else set()
        if machines:
            serving.add("RUNNING")
        assert states.keys() <= serving, (self.emulator.live(), self.history)
        assert states.total() == self.wanted["replicas"] + len(machines), (self.emulator.live(), self.history)
        cloud = self.emulator._cloud
        single = [instance for instance in cloud.instances.values() if instance.group is None]
        types = {s.accelerator.name for s in (*cloud.slices.values(), *cloud.groups.values(), *single)}
        assert types == {self.wanted["type"], *machines}, self.history
        assert self.state is not None
        assert self.state.goal is None, self.history
        assert self._stored_bytes("endpoints/gemma.json"), self.history
        plan = self.plan()  # of several replicas, another one's run may have come near its end meanwhile
        assert plan.is_empty or all(goal.is_renewal for goal in plan.goals), (plan.changes, self.history)

    def must_be_gone(self) -> None:
        assert self.emulator.live() == {}, self.history
        assert self.state is None or (self.state.attempts, self.state.goal) == ((), None), self.history
        assert not self._stored_bytes("endpoints/gemma.json"), self.history

    @property
    def state(self) -> State | None:
        """Read behind everybody's back: it counts as no request."""
        if self.backend is None:
            return LocalState(self.folder / STATES, self.clock, who="a reader").read("gemma").state
        content = self._stored_bytes("state/gemma.json")
        return None if content is None else stored.load_state(content, "gemma", source=self.backend)

    @property
    def is_locked(self) -> bool:
        """In a bucket, where a lock outlives who was killed."""
        return self.backend is not None and self._stored_bytes("state/gemma.lock") is not None

    def _stored_bytes(self, key: str) -> bytes | None:
        if self.backend is None:
            path = self.folder / key
            return path.read_bytes() if path.exists() else None
        bucket, _, prefix = self.backend.removeprefix("gs://").partition("/")
        stored = list(self.emulator._cloud.objects.under(bucket, f"{prefix}/{key}"))
        return stored[0].content if stored else None

    def _act(self, fuse: Fuse, *, destroy: bool) -> RunReport | None:
        self.history.append(f"{'destroy' if destroy else 'apply'} {self.wanted} fuse {fuse.at}")
        began = len(self.emulator.requests)
        # A run that was killed between the state and the file has sent no client anywhere yet.
        is_published = not destroy and self.state is not None and self._stored_bytes("endpoints/gemma.json") is not None
        published = self.state.published if is_published and self.state is not None else ""
        try:
            with self._workspace(fuse) as workspace:
                self._plan = workspace.plan([self.profile()], destroy=destroy)
                attempts = () if self.state is None else self.state.attempts
                self._leaving = {a.name for a in attempts if a.releasing_at is not None}
                self.history.append(f"plan {[(c.address, c.action.value) for c in self._plan.changes]}")
                report = workspace.apply(self._plan, timeout=LONG, reset=True)
        except Killed as killed:
            self.history.append(f"killed before {killed}, {len(fuse.passed) - 1} effects done")
            return None
        except StateLocked as locked:
            self.history.append(f"StateLocked: {locked.message}")
            self.clock.sleep(HALF_AN_HOUR)  # nobody acts: a schedule comes again
            return None
        except (CloudError, StalePlan) as error:
            self.history.append(f"{type(error).__name__}: {error.message}")
            return None
        finally:
            self._check()
            self._check_shown(began)
            self._check_endpoint(published)
        self.history.append(f"report {report.error!r}")
        if report.error is None:
            self._check_done()
        return report

    def profile(self) -> Any:
        path = self.folder / "gemma.yaml"
        path.write_text(PROFILE.format(**self.wanted), encoding="utf-8")
        return Profile.load(path)

    @contextmanager
    def _workspace(self, fuse: Fuse) -> Iterator[MortalWorkspace]:
        workspace = MortalWorkspace(self.folder, backend=self.backend, clock=self.watch, patience=self.patience)
        adapters = workspace.adapters
        adapters.fuse, adapters.before, adapters.after = fuse, self._before, self._check
        with workspace:
            yield workspace

    def _before(self, effect: str, what: Any, reply_lost: bool) -> None:
        """What must hold of a deed when it is about to be done."""
        if effect == "request":
            self._check_request_count(_slice_name(what.name).replica)
        if effect in {"release", "restart"} and what.name in self.emulator.billed():
            self._check_victim(effect, what.name)
        if effect not in METHODS:
            return
        is_instance = what.backend is Backend.GCE_INSTANCE
        if effect == "request" and is_instance:
            parts = [f"{what.name}/{part}" for part in GROUP_PARTS] if is_group(what) else [what.name]
            self._name_by_request |= {request_id(what.project, what.zone, part): what.name for part in parts}
        if reply_lost:
            method = (INSTANCE_METHODS if is_instance else METHODS)[effect]
            self.emulator.script({"fault": "lost-reply", "method": method, "name": what.name, "times": 1})

    def _check_request_count(self, replica: int) -> None:
        """Check that no more requests than allowed exist, and that together they cost no more than allowed.

        What ends, is being released, or is another slice, does not count. One request may always exist.
        """
        state, live = self.state, self._live()
        assert state is not None
        attempts = [a for a in state.record(replica).attempts if a.releasing_at is None]
        if replica == ROUTER:
            assert sum(not a.is_announced for a in attempts) == 1, ("a second VM", attempts, self.history)
            return
        outstanding = self._outstanding(attempts, live)
        assert len(outstanding) <= self.wanted["requests"], ("more than allowed", outstanding, self.history)
        if self.wanted["search_usd"] != "null" and len(outstanding) > 1:
            usd = sum(map(_usd_per_hour, outstanding))
            assert usd <= float(self.wanted["search_usd"]) + _ROUNDING, ("dearer than allowed", usd, self.history)

    def _outstanding(self, attempts: Iterable[Attempt], live: Mapping[str, str]) -> list[Attempt]:
        """Return the requests of the search for a slice of the wanted kind."""
        kind = self.wanted["type"], self.wanted["api"]
        of_kind = [a for a in attempts if (a.spec["tpu.type"], self._api(a)) == kind]
        fitting = [a for a in of_kind if a.zone in self.wanted["zones"]]
        return [a for a in fitting if live.get(a.name) not in _ENDING and not self._hands_over(a)]

    def _check_victim(self, effect: str, name: str) -> None:
        """Check that a slice is released only where the plan said so, or where another one is kept.

        A serving slice is never released for another that does not serve; it is restarted only where the plan named the
        attribute that changed.
        """
        assert self._plan is not None
        replica = _slice_name(name).replica
        change = next(c for c in self._plan.changes if c.replica == replica)
        assert self.state is not None
        if effect == "release":
            assert self.state.published != name, ("clients are sent there", name, self.history)
        if effect == "restart":
            is_blue = self.wanted["update"] == "blue-green" and self._serves(name)
            assert not (is_blue and name == self.state.published), ("clients hold it", name, self.history)
            assert change.fields or not self._serves(name), (change, self.history)
            return
        goes_first = change.action is Action.REPLACE and not change.create_before_destroy
        if name in self._leaving or change.action is Action.DESTROY or goes_first:
            return  # the plan, or that of an earlier run, had its yes
        living = {a.name for a in _living_attempts(self.state.record(replica), self._live())} & set(
            self.emulator.billed()
        )
        others = living - {name}
        assert others or change.action is Action.REPLACE, (name, change.action, self.history)
        assert not self._serves(name) or any(map(self._serves, others)), ("it served", name, others, self.history)
        attempt = self.state.record(replica).attempt(name)
        if attempt is not None and attempt.is_announced and self._serves(name):
            draining_at = attempt.draining_at
            assert draining_at is not None, ("clients hold it", name, self.history)
            assert self.watch.now() - draining_at >= Patience().drain, ("clients may hold it", name, self.history)

    def _check(self) -> None:
        """Check what holds at every moment, in the middle of a run too."""
        state = self.state
        if state is None:
            assert self.emulator.live() == {}
            return
        if self._previous_state is not None:
            assert state.lineage == self._previous_state.lineage
            assert state.serial > self._previous_state.serial or state == self._previous_state, "the serial only grows"
        self._previous_state = state
        live = self._live()
        assert live.keys() <= {a.name for a in state.attempts}, ("asked for and forgotten", live, state, self.history)
        waiting = [a for a in _living_attempts(state.router, live) if not a.is_announced]
        assert len(waiting) <= 1, ("two VMs for one router", waiting, self.history)
        for record in state.records:
            living = _living_attempts(record, live)
            per = Counter(
                (a.spec["tpu.type"], self._api(a), str(a.spec["placement.zones"]), self._colour(a))
                for a in living
                if not self._hands_over(a) and a.draining_at is None
            )
            assert all(count <= self.wanted["requests"] for count in per.values()), ("too many", living, self.history)

    def _check_endpoint(self, published: str) -> None:
        """An endpoint stands while anything behind it serves, unless the plan said that its slice goes first."""
        if not published or self._plan is None or published in self._leaving:
            return
        change = next((c for c in self._plan.changes if c.replica == _slice_name(published).replica), None)
        if change is None or change.action is Action.DESTROY:
            return
        if change.action is Action.REPLACE and not change.create_before_destroy:
            return
        if self._serves(published) and self._live().get(published) in _SERVING.values():
            assert self._stored_bytes("endpoints/gemma.json"), ("withdrawn, and it serves", published, self.history)

    def _api(self, attempt: Attempt) -> str:
        """Return the API of a request, or that of all requests where the profile leaves it open."""
        return _AUTO if self.wanted["api"] == _AUTO else attempt.backend

    def _hands_over(self, attempt: Attempt) -> bool:
        """Whether another slice of its kind is to take over from it."""
        is_blue = self._colour(attempt) not in {"", str((self.wanted["max_model_len"], bool(self.wanted["setup"])))}
        return attempt.is_announced and (is_blue or attempt.is_ending)

    def _colour(self, attempt: Attempt) -> str:
        """The server that a slice was asked for with, where each server has a slice of its own; "" elsewhere."""
        if self.wanted["update"] != "blue-green":
            return ""
        return str((attempt.spec["serving.max_model_len"], "serving.setup" in attempt.spec))

    def _live(self) -> Mapping[str, str]:
        return {name: cloud for zone in self.emulator.live().values() for name, cloud in zone.items()}

    def _serves(self, name: str) -> bool:
        is_running = name in self.emulator.billed() and self._live().get(name) not in _ENDING
        # An instance is billed from its first second on, and while Google repairs its host: no machine runs then.
        with suppress(KeyError):
            return is_running and "phase=serving" in self.emulator.log(name)
        return False

    def _check_done(self) -> None:
        """Check that after a run that says it is done, each replica has one slice, and nothing else exists."""
        records = () if self.state is None else self.state.all_records
        attempts = {r.index: [a.name for a in r.attempts] for r in records if r.attempts}
        assert all(len(names) == 1 for names in attempts.values()), (attempts, self.history)
        assert self._live().keys() == {name for names in attempts.values() for name in names}, (
            self._live(),
            self.history,
        )

    def _check_shown(self, began: int) -> None:
        """Check that every request that changed something is one that the plan had shown for that replica."""
        requests = [(r.method, r.path) for r in self.emulator.requests[began:]]
        for replica, verb in filter(None, (_change(*request, self._name_by_request) for request in requests)):
            assert self._plan is not None
            actions = {c.replica: c.action for c in self._plan.changes}
            # The list of replicas on the router's VM follows them, as the published endpoint does.
            is_list = (replica, verb) == (ROUTER, "patch")
            assert is_list or verb in SHOWN[actions[replica]], (replica, verb, actions, self.history)


@contextmanager
def trial(
    trouble: Iterable[Mapping[str, Any]] = (),
    *,
    backend: str | None = None,
    patience: Patience = CALM,
    **scenario: Any,
) -> Iterator[Trial]:
    """Yield a user with an empty folder and an emulated cloud with that trouble. `backend` is gs://bucket/prefix.

    The cloud is as slow as a real one, and no two of its durations are equal; what the scenario says counts before.
    """
    clock = VirtualClock()
    timings = {**UNKIND["timings"], **scenario.pop("timings", {})}
    boot = {"setup_fails": True}
    settings = {"nodes": "simulated", **UNKIND, "boot": boot, "trouble": list(trouble), **scenario, "timings": timings}
    with (
        TemporaryDirectory() as folder,
        running(clock=clock, scenario=settings) as emulator,
        patch.dict("os.environ", {**emulator.environment, "GOOGLE_CLOUD_PROJECT": "emulated"}),
    ):
        yield Trial(
            folder=Path(folder),
            clock=clock,
            watch=Watch(clock),
            emulator=emulator,
            backend=backend,
            patience=patience,
        )


def _living_attempts(record: Record, live: Mapping[str, str]) -> list[Attempt]:
    """Return what exists for one replica, and neither ends nor is being released."""
    return [a for a in record.attempts if a.releasing_at is None and live.get(a.name, "FAILED") not in _ENDING]


def _usd_per_hour(attempt: Attempt) -> float:
    """Return the list price of a requested slice. One without a price counts as the most expensive of its model."""
    accelerator = catalog.accelerator_type(str(attempt.spec["tpu.type"]))
    assert accelerator is not None
    generation, model = accelerator.generation, attempt.provisioning
    own = catalog.usd_per_chip_hour(generation, attempt.zone.region, model)
    return accelerator.chips * (max(_known_prices(generation)) if own is None else own)


def _known_prices(generation: str) -> Iterator[float]:
    for zone in TWELVE:
        for model in (Provisioning.SPOT, Provisioning.FLEX_START):
            usd = catalog.usd_per_chip_hour(generation, Zone(zone).region, model)
            if usd is not None:
                yield usd


def _slice_name(name: str) -> SliceName:
    parsed = SliceName.parse(name)
    assert parsed is not None, name
    return parsed


def _change(method: str, target: str, name_by_request: Mapping[str, str]) -> tuple[int, str] | None:
    """Return the replica and the verb of a request that changes something; None for one that only reads."""
    where = urlsplit(target)
    if "/storage/" in where.path:
        return None  # our state, not a request for a slice
    last = where.path.rpartition("/")[2]
    if method == "POST" and last == "queuedResources":
        return _slice_name(parse_qs(where.query)["queuedResourceId"][0]).replica, "create"
    if method == "POST" and last in _INSERTS:
        return _slice_name(name_by_request[parse_qs(where.query)["requestId"][0]]).replica, "create"
    verbs = {"DELETE": "delete", "PATCH": "patch"}
    if method in verbs:
        return _slice_name(last).replica, verbs[method]
    if method == "POST" and last in _INSTANCE_VERBS:
        name, _, _ = where.path.split("/")[-2].partition("-w-")  # of a machine of a group
        return _slice_name(name).replica, _INSTANCE_VERBS[last]
    if last.endswith(":reset"):
        return _slice_name(last.removesuffix(":reset")).replica, "reset"
    return None
