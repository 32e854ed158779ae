"""One observation of the world: every slice that a state tracks, what its machine reports, and whether it serves.

Why: decisions 24, 30 and 57 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import TypeVar

from tpudeploy.catalog import flags
from tpudeploy.catalog.tasks import resolve_task
from tpudeploy.domain import errors
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Deployment, Via
from tpudeploy.domain.names import ROUTER, Zone
from tpudeploy.domain.slices import (
    BootPhase,
    BootReport,
    Health,
    Observed,
    Phase,
    ServerLoad,
    Slice,
    SliceEnd,
    SliceRef,
)
from tpudeploy.domain.state import Attempt, State
from tpudeploy.domain.together import together
from tpudeploy.engine.ledger import record_observation
from tpudeploy.engine.retry import retry_on_fault
from tpudeploy.engine.slow_zones import SlowZones
from tpudeploy.node.node_facts import SPEC_KEY
from tpudeploy.node.router_machine import machine_of
from tpudeploy.ports import World

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationTarget:
    """What to observe: all slices that a state tracks, and their endpoints too if a deployment is given.

    `is_watched`: the run has reached its goal, and keeps it.
    """

    state: State
    deployment: Deployment | None = None
    is_watched: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether no run is on its way to a goal."""
        return self.is_watched or self.state.goal is None


_ARGS = "serving.args."
# The phases of a late slice that is not billed, and that nobody has to end.
_ENDED = {Phase.LEAVING, Phase.HUSK, Phase.REFUSED}
# The phases of a slice that ran, and does no more.
_OVER = {Phase.HUSK, Phase.LOST, Phase.LEAVING}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    """One machine that is up. `subject` is the position of its subject in the list of all.

    `deployment` is what it is made from, which for the router's VM is not that of the replicas. It is None while a
    deployment or a part of it is deleted.
    """

    subject: int
    replica: int
    deployment: Deployment | None
    attempt: Attempt
    slice: Slice

    @property
    def is_draining_router(self) -> bool:
        return self.replica == ROUTER and self.attempt.draining_at is not None

    @property
    def ends_when_idle(self) -> bool:
        return self.deployment is not None and self.deployment.lifecycle.idle is not None

    @property
    def has_known_server(self) -> bool:
        """Whether it has served, and its next boot would start the same server."""
        return self.attempt.is_announced and self.slice.metadata.get(SPEC_KEY) == self.attempt.boot.server


def readable_states(
    world: World, names: Iterable[str]
) -> tuple[dict[str, State | None], dict[str, errors.TpudeployError]]:
    """Return the states that can be read, None for a missing one, and why each of the others cannot be read.

    A state in a bucket that does not answer, or that may not be read, is one of the others.
    """

    def read(name: str) -> State | errors.TpudeployError | None:
        try:
            return world.state.read(name).state
        except (errors.StateError, errors.CloudError) as error:
            return error

    distinct_names = list(dict.fromkeys(names))
    states: dict[str, State | None] = {}
    unreadable: dict[str, errors.TpudeployError] = {}
    for name, state in zip(distinct_names, together(world.threads, read, distinct_names), strict=True):
        if isinstance(state, errors.TpudeployError):
            unreadable[name] = state
        else:
            states[name] = state
    return states, unreadable


def observe(
    world: World,
    state: State,
    deployment: Deployment | None = None,
    *,
    patient: bool = False,
    loads: bool = False,
    slow_zones: SlowZones | None = None,
    is_watched: bool = False,
) -> Observed:
    """Observe one deployment. Endpoints are probed if `deployment` is given. `loads` as in `observe_all`.

    `is_watched` as in `ObservationTarget`.

    With `patient`, a request in a zone that does not answer is `unseen`, as long as others can be observed, or another
    API can be asked. So is a request that was never granted in one of the `slow_zones`, while that rests.
    Raise `errors.Fault` or `errors.Denied`.
    """
    subject = ObservationTarget(state=state, deployment=deployment, is_watched=is_watched)
    # A plan or a status needs the whole truth; a run that waits for capacity continues without the answer of one zone.
    if not patient:
        return observe_all(world, [subject], loads=loads)[0]
    zones = SlowZones(world.clock) if slow_zones is None else slow_zones
    slices, unseen = _slices_zone_by_zone(world, state, deployment, zones)
    observed = replace(_observations(world, [subject], [slices], probe_again=True, loads=loads)[0], unseen=unseen)
    record_observation(world, state, observed, releases=True)
    return observed


