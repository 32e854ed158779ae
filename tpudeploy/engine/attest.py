"""Asking those engines that serve what they do, and holding it against what was declared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tpudeploy.boot_log.settings import effective_settings
from tpudeploy.domain import errors, events
from tpudeploy.domain.attestation import Attestation, Attested, Told, Verdict
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.details import Details
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import address
from tpudeploy.domain.plan import Goal
from tpudeploy.domain.slices import Health, Observed, Slice
from tpudeploy.domain.state import Attempt, State
from tpudeploy.domain.step import Done
from tpudeploy.domain.together import together
from tpudeploy.engine.about import about
from tpudeploy.engine.look import observe
from tpudeploy.engine.retry import retry_on_fault
from tpudeploy.engine.session import open_session
from tpudeploy.node.fingerprint import server_print
from tpudeploy.ports import Witnesses, World
from tpudeploy.verify.attest import attest
from tpudeploy.verify.details import details


@frozen
class Server:
    """One replica that serves, as a look found it."""

    replica: int
    attempt: Attempt
    found: Slice
    health: Health


class Attestor:
    """Remembers which slices of a run were asked: each is once, when it has come to serve."""

    def __init__(self, world: World, goal: Goal, witnesses: Witnesses | None) -> None:
        self._world = world
        self._goal = goal
        self._witnesses = witnesses
        self._asked: set[tuple[str, str, float | None]] = set()
        self._attested: dict[str, Attestation] = {}
        self.not_in_effect: list[errors.NotInEffect] = []

    def record(self, state: State) -> State:
        """Return `state` with what this run's verifications found: the next apply asks again where one failed."""
        for record in state.records:
            for attempt in record.attempts:
                found = self._attested.get(attempt.name)
                broken = attempt.not_in_effect if found is None else _still_broken(attempt, found)
                if broken != attempt.not_in_effect:
                    known = state.record(record.index)
                    state = state.with_record(known.with_attempt(replace(attempt, not_in_effect=broken)))
        return state

    def verify_again(self) -> None:
        """Ask those slices anew whose engines did not do what was declared when an apply last verified them.

        One that does not answer still counts as it was. Raise `errors.Fault`, `errors.Denied` or `errors.StateError`.
        """
        world, deployment, witnesses = self._world, self._goal.deployment, self._witnesses
        state = world.state.read(self._goal.name).state
        if deployment is None or witnesses is None or state is None:
            return
        budget = world.patience.faults_at_plan
        observed = retry_on_fault(world, self._goal.name, lambda: observe(world, state, deployment), budget=budget)
        servers = [s for s in serving(state, observed) if s.attempt.name in self._goal.to_verify]
        self._ask(witnesses, deployment, servers)
        verified = self.record(state)
        heard = {name for name, found in self._attested.items() if found.broken}
        for record in verified.records:
            for attempt in record.attempts:
                if attempt.not_in_effect and attempt.name in self._goal.to_verify and attempt.name not in heard:
                    self.not_in_effect.append(_remembered(address(deployment.name, record.index), attempt))
        if verified != state:
            with open_session(world, self._goal.name, "verify") as held:
                held.save(self.record(held.state))

    def tell(self, state: State, observed: Observed, done: Iterable[Done]) -> None:
        """Of each that is as wanted, and was not asked since it booted. Never raises."""
        deployment, witnesses = self._goal.deployment, self._witnesses
        if deployment is None or witnesses is None:
            return
        wanted = {each.name for each in done}
        servers = [s for s in serving(state, observed) if s.attempt.name in wanted and self._is_new(s)]
        self._ask(witnesses, deployment, servers)

    def _ask(self, witnesses: Witnesses, deployment: Deployment, servers: Sequence[Server]) -> None:
        for server, found in zip(servers, self._attestations(witnesses, deployment, servers), strict=True):
            self._world.emit(_event(server, found, at=self._world.clock.now()))
            if found.broken:
                self.not_in_effect.append(_error(found))
            self._attested[server.attempt.name] = found

    def _attestations(
        self, witnesses: Witnesses, deployment: Deployment, servers: Sequence[Server]
    ) -> Sequence[Attestation]:
        return together(self._world.threads, lambda server: applied(witnesses, deployment, server), servers)

    def _is_new(self, server: Server) -> bool:
        boot = (server.attempt.name, server.attempt.booted, server.attempt.booted_at)
        is_new = boot not in self._asked
        self._asked.add(boot)
        return is_new


def verify(world: World, witnesses: Witnesses, deployment: Deployment) -> tuple[Attestation, ...]:
    """Of every replica that has a machine, by every witness, against the profile as it is now. Raise as `ask` does."""
    asked = ask(world, witnesses, deployment)
    return tuple(_attested(deployment, server, told) for server, told in asked)


def detailed(world: World, witnesses: Witnesses, deployment: Deployment) -> tuple[Details, ...]:
    """As `verify` asks, in full. Raise as `ask` does."""
    asked = ask(world, witnesses, deployment)
    return tuple(details(deployment, told, _attested(deployment, server, told)) for server, told in asked)


