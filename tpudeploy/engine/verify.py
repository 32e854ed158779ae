"""Verify engines that serve: read what they report, and compare it with what was declared.

Why: decision 33 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tpudeploy.boot_log.read import read as read_log
from tpudeploy.boot_log.settings import effective_settings
from tpudeploy.domain import errors, events
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.names import address
from tpudeploy.domain.plan import Goal
from tpudeploy.domain.slices import Health, Observed, Slice
from tpudeploy.domain.state import Attempt, State
from tpudeploy.domain.step import Done
from tpudeploy.domain.together import together
from tpudeploy.domain.verify import Details, EngineReport, ReplicaVerification, Verdict
from tpudeploy.engine.observe import observe
from tpudeploy.engine.request_events import about
from tpudeploy.engine.retry import retry_on_fault
from tpudeploy.engine.session import open_session
from tpudeploy.node.fingerprint import server_print
from tpudeploy.ports import VerifySources, World
from tpudeploy.verify.calibration import record_of
from tpudeploy.verify.details import details
from tpudeploy.verify.settings import verify_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedServer:
    """One replica that serves, as one observation shows it."""

    replica: int
    attempt: Attempt
    slice: Slice
    health: Health


class Verifier:
    """Verifies each slice of a run once after each boot, when it has come to serve."""

    def __init__(self, world: World, goal: Goal, sources: VerifySources | None) -> None:
        self._world = world
        self._goal = goal
        self._sources = sources
        self._verified_boots: set[tuple[str, str, float | None]] = set()
        self._verifications: dict[str, ReplicaVerification] = {}
        self.not_in_effect: list[errors.NotInEffect] = []

    def record(self, state: State) -> State:
        """Return `state` with the results of this run's verifications: the next apply verifies failed ones again."""
        for index, attempt in state.indexed_slice_attempts:
            verification = self._verifications.get(attempt.name)
            broken = attempt.not_in_effect if verification is None else _still_broken(attempt, verification)
            if broken != attempt.not_in_effect:
                changed = replace(attempt, not_in_effect=broken)
                state = state.with_record(state.record(index).with_attempt(changed))
        return state

    def verify_again(self) -> None:
        """Verify those slices whose engines did not do what was declared when an apply last verified them.

        One that does not answer counts as before. Raise `errors.Fault`, `errors.Denied` or `errors.StateError`.
        """
        world, name, deployment, sources = self._world, self._goal.name, self._goal.deployment, self._sources
        state = world.state.read(name).state
        if deployment is None or sources is None or state is None:
            return
        budget = world.patience.faults_at_plan
        observed = retry_on_fault(world, name, lambda: observe(world, state, deployment), budget=budget)
        servers = [s for s in serving(state, observed) if s.attempt.name in self._goal.to_verify]
        self._verify(sources, deployment, servers)
        recorded = self.record(state)
        for index, attempt in recorded.indexed_slice_attempts:
            if attempt.not_in_effect and attempt.name in self._goal.to_verify and not self._is_broken(attempt):
                self.not_in_effect.append(_earlier_error(address(deployment.name, index), attempt))
        if recorded != state:
            with open_session(world, name, "verify") as session:
                session.save(self.record(session.state))

    def _is_broken(self, attempt: Attempt) -> bool:
        """Return whether this run has verified it and reported what is not in effect."""
        verification = self._verifications.get(attempt.name)
        return verification is not None and bool(verification.broken)

    def verify_new(self, state: State, observed: Observed, served_steps: Iterable[Done]) -> None:
        """Verify each slice that is as planned and was not verified since it booted. Never raises."""
        deployment, sources = self._goal.deployment, self._sources
        if deployment is None or sources is None:
            return
        names = {each.name for each in served_steps}
        servers = [s for s in serving(state, observed) if s.attempt.name in names and self._is_new(s.attempt)]
        self._verify(sources, deployment, servers)

    def _is_new(self, attempt: Attempt) -> bool:
        boot = (attempt.name, attempt.boot.server, attempt.boot.at)
        is_new = boot not in self._verified_boots
        self._verified_boots.add(boot)
        return is_new

    def _verify(self, sources: VerifySources, deployment: Deployment, servers: Sequence[VerifiedServer]) -> None:
        verified = together(self._world.threads, lambda s: _verified(sources, deployment, s), servers)
        for server, (applied, verification, report) in zip(servers, verified, strict=True):
            self._world.emit(_event(server, verification, at=self._world.clock.now()))
            if verification.broken:
                self.not_in_effect.append(_error(verification))
            self._verifications[server.attempt.name] = verification
            record = record_of(applied, verification, report, at=self._world.clock.now())
            if record is not None:
                sources.boots.add(record)


def verify(world: World, sources: VerifySources, deployment: Deployment) -> tuple[ReplicaVerification, ...]:
    """Verify every replica that has a machine against the profile as it is now. Raise as `_read_reports` does."""
    reports = _read_reports(world, sources, deployment)
    return tuple(_verification(deployment, server, report) for server, report in reports)


def detailed(world: World, sources: VerifySources, deployment: Deployment) -> tuple[Details, ...]:
    """Return the details of every replica that has a machine. Raise as `_read_reports` does."""
    reports = _read_reports(world, sources, deployment)
    return tuple(details(deployment, report, _verification(deployment, s, report)) for s, report in reports)