def observe_all(
    world: World,
    subjects: Sequence[ObservationTarget],
    *,
    probe_again: bool = True,
    loads: bool = False,
    most_reports: float = inf,
) -> tuple[Observed, ...]:
    """Observe many deployments at one moment. Raise `errors.Fault` or `errors.Denied`.

    Without `probe_again`, an endpoint that has served before is not probed. Neither is the report of its machine read,
    which could be news only if it was booted with other metadata than the state tracks. Whether it still answers is
    the concern of `status`, which probes again. Of more than `most_reports` such machines, it reads the report only
    where no completion comes back: each costs a request to Google. With `loads`, each server of several that answers
    is also asked for its load.
    """
    refs_by_project: dict[str, list[SliceRef]] = {}
    for subject in subjects:
        for ref in (*(a.ref for a in subject.state.attempts), *map(_late_ref, subject.state.late_attempts)):
            refs_by_project.setdefault(ref.project, []).append(ref)
    slices = {
        (project, s.zone, s.name): s for project, refs in refs_by_project.items() for s in world.cloud.slices(refs)
    }
    slices_of_each: list[dict[str, Slice]] = []
    for subject in subjects:
        keys = {a.name: (a.project, a.zone, a.name) for a in subject.state.attempts}
        slices_of_each.append({name: slices[key] for name, key in keys.items() if key in slices})
    observations = _observations(
        world, subjects, slices_of_each, probe_again=probe_again, loads=loads, most_reports=most_reports
    )
    for subject, observed in zip(subjects, observations, strict=True):
        record_observation(world, subject.state, observed)
    return tuple(map(partial(_with_late_slices, slices), subjects, observations))


def _late_ref(attempt: Attempt) -> SliceRef:
    """Return the reference of a request that is forgotten. Its create operation has no say in whether it is there."""
    return replace(attempt.ref, operation=None, was_granted=True, was_listed=True)


def _with_late_slices(
    slices: Mapping[tuple[str, Zone, str], Slice], subject: ObservationTarget, observed: Observed
) -> Observed:
    keys = {a.name: (a.project, a.zone, a.name) for a in subject.state.late_attempts}
    late = {name: slices[key] for name, key in keys.items() if key in slices and slices[key].phase not in _ENDED}
    return replace(observed, late=late) if late else observed


def observe_all_or_each(
    world: World,
    subjects: Sequence[ObservationTarget],
    *,
    probe_again: bool = True,
    loads: bool = False,
    most_reports: float = inf,
) -> tuple[Observed | errors.CloudError, ...]:
    """Observe all deployments at once. If that fails, observe each by itself, and return why one cannot be observed.

    Raise `errors.Fault` or `errors.Denied` if none can be observed.
    """
    # Nothing is asked of the cloud for a plan without a state.
    if not subjects:
        return ()
    name = subjects[0].state.deployment if len(subjects) == 1 else f"{len(subjects)} deployments"

    def observe_now() -> tuple[Observed, ...]:
        return observe_all(world, subjects, probe_again=probe_again, loads=loads, most_reports=most_reports)

    try:
        return retry_on_fault(world, name, observe_now)
    except errors.CloudError:
        # A second observation of the only deployment would fail in the same way.
        if len(subjects) == 1:
            raise
        observed = _observe_each(world, subjects, probe_again=probe_again, loads=loads)
        # The failure of all is one failure: the caller reports it once, and not for each deployment.
        if all(isinstance(each, errors.CloudError) for each in observed):
            raise
        return observed


def _observe_each(
    world: World, subjects: Sequence[ObservationTarget], *, probe_again: bool, loads: bool
) -> tuple[Observed | errors.CloudError, ...]:
    """Observe each deployment by itself, once, and return why one cannot be observed.

    After two deployments in the same zones got no answer, the others there get the same fault without a call: each
    such call may last a minute.
    """
    zones = [frozenset((a.project, a.zone) for a in subject.state.attempts) for subject in subjects]
    faults: dict[frozenset[tuple[str, Zone]], list[errors.Fault]] = {}

    def observe_one(number: int) -> Observed | errors.CloudError:
        earlier_faults = faults.get(zones[number], [])
        if len(earlier_faults) > 1:
            return earlier_faults[0]
        try:
            return observe_all(world, [subjects[number]], probe_again=probe_again, loads=loads)[0]
        except errors.Fault as fault:
            faults.setdefault(zones[number], []).append(fault)
            return fault
        except errors.CloudError as error:
            return error

    return tuple(together(world.threads, observe_one, range(len(subjects))))