def ask(world: World, witnesses: Witnesses, deployment: Deployment) -> tuple[tuple[Server, Told], ...]:
    """What every replica that has a machine tells, by every witness.

    Raise `errors.StateError` where there is none, `errors.Fault` or `errors.Denied` where it cannot be looked at.
    """
    state = world.state.read(deployment.name).state
    granted = () if state is None else tuple(a for a in state.attempts if a.granted_at is not None)
    if state is None or not granted:
        raise errors.StateError(
            f"{deployment.name} has no machine that could be asked.",
            hint="Run `tpudeploy apply` first; `tpudeploy status` says how far it is.",
        )
    known = state
    budget = world.patience.faults_at_plan
    observed = retry_on_fault(world, deployment.name, lambda: observe(world, known, deployment), budget=budget)
    servers = list(_standing(known, observed))
    return tuple(together(world.threads, lambda server: (server, _by_all(witnesses, deployment, server)), servers))


def serving(state: State, observed: Observed) -> tuple[Server, ...]:
    """Those that answered."""
    return tuple(server for server in _standing(state, observed) if server.health.serving)


def _standing(state: State, observed: Observed) -> Iterator[Server]:
    """Those that were granted, are there, and are not about to go."""
    for record in state.records:
        for attempt in record.attempts:
            found, health = observed.slices.get(attempt.name), observed.health.get(attempt.name)
            if found is not None and attempt.granted_at is not None and attempt.releasing_at is None:
                silent = Health(serving=False, detail="it does not serve")
                yield Server(replica=record.index, attempt=attempt, found=found, health=health or silent)


def applied(witnesses: Witnesses, deployment: Deployment, server: Server) -> Attestation:
    """Against what this slice was last given. Never raises: it costs no apply what cannot be told.

    Its boot log is read only where API and metrics leave open what the profile says: Logging answers sixty reads a
    minute for a whole project.
    """
    of = _as_given(witnesses, deployment, server.attempt)
    if of is None:
        why = "this version cannot read what it was given"
        return Attestation(
            address=address(deployment.name, server.replica),
            slice_name=server.attempt.name,
            settings=(),
            silent={"profile": why},
        )
    told = witnesses.engine.read_facts(of, server.found, server.health)
    found = _attested(of, server, told)
    return _attested(of, server, _with_log(witnesses, server, told)) if found.is_open else found


def _by_all(witnesses: Witnesses, deployment: Deployment, server: Server) -> Told:
    return _with_log(witnesses, server, witnesses.engine.read_facts(deployment, server.found, server.health))


def _as_given(witnesses: Witnesses, deployment: Deployment, attempt: Attempt) -> Deployment | None:
    """What `lifecycle.ignore_changes` or a profile that has moved on says otherwise was never given to it."""
    if server_print(attempt.spec) == server_print(deployment.attributes):
        return deployment
    return witnesses.applied(deployment, attempt.spec)


def _attested(of: Deployment, server: Server, told: Told) -> Attestation:
    where = address(of.name, server.replica)
    return attest(of, told, address=where, slice_name=server.attempt.name)


def _with_log(witnesses: Witnesses, server: Server, told: Told) -> Told:
    try:
        lines = witnesses.logs.lines(server.attempt.ref)
    except errors.CloudError as error:
        return replace(told, silent={**told.silent, "log": error.message})
    log = effective_settings("\n".join(lines))
    return replace(told, log=log) if log else replace(told, silent={**told.silent, "log": "it has no engine's lines"})


def _event(server: Server, found: Attestation, *, at: float) -> events.Verified:
    held = sum(s.is_written for s in found.with_verdict(Verdict.HOLDS))
    return events.Verified(
        **about(server.attempt, found.address, at=at),
        held=held,
        broken=found.broken,
        off=found.with_verdict(Verdict.OFF),
        blocks=found.value("num_blocks"),
        tokens=found.value("kv_cache_tokens"),
        silent=found.silent,
    )


def _error(found: Attestation) -> errors.NotInEffect:
    return errors.NotInEffect(
        f"{found.address} does not do what its profile says: {_difference(found)}.",
        hint="The server runs on and keeps its endpoint. `tpudeploy verify` shows every setting, and who says so.",
    )


def _difference(found: Attestation) -> str:
    """The first setting that is not in effect, and how many more there are."""
    return _first({s.name: _values(s) for s in found.broken})


def _first(broken: Mapping[str, str]) -> str:
    (name, values), *more = broken.items()
    return f"{name} is {values}{f', and {len(more)} more' if more else ''}"


def _values(of: Attested) -> str:
    return f"{of.value}, declared {of.declared}"


def _still_broken(attempt: Attempt, found: Attestation) -> Mapping[str, str]:
    """Return what is not in effect, by the engine's word; where nobody says, as it was when somebody did."""
    untold = {s.name for s in found.with_verdict(Verdict.UNTOLD)} if found.settings else set(attempt.not_in_effect)
    known = {name: values for name, values in attempt.not_in_effect.items() if name in untold}
    return known | {s.name: _values(s) for s in found.broken}


def _remembered(where: str, attempt: Attempt) -> errors.NotInEffect:
    """The error for an engine that cannot be asked now, as it was when it was last verified."""
    return errors.NotInEffect(
        f"{where} did not do what its profile says when it was last verified: {_first(attempt.not_in_effect)}.",
        hint="It cannot be asked now. `tpudeploy status` shows how it stands, `tpudeploy verify` every setting.",
    )