def _read_reports(
    world: World, sources: VerifySources, deployment: Deployment
) -> tuple[tuple[VerifiedServer, EngineReport], ...]:
    """Return what every replica that has a machine reports, by all sources.

    Raise `errors.StateError` if no replica has one, `errors.Fault` or `errors.Denied` where it cannot be observed.
    """
    state = world.state.read(deployment.name).state
    if state is None or all(attempt.granted_at is None for attempt in state.slice_attempts):
        raise errors.StateError(
            f"{deployment.name} has no machine to verify.",
            hint="Run `tpudeploy apply` first; `tpudeploy status` shows its progress.",
        )
    budget = world.patience.faults_at_plan
    observed = retry_on_fault(world, deployment.name, lambda: observe(world, state, deployment), budget=budget)

    def read(server: VerifiedServer) -> tuple[VerifiedServer, EngineReport]:
        report = sources.engine.read_facts(_of_its_project(deployment, server), server.slice, server.health)
        return server, _with_log(sources, server, report)

    return tuple(together(world.threads, read, _machines(state, observed)))


def serving(state: State, observed: Observed) -> tuple[VerifiedServer, ...]:
    """Return the replicas whose engines answered."""
    return tuple(server for server in _machines(state, observed) if server.health.serving)


def _machines(state: State, observed: Observed) -> Iterator[VerifiedServer]:
    """Yield the replicas whose slices are granted, exist, and are not being released."""
    for index, attempt in state.indexed_slice_attempts:
        slice_ = observed.slices.get(attempt.name)
        if slice_ is not None and attempt.holds_slice:
            health = observed.health.get(attempt.name) or Health(serving=False, detail="it does not serve")
            yield VerifiedServer(replica=index, attempt=attempt, slice=slice_, health=health)


def verify_as_applied(sources: VerifySources, deployment: Deployment, server: VerifiedServer) -> ReplicaVerification:
    """Verify a replica against what its slice was last given. Never raises: what cannot be read fails no apply."""
    return _verified(sources, deployment, server)[1]


def _verified(
    sources: VerifySources, deployment: Deployment, server: VerifiedServer
) -> tuple[Deployment, ReplicaVerification, EngineReport]:
    """Return what a slice was last given, its verification, and the report that this is by.

    Its boot log is read only where API and metrics leave open what the profile says: Logging answers sixty reads a
    minute for a whole project.
    """
    applied: Deployment | None = deployment
    if server_print(server.attempt.spec) != server_print(deployment.attributes):
        # `lifecycle.ignore_changes`, or a profile that has changed since: the slice was given something else.
        applied = sources.applied(deployment, server.attempt.spec)
    if applied is None:
        unread = ReplicaVerification(
            address=address(deployment.name, server.replica),
            slice_name=server.attempt.name,
            settings=(),
            silent={"profile": "this version cannot read the settings that it was given"},
        )
        return deployment, unread, EngineReport()
    report = sources.engine.read_facts(_of_its_project(applied, server), server.slice, server.health)
    verification = _verification(applied, server, report)
    if verification.is_open:
        report = _with_log(sources, server, report)
        verification = _verification(applied, server, report)
    return applied, verification, report


def _of_its_project(deployment: Deployment, server: VerifiedServer) -> Deployment:
    """Return the deployment with the project of a server's slice, whose API key the server was given."""
    return replace(deployment, project=server.attempt.project)


def _verification(deployment: Deployment, server: VerifiedServer, report: EngineReport) -> ReplicaVerification:
    where = address(deployment.name, server.replica)
    return verify_settings(deployment, report, address=where, slice_name=server.attempt.name)


def _with_log(sources: VerifySources, server: VerifiedServer, report: EngineReport) -> EngineReport:
    try:
        text = "\n".join(sources.logs.lines(server.attempt.ref))
        log, why = effective_settings(text), "it has no lines from the engine yet"
    except errors.CloudError as error:
        text, log, why = "", {}, error.message
    phases = {phase.name: phase.seconds for phase in read_log(text).phases if phase.seconds is not None} if log else {}
    return replace(report, log=log, phases=phases) if log else replace(report, silent={**report.silent, "log": why})


def _event(server: VerifiedServer, verification: ReplicaVerification, *, at: float) -> events.Verified:
    return events.Verified(
        **about(server.attempt, verification.address, at=at),
        held=sum(setting.is_written for setting in verification.with_verdict(Verdict.HOLDS)),
        broken=verification.broken,
        off=verification.with_verdict(Verdict.OFF),
        blocks=verification.value("num_blocks"),
        tokens=verification.value("kv_cache_tokens"),
        silent=verification.silent,
    )


def _error(verification: ReplicaVerification) -> errors.NotInEffect:
    difference = _first(_differences(verification))
    return errors.NotInEffect(
        f"{verification.address} does not match its profile: {difference}.",
        hint="The server keeps running and keeps its endpoint. `tpudeploy verify` shows every setting and its source.",
    )


def _earlier_error(where: str, attempt: Attempt) -> errors.NotInEffect:
    """Return the error for an engine that cannot be asked now, as it was when it was last verified."""
    return errors.NotInEffect(
        f"{where} did not match its profile when it was last verified: {_first(attempt.not_in_effect)}.",
        hint="It cannot be verified now. `tpudeploy status` shows its state, `tpudeploy verify` every setting.",
    )


def _first(broken: Mapping[str, str]) -> str:
    """Return the first setting that is not in effect, and how many more there are."""
    (name, values), *more = broken.items()
    return f"{name} is {values}{f', and {len(more)} more' if more else ''}"


def _differences(verification: ReplicaVerification) -> dict[str, str]:
    return {s.name: f"{s.value}, declared {s.declared}" for s in verification.broken}


def _still_broken(attempt: Attempt, verification: ReplicaVerification) -> Mapping[str, str]:
    """Return what is not in effect; a setting that no source reports now counts as it was last reported."""
    unreported = {s.name for s in verification.with_verdict(Verdict.UNTOLD)}
    if not verification.settings:
        unreported = set(attempt.not_in_effect)
    earlier = {name: values for name, values in attempt.not_in_effect.items() if name in unreported}
    return earlier | _differences(verification)