def _observations(
    world: World,
    subjects: Sequence[ObservationTarget],
    slices_of_each: Sequence[Mapping[str, Slice]],
    *,
    probe_again: bool,
    loads: bool = False,
    most_reports: float = inf,
) -> tuple[Observed, ...]:
    """Read the reports of the machines that are up, probe their endpoints, and ask those for their load."""
    machines = list(_machines_up(subjects, slices_of_each))
    known_servers = _known_servers(machines, subjects, probe_again=probe_again, most_reports=most_reports)
    unread = [machine for machine in machines if machine.attempt.name not in known_servers]
    reports = _read_reports(world, unread)
    unproven = machines if probe_again else [machine for machine in machines if not machine.attempt.is_announced]
    health = _probe_endpoints(world, subjects, unproven, reports, known_servers)
    if probe_again and known_servers:
        silent = [m for m in machines if m.attempt.name in known_servers and not _answers_here(m, health)]
        late = _read_reports(world, silent)
        reports = {number: {**reports.get(number, {}), **late.get(number, {})} for number in range(len(subjects))}
    loads_by_subject = _server_loads(world, machines, health, asks_all=loads) if probe_again else {}
    now = world.clock.now()
    return tuple(
        Observed(
            at=now,
            slices=slices,
            reports=reports.get(number, {}),
            health=health.get(number, {}),
            loads=loads_by_subject.get(number, {}),
            ends=_ends(world, subjects[number].state, slices),
        )
        for number, slices in enumerate(slices_of_each)
    )


def _ends(world: World, state: State, slices: Mapping[str, Slice]) -> dict[str, SliceEnd]:
    """Return the ends of the slices that ran, and that no run ended, as far as Google has a record of them."""
    ends: dict[str, SliceEnd] = {}
    for attempt in state.attempts:
        current = slices.get(attempt.name)
        is_over = current is None or current.is_remainder or current.phase in _OVER
        if is_over and attempt.granted_at is not None and attempt.releasing_at is None and not attempt.is_lost:
            # It explains an end, and decides nothing: what Google does not tell, or not now, is deduced.
            with suppress(errors.CloudError):
                end = world.cloud.end(attempt.ref)
                ends |= {} if end is None else {attempt.name: end}
    return ends


def not_observed(where: str, health: Health) -> errors.NotObserved:
    """Return the error for a server that was reached, and gave no answer."""
    return errors.NotObserved(
        f"{where} was not observed: its server was reached at {health.url}, and gave no answer ({health.silence}).",
        hint=(
            "It may be overloaded, or hang: run the command again, and read its log with `tpudeploy logs`."
            f" If it stays so, `tpudeploy apply -replace '{where}'` requests another slice."
        ),
    )


def _machines_up(
    subjects: Sequence[ObservationTarget], slices_of_each: Sequence[Mapping[str, Slice]]
) -> Iterator[_Machine]:
    for number, (subject, slices) in enumerate(zip(subjects, slices_of_each, strict=True)):
        for replica, attempt in subject.state.indexed_attempts:
            slice_ = slices.get(attempt.name)
            if slice_ is not None and slice_.phase is Phase.UP:
                target = _target(subject.deployment, replica, attempt)
                yield _Machine(subject=number, replica=replica, deployment=target, attempt=attempt, slice=slice_)


def _target(deployment: Deployment | None, replica: int, attempt: Attempt) -> Deployment | None:
    """Return what a machine is made from, or None while it is deleted."""
    target = None if deployment is None else deployment.of_replica(replica)
    if target is None:
        return None
    # A machine was given the secrets of its own project. That of another one gets no key of the profile's.
    target = replace(target, project=attempt.project)
    return machine_of(target, attempt) if replica == ROUTER else _with_task_of(target, attempt)


