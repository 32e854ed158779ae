"""Publish the endpoint and the list of the slices that take requests, before anything is done to one of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from tpudeploy.domain import errors, events
from tpudeploy.domain.life import ServerAnswered
from tpudeploy.domain.names import ROUTER, address
from tpudeploy.domain.plan import Goal
from tpudeploy.domain.report import ReplicaEndpoint
from tpudeploy.domain.router import Router, RouterHost, published_router
from tpudeploy.domain.slices import Health, Observed, Phase, Slice
from tpudeploy.domain.state import Attempt, State
from tpudeploy.domain.step import Done, Drain, Forget, GiveUp, Release, Step
from tpudeploy.engine.confirmation import addresses_now
from tpudeploy.engine.observe import not_observed
from tpudeploy.engine.request_events import about
from tpudeploy.engine.session import StateSession, open_session
from tpudeploy.node.router_machine import router_on
from tpudeploy.ports import World
from tpudeploy.reconcile.readiness import ready_slices, takes_requests

_LOCALHOST = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """The slice that clients are to be sent to. `url` is "" if it is not known now: the file keeps what it says."""

    replica: int
    name: str
    url: str


class EndpointPublisher:
    """Publishes the endpoint of the lowest replica that serves, and the list of all slices that take requests.

    A slice that drains, leaves or fails is not published: the file then names another one that serves, or is withdrawn.
    """

    def __init__(self, world: World, goal: Goal) -> None:
        self._world = world
        self._goal = goal
        self._began = world.clock.now()
        self._endpoints: dict[int, ReplicaEndpoint] = {}
        self._file: Mapping[str, object] | None = None  # its contents, once they were read
        self._is_endpoint_current = False
        self._urls: dict[str, str] = {}  # of each slice on the list; a probe may reach the same slice by another route
        self._router_on_vm: Router | None = None  # once a completion came through it
        self._has_router_answered = False  # the one on this machine
        self._announced_machines: set[str] = set()  # VMs of the router that were reported

    @property
    def endpoints(self) -> tuple[ReplicaEndpoint, ...]:
        """Return the endpoint of each replica that was reported, and first that of their router, if they have one."""
        replicas = tuple(self._endpoints[replica] for replica in sorted(self._endpoints))
        router = self._router()
        if router is None or not replicas:
            return replicas
        own = ReplicaEndpoint(address=self._goal.name, url=router.url, reached_from="router", zone="", slice_name="")
        return (own, *replicas)

    def publish(self, session: StateSession, observed: Observed, steps: Iterable[Step]) -> None:
        """Emit `Serving` once for each slice, and publish the endpoint of one that stays.

        `steps` are the steps of this observation, before any of them is executed. Raise `errors.StateError` or
        `errors.Fault`.
        """
        leaving, draining, failed = self._record_steps(session, steps)
        self._router_on_vm = self._find_router(session.state, observed, leaving | draining)
        usable = {
            attempt.name: replica
            for replica, attempt in session.state.indexed_slice_attempts
            if attempt.name not in leaving and _is_usable(attempt, observed, has_failed=attempt.name in failed)
        }
        self._endpoints = {
            replica: endpoint for replica, endpoint in self._endpoints.items() if endpoint.slice_name in usable
        }
        ready = ready_slices(session.state, observed, leaving | draining)
        # Clients that use one endpoint are sent to a slice that takes requests, as long as there is one.
        choices = {name: usable[name] for name in ready if name in usable} or usable
        target, replicas = self._choose(session.state, choices, observed), self._listed(ready, observed)
        self._write(session, target, replicas)
        if self._file:
            keep_router(self._world, self._goal)
        router = _router_here(self._goal)
        if router is None or not self._file or not self._awaits_router(router):
            return
        # It has its list now. Clients get its address once it answers, at the latest when the run ends.
        self._has_router_answered = not _why_silent(self._world, self._goal, router, once=True)
        if self._has_router_answered:
            self._write(session, target, replicas)

    def _record_steps(self, session: StateSession, steps: Iterable[Step]) -> tuple[set[str], set[str], set[str]]:
        """Record who serves, and return the names of the slices that leave, that begin to drain, and that failed."""
        leaving: set[str] = set()
        draining: set[str] = set()
        failed: set[str] = set()
        for step in steps:
            match step:
                case Done(health=Health() as health):
                    self._report_serving(session, step.replica, step.name, health)
                case Release() | Forget():
                    leaving.add(step.name)
                case Drain(begins=True):
                    draining.add(step.name)
                case GiveUp(serves=True, error=errors.RolledBack()):
                    self._record_return(session, step.replica, step.name)
                case GiveUp(serves=False):
                    failed.add(step.name)
                case _:
                    # Every other step leaves clients where they are.
                    pass
        return leaving, draining, failed

    def withdraw(self, session: StateSession) -> None:
        """Remove the published endpoint: nothing serves. Raise `errors.StateError` or `errors.Fault`."""
        self._world.state.publish(self._goal.name, None)
        self._file = {}
        if session.state.published:
            session.save(replace(session.state, published=""))

    def _report_serving(self, session: StateSession, replica: int, name: str, health: Health) -> None:
        record = session.state.record(replica)
        attempt, endpoint = record.attempt(name), self._endpoints.get(replica)
        if attempt is None:
            return
        if replica == ROUTER:
            # Its record was announced by the observation, and clients get its address as that of the router.
            if name not in self._announced_machines:
                self._announced_machines.add(name)
                self._announce(replica, attempt, health)
            return
        # From here on clients may use the slice, whatever becomes of this run: that is saved before it is announced.
        if not attempt.is_announced:
            session.save(session.state.with_record(record.with_attempt(attempt.after(ServerAnswered()))))
        if endpoint is None or endpoint.slice_name != name:
            self._endpoints[replica] = self._announce(replica, attempt, health)

    def _record_return(self, session: StateSession, replica: int, name: str) -> None:
        """Record that the previous server of a slice answers again: its node completed a prompt."""
        record = session.state.record(replica)
        attempt = record.attempt(name)
        if attempt is not None and not attempt.is_announced:
            session.save(session.state.with_record(record.with_attempt(attempt.after(ServerAnswered()))))

    def _announce(self, replica: int, attempt: Attempt, health: Health) -> ReplicaEndpoint:
        now = self._world.clock.now()
        subject = about(attempt, address(self._goal.name, replica), at=now)
        self._world.emit(
            events.Serving(**subject, url=health.url, door=health.door, answer=health.answer, elapsed=now - self._began)
        )
        if health.node_only:
            message, hint = (
                "It answered a completion request on its own machine, but it cannot be reached from here.",
                health.detail,
            )
            if health.silence:
                error = not_observed(subject["address"], health)
                message, hint = error.message, error.hint
            self._world.emit(events.Warned(at=now, address=subject["address"], message=message, hint=hint))
        return ReplicaEndpoint(
            address=subject["address"],
            url=health.url,
            reached_from=health.door,
            zone=attempt.zone,
            slice_name=attempt.name,
        )

    def _choose(self, state: State, usable: dict[str, int], observed: Observed) -> _Target | None:
        """Return the lowest replica that matches the profile; until there is one, any slice that serves."""
        lowest = None
        endpoints = {r: endpoint for r, endpoint in self._endpoints.items() if endpoint.slice_name in usable}
        if endpoints:
            replica = min(endpoints)
            endpoint = endpoints[replica]
            lowest = _Target(replica=replica, name=endpoint.slice_name, url=endpoint.url)
        published_replica = usable.get(state.published)
        # The published slice is lost: clients need another one now, be it one that the profile no longer describes.
        if published_replica is None:
            return lowest if lowest is not None else self._fallback(state, usable, observed)
        # A lower replica takes over, and so does the slice that replaces the published one in its replica.
        if lowest is not None and (lowest.replica < published_replica or published_replica in endpoints):
            return lowest
        # Nothing better serves yet: clients stay where they are.
        return _Target(replica=published_replica, name=state.published, url=_url(state.published, observed))

    def _fallback(self, state: State, usable: dict[str, int], observed: Observed) -> _Target | None:
        """Return a slice that has served before and still does, or None."""
        serving = [
            attempt.name
            for attempt in state.slice_attempts
            if attempt.is_announced and attempt.name in usable and _url(attempt.name, observed)
        ]
        if not serving:
            return None
        name = min(serving, key=lambda name: (usable[name], name))
        return _Target(replica=usable[name], name=name, url=_url(name, observed))

    def _listed(self, ready: Mapping[str, int], observed: Observed) -> list[dict[str, object]]:
        """Return the list of the slices that take requests, by replica, as the file has it.

        An address that only the file names is kept while it is that of the slice, or its zone does not answer.
        """
        file_urls = {
            name: url
            for name, url in _replica_urls(self._contents()).items()
            if (slice_ := observed.slices.get(name)) is None or _is_address_of(slice_, url)
        }
        urls = {name: self._urls.get(name) or _url(name, observed) or file_urls.get(name, "") for name in ready}
        self._urls = {name: url for name, url in urls.items() if url}
        order = sorted(self._urls, key=lambda name: (ready[name], name))
        return [{"replica": ready[name], "slice": name, "url": self._urls[name]} for name in order]

    def _write(self, session: StateSession, target: _Target | None, replicas: list[dict[str, object]]) -> None:
        """Publish `target` and the list."""
        state = session.state
        if target is None:
            # Nothing serves: a file that names a lost slice would send clients nowhere.
            if state.published:
                self.withdraw(session)
            return
        # The first replica's endpoint is published by the run whose targets contain that replica.
        if not state.published and not self._goal.covers(0):
            return
        file, router = self._contents(), self._router()
        url = self._url_for_clients(target, router)
        if target.name != state.published or not self._is_published(url, router):
            body = self._new_endpoint(session, target, url)
        elif file:
            body = {key: value for key, value in file.items() if key != "router"}
        else:
            # The file is missing, and no URL is known that it could name.
            return
        self._is_endpoint_current = self._is_endpoint_current or bool(url)
        body["replicas"] = replicas
        if router is not None:
            body["router"] = router.to_dict()
        if body != file:
            self._world.state.publish(self._goal.name, body)
            self._file = body

    def _is_published(self, url: str, router: Router | None) -> bool:
        """Return whether the file needs no other URL for its slice."""
        file = self._contents()
        # Without a URL, the file already says the best that is known.
        if not url or file.get("url") == url:
            return True
        # One of a slice that this run has compared stays. That of a router on a VM comes and goes with the VM.
        return self._is_endpoint_current and router is None and "router" not in file

    def _new_endpoint(self, session: StateSession, target: _Target, url: str) -> dict[str, object]:
        """Return the file for another endpoint. The state is saved first: it names a slice that clients may use."""
        generation = _next_generation(session.state, self._contents())
        session.save(replace(session.state, published=target.name, generation=generation))
        return {"url": url, "generation": generation, "since": self._world.clock.now()}

    def _url_for_clients(self, target: _Target, router: Router | None) -> str:
        """Return the address that clients use: that of the router, or of the slice; "" if it is not known."""
        if self._awaits_router(router):
            return str(self._contents().get("url") or target.url)
        if router is not None:
            return router.url
        if not target.url and "router" in self._contents():
            # The profile has no router any more, and the file has the address of the one that it had.
            return self._urls.get(target.name, "")
        return target.url

    def _awaits_router(self, router: Router | None) -> bool:
        """Return whether clients have another address while the router of this machine starts."""
        if router is None or router.host is not RouterHost.LOCAL or self._goal.deployment is None:
            return False
        return self._contents().get("url") != router.url and not self._has_router_answered

    def _router(self) -> Router | None:
        """Return the router that clients are sent to. While the deployment is deleted, it is the one of the file."""
        deployment = self._goal.deployment
        router = None if deployment is None else deployment.router
        if deployment is not None and (router is None or router.host is not RouterHost.VM):
            return router
        try:
            before = published_router(self._contents())
        except ValueError:
            before = None
        if before is not None and before.host is RouterHost.VM:
            # It may be gone, or be another one. While the deployment is deleted, no probe shows a better address.
            return before if deployment is None and self._router_on_vm is not None else self._router_on_vm
        # Until a completion came through the VM, clients stay with the router that they have.
        return self._router_on_vm or before

    def _find_router(self, state: State, observed: Observed, leaving: Collection[str]) -> Router | None:
        """Return the router on the VM that clients are sent to: once a completion came through it, until it leaves."""
        candidates = [a for a in state.router.attempts if a.name not in leaving and takes_requests(a, observed)]
        if not candidates:
            return None
        attempt = min(candidates, key=lambda a: (not _url(a.name, observed), a.name))
        name = attempt.name
        slice_ = observed.slices.get(name)
        host = _url(name, observed).rpartition("//")[2].rpartition(":")[0]
        if not host or host == _LOCALHOST:
            # A router that does not answer now, or that only a tunnel reaches: clients in its network use its address.
            host = "" if slice_ is None else slice_.external_ip or slice_.internal_ip or ""
        return router_on(attempt, host) if host else None

    def _contents(self) -> Mapping[str, object]:
        """Return what the file contains, or nothing if it cannot be read: it is then replaced."""
        if self._file is None:
            try:
                self._file = self._world.state.published(self._goal.name) or {}
            except errors.StateUnreadable:
                self._file = {}
        return self._file


def keep_router(world: World, goal: Goal) -> None:
    """Start the router of a deployment whose profile has one on this machine, unless it runs, and report its failures.

    Raise `errors.StateError` if the folder of its files cannot be written.
    """
    if _router_here(goal) is None:
        return
    problem = world.routers.keep(goal.name)
    if problem:
        hint = f"See .tpudeploy/routers/{goal.name}/router.log."
        world.emit(events.Warned(at=world.clock.now(), address=goal.name, message=problem, hint=hint))


def ask_router(world: World, goal: Goal) -> errors.NotInEffect | None:
    """Return why no completion comes back through the router of this machine. Return None without such a router.

    Clients get the address of one that answers if they do not have it yet. Raise `errors.StateError` or `errors.Fault`.
    """
    router = _router_here(goal)
    if router is None:
        return None
    cause = _why_silent(world, goal, router)
    if not cause:
        _send_clients_to(world, goal, router)
        return None
    return errors.NotInEffect(
        f"The replicas of {goal.name} serve, but no completion comes back through its router at {router.url}: {cause}",
        hint=f"See .tpudeploy/routers/{goal.name}/router.log, and run `tpudeploy apply` again. Until it answers, "
        f"clients can use the replicas' own addresses: `tpudeploy output {goal.name}`.",
    )


def published_endpoints(world: World, goal: Goal) -> tuple[ReplicaEndpoint, ...]:
    """Return the endpoints that clients of a deployment have: that of its router, then those of its replicas.

    An address that only the document names is left out, unless Google does not answer now.
    """
    try:
        document = world.state.published(goal.name) or {}
        state = world.state.read(goal.name).state if document else None
        if state is None:
            return ()
        router = published_router(document)
        urls = _believable_urls(world, goal, document)
    except (errors.StateUnreadable, errors.QueryFailed, errors.Fault, errors.Denied, ValueError):
        # Whoever needs the document or the state reports that it cannot be read.
        return ()
    replicas = _replica_urls(document)
    rows = [
        ReplicaEndpoint(
            address=address(goal.name, replica),
            url=replicas[attempt.name],
            reached_from="",
            zone=attempt.zone,
            slice_name=attempt.name,
        )
        for replica, attempt in state.indexed_slice_attempts
        if replicas.get(attempt.name) in urls
    ]
    if router is not None and document.get("url") == router.url and router.url in urls:
        own = ReplicaEndpoint(address=goal.name, url=router.url, reached_from="router", zone="", slice_name="")
        return (own, *rows)
    return tuple(rows)


def _believable_urls(world: World, goal: Goal, document: Mapping[str, object]) -> Collection[str]:
    """Return the addresses that the deployment has now; those of the document while Google does not answer."""
    declared = None if goal.deployment is None else goal.deployment.router
    try:
        return addresses_now(world, goal.name, document, declared=declared)
    except errors.CloudError:
        return {str(document.get("url")), *_replica_urls(document).values()}


def _router_here(goal: Goal) -> Router | None:
    """Return the router of this machine that the profile has, or None."""
    router = None if goal.deployment is None else goal.deployment.router
    return None if router is None or router.host is not RouterHost.LOCAL else router


def _why_silent(world: World, goal: Goal, router: Router, *, once: bool = False) -> str:
    """Return why no completion comes back through a router of this machine, or "". Wait for one, or ask `once`."""
    deployment, cause = goal.deployment, "it was not asked"
    if deployment is None:
        return cause
    for problem in world.routers.turns(goal.name, router):
        world.clock.sleep(0.0)  # raises in an interrupted run
        if problem is None:
            health = world.probe.health_at(deployment, router.url)
            cause = health.detail
            if health.serving:
                return ""
        else:
            # What answers at its address is another program, for example the one that it is to replace.
            cause = problem
        if once:
            break
    return cause


def _send_clients_to(world: World, goal: Goal, router: Router) -> None:
    """Publish the address of a router that answers, unless the endpoint document has it."""
    document = world.state.published(goal.name)
    if not document or document.get("url") == router.url:
        return
    with open_session(world, goal.name, "apply") as session:
        # It may have been withdrawn, or be that of another run's router, by now.
        document = world.state.published(goal.name)
        if document and document.get("router") == router.to_dict():
            generation = _next_generation(session.state, document)
            session.save(replace(session.state, generation=generation))
            changed = {"url": router.url, "generation": generation, "since": world.clock.now()}
            world.state.publish(goal.name, {**document, **changed})


def _is_usable(attempt: Attempt, observed: Observed, *, has_failed: bool) -> bool:
    """Return whether clients may be sent there: the slice is up and stays, as far as is known."""
    if attempt.releasing_at is not None:
        return False
    slice_, health = observed.slices.get(attempt.name), observed.health.get(attempt.name)
    # A failed change does not matter as long as the endpoint itself still answers.
    if has_failed and (health is None or not health.serving):
        return False
    # A slice that could not be observed was up when it was last seen: its zone may only be slow to answer.
    return attempt.name in observed.unseen or (slice_ is not None and slice_.phase is Phase.UP)


def _url(name: str, observed: Observed) -> str:
    health = observed.health.get(name)
    return health.url if health is not None and health.serving else ""


def _is_address_of(slice_: Slice, url: str) -> bool:
    """Return whether a URL is one of the slice's own, or this machine's end of a tunnel to it."""
    host = url.removeprefix("http://").rpartition(":")[0]
    return host in {slice_.external_ip, slice_.internal_ip, _LOCALHOST}


def _next_generation(state: State, file: Mapping[str, object]) -> int:
    """Return a number above that of every endpoint before, also where the state or the file is from a backup."""
    file_generation = file.get("generation")
    next_of_file = file_generation + 1 if isinstance(file_generation, int) else 0
    return max(state.generation + 1, state.next_attempt, next_of_file)


def _replica_urls(file: Mapping[str, object]) -> dict[str, str]:
    """Return the URL of each slice on the list of a file, which earlier versions wrote without one."""
    replicas = file.get("replicas")
    rows = replicas if isinstance(replicas, list) else []
    return {str(row["slice"]): str(row["url"]) for row in rows if isinstance(row, dict) and {"slice", "url"} <= {*row}}