def _with_task_of(deployment: Deployment, attempt: Attempt) -> Deployment:
    """Return the deployment with the task of the server that is there: the profile may name another model by now."""
    spec, attributes = attempt.spec, deployment.attributes
    paths = {"model.id", *(path for path in (*spec, *attributes) if path.startswith(_ARGS))}
    if "model.id" not in spec or all(spec.get(path) == attributes.get(path) for path in paths):
        return deployment
    values = {path.removeprefix(_ARGS): value for path, value in spec.items() if path.startswith(_ARGS)}
    settings = {flag.name: value for name, value in values.items() if (flag := flags.find(name)) is not None}
    return replace(deployment, task=resolve_task(str(spec["model.id"]), settings, {}))


def _read_reports(world: World, machines: Sequence[_Machine]) -> Mapping[int, Mapping[str, BootReport]]:
    return _by_subject(machines, together(world.threads, lambda each: world.cloud.report(each.attempt.ref), machines))


def _by_subject(machines: Iterable[_Machine], answers: Iterable[T | None]) -> Mapping[int, Mapping[str, T]]:
    """Return the answers by subject and slice, without those of machines that reported nothing."""
    answers_by_subject: dict[int, dict[str, T]] = {}
    for machine, answer in zip(machines, answers, strict=True):
        if answer is not None:
            answers_by_subject.setdefault(machine.subject, {})[machine.attempt.name] = answer
    return answers_by_subject


def _known_servers(
    machines: Iterable[_Machine], subjects: Sequence[ObservationTarget], *, probe_again: bool, most_reports: float
) -> frozenset[str]:
    """Return the slices whose machines are not asked for a report before it is needed. See `observe_all`."""
    # Only its machine can say whether a deployment is idle.
    servers = [machine for machine in machines if machine.has_known_server and not machine.ends_when_idle]
    if not probe_again:
        return frozenset(machine.attempt.name for machine in servers)
    # During a run, a node may go back from a change that its metadata still have: only its report says so.
    quiet_servers = [machine for machine in servers if subjects[machine.subject].state.goal is None]
    return frozenset(machine.attempt.name for machine in quiet_servers if len(quiet_servers) > most_reports)


def _answers_here(machine: _Machine, health: Mapping[int, Mapping[str, Health]]) -> bool:
    """Return whether a completion came back from here. That its machine alone reports one says less."""
    answer = health.get(machine.subject, {}).get(machine.attempt.name)
    return answer is not None and answer.serving and answer.door != Via.NODE


def _probe_endpoints(
    world: World,
    subjects: Sequence[ObservationTarget],
    machines: Iterable[_Machine],
    reports: Mapping[int, Mapping[str, BootReport]],
    unread: Collection[str],
) -> Mapping[int, Mapping[str, Health]]:
    """Probe every machine that may serve by now: one that reports nothing, or that reports the end of its boot.

    Each report of the slices `unread` is read where its probe needs it.
    """

    def report_of(machine: _Machine) -> BootReport | None:
        return reports.get(machine.subject, {}).get(machine.attempt.name)

    def late_report_of(machine: _Machine) -> BootReport | None:
        is_unread = machine.attempt.name in unread
        return world.cloud.report(machine.attempt.ref) if is_unread else report_of(machine)

    def may_serve(machine: _Machine) -> bool:
        report = report_of(machine)
        return report is None or report.phase in {BootPhase.SERVING, BootPhase.FAILED}

    def probe(machine: _Machine) -> Health | None:
        if machine.deployment is None:
            return None
        # A server that has served, and that no run changes, is not to prove that again at each look.
        is_settled = machine.has_known_server and subjects[machine.subject].is_settled
        report = partial(late_report_of, machine)
        return world.probe.health(machine.deployment, machine.slice, report, is_settled=is_settled)

    candidates = [machine for machine in machines if machine.deployment is not None and may_serve(machine)]
    return _by_subject(candidates, together(world.threads, probe, candidates))


def _server_loads(
    world: World, machines: Sequence[_Machine], health: Mapping[int, Mapping[str, Health]], *, asks_all: bool
) -> Mapping[int, Mapping[str, ServerLoad]]:
    """Return the load of each draining server, and with `asks_all` that of each one of several that answers here.

    The metrics that a router passes on are those of one of its replicas, so a router is not asked. But nothing runs
    through one while nothing runs at any replica.
    """
    draining_routers = [machine for machine in machines if machine.is_draining_router]
    subjects_of_routers = {router.subject for router in draining_routers}

    def has_question(machine: _Machine) -> bool:
        # A draining server is deleted once nothing runs on it, and a draining router once nothing runs behind it.
        if machine.attempt.draining_at is not None or machine.subject in subjects_of_routers:
            return True
        # A server that did not answer its probe would only cost the time of another timeout.
        return asks_all and _may_have_several(machine.deployment) and _is_reachable(machine, health)

    servers = [each for each in machines if each.replica != ROUTER and has_question(each)]
    answers = together(world.threads, lambda each: world.probe.load(each.attempt, each.slice), servers)
    loads = {subject: dict(answers) for subject, answers in _by_subject(servers, answers).items()}
    for router in draining_routers:
        if all(load.requests == 0 for load in loads.get(router.subject, {}).values()):
            loads.setdefault(router.subject, {})[router.attempt.name] = ServerLoad(running=0, waiting=0)
    return loads


def _is_reachable(machine: _Machine, health: Mapping[int, Mapping[str, Health]]) -> bool:
    """Return whether the server answers, and a route from here leads to it as far as is known."""
    answer = health.get(machine.subject, {}).get(machine.attempt.name)
    return answer is not None and answer.serving and not answer.node_only


def _may_have_several(deployment: Deployment | None) -> bool:
    return deployment is not None and (deployment.replicas > 1 or deployment.scale is not None)


def _slices_zone_by_zone(
    world: World, state: State, deployment: Deployment | None, slow_zones: SlowZones
) -> tuple[dict[str, Slice], dict[str, str]]:
    """Return the slices, and for each that could not be observed the reason.

    The fault of one zone at one API stops the search neither in the others nor at the other API.
    """
    slices: dict[str, Slice] = {}
    faults: dict[tuple[Zone, Backend], errors.Fault] = {}
    unseen = _unseen_while_resting(state, slow_zones)
    attempts = [attempt for attempt in state.attempts if attempt.name not in unseen]
    backends = {attempt.backend for attempt in attempts} | _apis_to_ask(state, deployment)
    unanswered = 0
    for number, attempt in enumerate(attempts, start=1):
        try:
            # A zone that did not answer is not called again in this observation: each call may last a minute.
            if (attempt.zone, attempt.backend) in faults:
                raise faults[attempt.zone, attempt.backend]
            with slow_zones.timed((attempt.zone, attempt.backend)):
                answer = world.cloud.slices([attempt.ref])
            slices |= {slice_.name: slice_ for slice_ in answer}
        except errors.Fault as fault:
            faults[attempt.zone, attempt.backend] = fault
            unseen[attempt.name] = fault.message
            unanswered += 1
            # If nothing has answered yet, in several regions or anywhere, and no API remains that might, the network or
            # Google fails as a whole. And nothing may be decided about a granted slice that could not be observed.
            has_no_answer = unanswered == number and {backend for _, backend in faults} == backends
            has_several_regions = len({zone.region for zone, _ in faults}) > 1
            is_general = has_no_answer and (number == len(attempts) or has_several_regions)
            if attempt.granted_at is not None or is_general:
                raise
    return slices, unseen


def _unseen_while_resting(state: State, slow_zones: SlowZones) -> dict[str, str]:
    """Return the requests in zones that rest, each with the reason. One that may be landing is always looked at."""
    resting = slow_zones.resting()
    return {
        attempt.name: f"{attempt.zone} answers slowly"
        for attempt in state.attempts
        if (attempt.zone, attempt.backend) in resting and _only_waits(attempt)
    }


def _only_waits(attempt: Attempt) -> bool:
    return attempt.granted_at is None and attempt.provisioning_at is None and attempt.releasing_at is None


def _apis_to_ask(state: State, deployment: Deployment | None) -> set[Backend]:
    """Return the APIs from which a slice may be requested beside those that are requested already."""
    if deployment is None:
        return set()
    has_room = any(len(record.attempts) < deployment.max_parallel_requests for record in state.records)
    return set(deployment.backends) if has_room else set()
