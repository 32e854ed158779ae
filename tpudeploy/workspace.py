"""Workspace: one project folder, its states, many profiles; every verb. The library's face."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from tpudeploy import loading
from tpudeploy.domain.errors import QueryFailed
from tpudeploy.domain.wait import Wait
from tpudeploy.wiring import Wiring

if TYPE_CHECKING:
    from tpudeploy.adapters.vllm_client import Completion
    from tpudeploy.config import profile as config
    from tpudeploy.domain import events
    from tpudeploy.domain.availability import Zones
    from tpudeploy.domain.benchmark import Start
    from tpudeploy.domain.deployment import Deployment
    from tpudeploy.domain.diagnosis import Diagnosis
    from tpudeploy.domain.diagnostics import Diagnostic
    from tpudeploy.domain.errors import CloudError, ConfigError
    from tpudeploy.domain.facts import Facts, Unknown
    from tpudeploy.domain.found import CloudResource
    from tpudeploy.domain.garbage import Garbage
    from tpudeploy.domain.metrics import Metrics
    from tpudeploy.domain.names import Address
    from tpudeploy.domain.pins import Pin, Pins
    from tpudeploy.domain.plan import Plan as Planned
    from tpudeploy.domain.report import Report
    from tpudeploy.domain.state import Attempt, State
    from tpudeploy.domain.status import DeploymentStatus, Timeline
    from tpudeploy.domain.verify import Details, Verification
    from tpudeploy.engine.pins import Found as Pinned
    from tpudeploy.plans import Plan
    from tpudeploy.ports import World

T = TypeVar("T")


class Workspace(Wiring):
    """States beside the profiles, in `.tpudeploy/`. Opening does no I/O; clients are made when first needed.

    `backend` is another place for the states: a folder, or gs://bucket/prefix. `project` stands in where a profile
    names none. `parallelism` is how many calls to Google, and how many deployments, may be under way at once. `clock`
    and `patience` are for pipelines with their own sense of time, and for tests.
    """

    def deployment(
        self, profile: config.Profile, *, offline: bool = False, script: bool = True, pins: Pins | None = None
    ) -> Deployment:
        """The profile with every default decided. `offline` asks no credentials for a project.

        Without `script`, the startup script is only known to be one that Google takes: enough to check, and sooner.
        `pins` stand for those of the lock file.

        Raise `errors.PinsUnreadable` or `errors.PinsTooNew` for a lock file that cannot be used.
        """
        known = profile.spec.placement.project or self._known_project()
        project = known if known or offline else self.connection.project()
        held = pins if pins is not None else self.pins.read()
        return loading.deployment(profile, project=project, script=script, pins=held)

    def plan(
        self,
        profiles: Iterable[config.Profile],
        *,
        destroy: bool = False,
        adopt: bool = False,
        refresh: bool = True,
        refresh_only: bool = False,
        replace: Iterable[str] = (),
        target: Iterable[str] = (),
        attest: bool = False,
        invalid: Mapping[str, ConfigError] | None = None,
        on_event: Callable[[events.Event], None] | None = None,
    ) -> Plan:
        """What would change. With `adopt`, slices that no state remembers are taken over.

        `target` names what the plan is about, `replace` what another slice is to take the place of: addresses such as
        `gemma[0]`, or `gemma` for all replicas. Without `refresh` the cloud is taken to be as the states remember it.
        With `refresh_only` the plan is to write down what changed outside, and to touch nothing; with `attest` too, it
        tells of servers that do not do what was applied, which nothing can write down.

        `invalid` are files that hold no valid profile, each with its error. They stop no other: each of them, and each
        profile that cannot be resolved, has a goal with its problems and without changes.

        Raise `errors.Fault` or `errors.Denied` where the cloud cannot be looked at, `errors.UsageError` for an address
        that none of the profiles has, `errors.ConfigError` where no profile can be used.
        """
        from tpudeploy.domain.plan import Mode
        from tpudeploy.engine.pins import Found
        from tpudeploy.engine.plan import Scope, plan
        from tpudeploy.pins.pins import not_pinned
        from tpudeploy.planning.targets import parsed
        from tpudeploy.plans import Plan

        scope = Scope(
            mode=Mode.REFRESH_ONLY if refresh_only else Mode.DESTROY if destroy else Mode.NORMAL,
            adopt=adopt,
            refresh=refresh,
            replace=parsed(replace),
            target=parsed(target),
        )
        known, ambiguous = _named_once(profiles)
        world = self._world(on_event)
        found = self._pinned(world, known) if scope.mode is Mode.NORMAL else Found(pins=self.pins.read(), unknown={})
        deployments, unusable = self._resolve_each(known, {**(invalid or {}), **ambiguous}, found.pins)
        made = plan(
            world,
            deployments,
            scope,
            invalid=unusable,
            facts=self._quota,
            sources=self._verify_sources if attest else None,
        )
        said = (*made.diagnostics, *not_pinned(found.unknown, deployments))
        return Plan.of(dataclasses.replace(made, diagnostics=said), backend=self.backend)

    def pin(
        self, profiles: Iterable[config.Profile], *, on_event: Callable[[events.Event], None] | None = None
    ) -> tuple[Pin, ...]:
        """Look up anew what these profiles' tags and revisions are, and hold it in tpudeploy.lock.json; what moved.

        What nobody tells stays as it was. Nothing else changes: the next plan shows what that would restart.

        Raise `errors.PinsUnreadable` or `errors.PinsTooNew`, or `errors.StateError` where it cannot be written.
        """
        from tpudeploy.engine.pins import renew
        from tpudeploy.pins.pins import names

        every = [name for profile in profiles for name in names(profile.spec)]
        return renew(self._world(on_event), self.pins, every, self._sources, states=self.remembered())

    def apply(
        self,
        plan: Planned,
        *,
        on_event: Callable[[events.Event], None] | None = None,
        wait: Wait | str = Wait.SERVING,
        timeout: float | None = None,
        watch: bool = False,
        reset: bool = False,
    ) -> Report:
        """Make `plan` true; `timeout` is in seconds. Failures of single deployments are in the report.

        With `reset`, a running node that does not take over a change in three minutes is rebooted; without, it runs on
        as it was, and `errors.ChangeNotAcknowledged` is the outcome.

        With `watch` it does not return once everything serves: what is preempted is asked for again, until `stop` is
        called from another thread (then `errors.Interrupted` is raised) or something fails for good.

        Raise `errors.CheckFailed` where a check forbids all of the plan; one that forbids a single deployment among
        several is that deployment's outcome. Where it no longer holds, that is the outcome of the
        deployment; of a single one, and of one that was loaded from a file, `errors.StalePlan` is raised. From a file
        it holds only for the state and the slices that it was made for.
        """
        from tpudeploy.domain.plan import Mode
        from tpudeploy.engine.apply import apply
        from tpudeploy.engine.pins import hold
        from tpudeploy.engine.refresh import record
        from tpudeploy.pins.pins import in_attributes

        worst = plan.worst_error
        if worst is not None and plan.stopping_errors:
            raise worst
        world = self._world(on_event)
        if plan.mode is Mode.REFRESH_ONLY:
            return record(world, plan)
        self.pins.read()  # one that cannot be used stops what nothing was begun of yet
        pins = [pin for goal in plan.goals if goal.deployment for pin in in_attributes(goal.deployment.attributes)]
        return apply(
            world,
            plan,
            sources=self._verify_sources,
            until=Wait(wait),
            timeout=timeout,
            keep=watch,
            may_reset=reset,
            on_begun=lambda: hold(world, self.pins, pins),
        )

    def with_approved_renewals(self, plan: Plan, *, on_event: Callable[[events.Event], None] | None = None) -> Plan:
        """Return `plan` in which a deployment whose runs end is renewed as it was applied, instead of being changed.

        So a change that nobody has approved yet does not keep a slice from its successor. Deployments with nothing to
        renew stay as they are. Raise as `plan` does.
        """
        from tpudeploy.engine.plan import renewal

        world = self._world(on_event)
        goals = (renewal(world, goal, loading.applied) or goal for goal in plan.goals)
        return dataclasses.replace(plan, goals=tuple(goals))

    def stop(self) -> None:
        """End every wait of this workspace's runs, from whichever thread. Work in progress is saved."""
        self.clock.stop()

    def destroy(
        self, profiles: Iterable[config.Profile], *, on_event: Callable[[events.Event], None] | None = None
    ) -> Report:
        """Remove everything these profiles ever asked for, and look until it is gone."""
        return self.apply(self.plan(profiles, destroy=True), on_event=on_event)

    def gc(
        self,
        profiles: Iterable[config.Profile] = (),
        *,
        foreign: bool = False,
        on_event: Callable[[events.Event], None] | None = None,
    ) -> Garbage:
        """What stands in the cloud under our mark and nothing needs; of these profiles, or of all. Changes nothing.

        `foreign`: also what no state here speaks of. Raise `errors.Fault`, `errors.Denied` or `errors.StateError`
        where it cannot be known.
        """
        from tpudeploy.engine.gc import survey

        deployments = [self.deployment(p, script=False) for p in profiles]
        asked = {d.project for d in deployments} or {self._known_project() or self.connection.project()}
        return survey(self._world(on_event), deployments, [p for p in asked if p], foreign=foreign)

    def collect(self, garbage: Garbage, *, on_event: Callable[[events.Event], None] | None = None) -> Report:
        """Remove what `garbage` says goes, and look until it is gone. What has come to be needed meanwhile stays."""
        from tpudeploy.engine.gc import collect

        return collect(self._world(on_event), garbage)

    def move_state(
        self,
        source: str,
        target: str,
        *,
        force: bool = False,
        on_event: Callable[[events.Event], None] | None = None,
    ) -> None:
        """Rename a deployment (`gemma`, `chat`), or move a slice to another index (`gemma[1]`, `gemma[0]`).

        Raise `errors.StateError` where something stands in the way, ValueError for what is no address.
        """
        from tpudeploy.domain.names import Address
        from tpudeploy.engine.memory import move

        move(self._world(on_event), Address.parse(source), Address.parse(target), force=force)

    def forget(
        self,
        deployment: str,
        slices: Iterable[str],
        *,
        force: bool = False,
        on_event: Callable[[events.Event], None] | None = None,
    ) -> State:
        """Forget these slices of a deployment without deleting them: from then on they run, and cost, unobserved."""
        from tpudeploy.engine.memory import forget

        return forget(self._world(on_event), deployment, slices, force=force)

    def push_state(
        self, state: State, *, force: bool = False, on_event: Callable[[events.Event], None] | None = None
    ) -> tuple[Attempt, ...] | None:
        """Put a state in its place. What that forgets; None where it stood there already.

        Raise `errors.StateError` for another lineage or an older serial, unless forced.
        """
        from tpudeploy.engine.memory import push

        return push(self._world(on_event), state, force=force)

    def find_slice(self, id: str, profile: config.Profile | None = None) -> CloudResource:  # noqa: A002 - the command line's word
        """The queued resource of that name or path, whoever made it.

        Raise `errors.UsageError` for what names none, `errors.StateError` where there is none, or are several.
        """
        from tpudeploy.engine.importing import Wanted, find

        wanted = Wanted.parse(id)
        of = None if profile is None else self.deployment(profile, script=False)
        project = wanted.project or (of.project if of is not None else self._known_project())
        zones = () if of is None else [candidate.zone for candidate in of.candidates]
        return find(self._world(None), wanted, project or self._some_project(), zones)

    def check_import(self, address: Address, found: CloudResource, *, foreign: bool = False) -> None:
        """Raise `errors.StateError` where `import_slice` would."""
        from tpudeploy.engine.importing import check

        check(self._world(None), address, found, foreign=foreign)

    def import_slice(
        self,
        address: Address,
        profile: config.Profile,
        found: CloudResource,
        *,
        foreign: bool = False,
        on_event: Callable[[events.Event], None] | None = None,
    ) -> Attempt:
        """Take what was found into the state. What cannot be seen of it is as the profile says, but for its server.

        Raise `errors.StateError` where it cannot be taken in, or is tied to another lineage and not `foreign`.
        """
        from tpudeploy.engine.importing import bring_in

        return bring_in(self._world(on_event), address, self.deployment(profile), found, foreign=foreign)

    def status(
        self, profiles: Iterable[config.Profile], *, invalid: Mapping[str, ConfigError] | None = None
    ) -> tuple[DeploymentStatus, ...]:
        """Return how the deployments of these profiles stand, endpoints probed.

        Of one of several that cannot be looked at, and of each profile that cannot be used, an `error` says why. Raise
        as `plan` does.
        """
        from tpudeploy.domain.status import DeploymentStatus
        from tpudeploy.engine.status import statuses

        known, ambiguous = _named_once(profiles)
        deployments, unusable = self._resolve_each(known, {**(invalid or {}), **ambiguous}, self.pins.read())
        found = statuses(self._world(None), {d.name: d for d in deployments})
        unknown = (DeploymentStatus(name=name, replicas=(), error=error) for name, error in unusable.items())
        return (*found, *unknown)

    def details(self, profile: config.Profile) -> tuple[Details, ...]:
        """What each machine of a profile runs with, planned beside measured; none where nothing is deployed.

        Raise `errors.Fault` or `errors.Denied` where it cannot be looked at. What does not answer is untold.
        """
        from tpudeploy.engine.verify import detailed

        deployment = self.deployment(profile, script=False)
        state = self.states.read(deployment.name).state
        if state is None or all(a.granted_at is None for a in state.attempts):
            return ()
        return detailed(self._world(None), self._verify_sources, deployment)

    def addresses(self, name: str) -> Mapping[str, str]:
        """Slice → the address of the replica that it is, such as gemma[1]; of every slice that the state knows."""
        from tpudeploy.domain.names import address

        state = self.states.read(name).state
        records = () if state is None else state.records
        return {attempt.name: address(name, record.index) for record in records for attempt in record.attempts}

    def logs(
        self, name: str, *, on_unreadable: Callable[[str, CloudError], None] | None = None
    ) -> Mapping[str, tuple[str, ...]]:
        """Slice → what its machine printed while it booted, oldest line first.

        With `on_unreadable`, which is given a slice and why, a log that cannot be read hides no other one.

        Raise `errors.StateError` where nothing is deployed under this name, `errors.Fault` or `errors.Denied` where it
        cannot be read.
        """
        from tpudeploy.adapters.google.cloud_logging import CloudLogging
        from tpudeploy.engine.boot_logs import read_logs

        return read_logs(self._world(None), CloudLogging(self.connection), name, on_unreadable)

    def timelines(self, name: str) -> tuple[Timeline, ...]:
        """The last start of each machine of a deployment; none where nothing was granted, or nothing is told.

        Raise `errors.StateError`, or `errors.Fault` or `errors.Denied` where the machines cannot be asked.
        """
        from tpudeploy.adapters.google.cloud_logging import CloudLogging
        from tpudeploy.engine.boot_logs import timelines

        return timelines(self._world(None), CloudLogging(self.connection), name)

    def last_start(self, attempt: Attempt) -> Start | None:
        """How the server on this slice came up: how long it took, what it had from the compile cache; None: not told.

        Raise `errors.Fault` or `errors.Denied` where the machine cannot be asked.
        """
        from tpudeploy.adapters.google.cloud_logging import CloudLogging
        from tpudeploy.engine.boot_logs import last_start

        return last_start(self._world(None), CloudLogging(self.connection), attempt)

    def status_of_all(self) -> tuple[DeploymentStatus, ...]:
        """How everything with a state here stands. Without profiles nothing is probed."""
        from tpudeploy.engine.status import statuses

        return statuses(self._world(None), dict.fromkeys(self.states.names()))

    def remembered(self) -> tuple[State, ...]:
        """What the states here hold, without a look at the cloud. Raise `errors.StateUnreadable`."""
        found = (self.states.read(name).state for name in self.states.names())
        return tuple(state for state in found if state is not None)

    def zones(
        self,
        profiles: Iterable[config.Profile] = (),
        *,
        type: str | None = None,  # noqa: A002 - the command line's word
        refresh: bool = False,
    ) -> tuple[Zones, ...]:
        """Where each profile's slice can be had, or one of `type`. What Google does not tell is in the answer.

        Raise `errors.UsageError` for a type that there is not.
        """
        from tpudeploy.availability.gates import Query, judge_zones

        kind = None if type is None else loading.accelerator_type(type)
        known = [self._deployment(p) for p in profiles]
        queries = [(d.project, Query.for_deployment(d, kind)) for d in known]
        if not known:
            queries = [(self._any_project(), Query(type=kind or loading.smallest_type()))]
        history = self._told(self.states.history)
        facts = {
            project: self.survey.facts(project, refresh=refresh) for project in dict.fromkeys(p for p, _ in queries)
        }
        now = self.clock.now()
        return tuple(judge_zones(q, facts[p], history, project=p, now=now) for p, q in queries)

    def doctor(self, profile: config.Profile, *, refresh: bool = False) -> Diagnosis:
        """Every precondition of a profile, checked. Creates nothing; what Google does not tell is in the answer."""
        from tpudeploy.availability.doctor import diagnose
        from tpudeploy.availability.doctor.case import Case
        from tpudeploy.sizing.checks import check

        of = self._deployment(profile)
        (places,) = self.zones([profile], refresh=refresh)
        return diagnose(
            Case(
                deployment=of,
                diagnostics=(*self.warnings(profile), *check([of])),
                offline=self.survey.lacking(of.project),
                facts=self.survey.project_facts(of),
                zones=places,
                state=self._told(lambda: self.states.read(of.name).state),
                holder=self._told(lambda: self.states.holder(of.name)),
            )
        )

    def endpoint(self, name: str) -> Mapping[str, object] | None:
        """`endpoints/NAME.json`, as the last apply published it, or None. Raise `errors.StateUnreadable`."""
        from tpudeploy.domain.names import DEPLOYMENT_NAME

        # An agent may ask for `../../other`: a name that no deployment can have is no path.
        return self.states.published(name) if DEPLOYMENT_NAME.fullmatch(name) else None

    def verify(self, profile: config.Profile) -> Verification:
        """What the profile declares against what its engines do, by their API, their metrics and their boot logs.

        Raise `errors.QueryFailed` where it has no endpoint, `errors.StateError` where it has no machine,
        `errors.Fault` or `errors.Denied` where it cannot be looked at. What does not answer is untold.
        """
        from tpudeploy.domain.names import address
        from tpudeploy.domain.verify import Verification
        from tpudeploy.engine.verify import verify

        deployment = self.deployment(profile, script=False)
        self._url(deployment)
        found = verify(self._world(None), self._verify_sources, deployment)
        asked = {each.address for each in found}
        wanted = (address(deployment.name, index) for index in range(deployment.replicas))
        return Verification(name=deployment.name, replicas=found, absent=tuple(w for w in wanted if w not in asked))

    def metrics(self, profile: config.Profile) -> Metrics:
        """What each of its machines says of itself at this moment, in words. What does not answer says why.

        Raise `errors.StateError` where it has no machine, `errors.Fault` or `errors.Denied` where it cannot be seen.
        """
        from tpudeploy.adapters.vllm_metrics import HttpMeter
        from tpudeploy.domain.metrics import Metrics
        from tpudeploy.engine.metrics import metered

        deployment = self.deployment(profile, script=False)
        return Metrics(replicas=metered(self._world(None), HttpMeter(has_iap=not self.is_emulated), deployment))

    def metrics_of_published(self, names: Iterable[str] | None = None) -> Metrics:
        """The same of what answers at published endpoints: of these deployments, or of all that have one here.

        Raise `errors.QueryFailed` where there is none, `errors.StateUnreadable`.
        """
        from tpudeploy.adapters.vllm_metrics import HttpMeter
        from tpudeploy.domain.metrics import Metrics
        from tpudeploy.domain.together import together
        from tpudeploy.engine.metrics import judged

        meter, asked = HttpMeter(has_iap=False), self.states.names() if names is None else tuple(names)
        urls = {name: str(known["url"]) for name in asked if (known := self.endpoint(name)) is not None}
        if not urls or (names is not None and len(urls) < len(asked)):
            lacking = ", ".join(name for name in asked if name not in urls)
            said = f"{lacking} has no endpoint yet." if lacking else "Nothing is published here."
            raise QueryFailed(said, hint="Run `tpudeploy apply` first, or name a profile.")
        told = together(self._threads, lambda each: judged(each[0], each[1], meter.at(each[1])), urls.items())
        return Metrics(replicas=tuple(told))

    def ask(
        self,
        profile: config.Profile,
        prompt: str,
        *,
        max_tokens: int,
        on_piece: Callable[[str], None] | None = None,
    ) -> Completion:
        """One completion from the published endpoint, streamed: `on_piece` is given each piece of text as it comes.

        Raise `errors.QueryFailed`.
        """
        from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, VllmClient
        from tpudeploy.node.serving import served_model

        deployment = self.deployment(profile)
        client = VllmClient(self._url(deployment), api_key=self.probe.key(deployment), timeout=60.0)
        try:
            hear: Callable[[str], None] = on_piece if on_piece is not None else _unheard
            model = served_model(deployment)
            return client.complete(model, prompt, max_tokens=max_tokens, now=self.clock.now, on_piece=hear)
        except (NoAnswer, BadAnswer) as cause:
            hint = "See `tpudeploy status` for what the machine says."
            raise QueryFailed(f"{client.url} did not answer: {cause}.", hint=hint) from cause

    def warnings(self, profile: config.Profile) -> tuple[Diagnostic, ...]:
        """What is worth a thought about it: that a tag floats, only as long as it is not pinned."""
        from tpudeploy.config.codes import FLOATING_IMAGE
        from tpudeploy.pins.pins import image_of

        if not any(w.code == FLOATING_IMAGE for w in profile.warnings):
            return profile.warnings
        is_pinned = self.pins.read().target_of(image_of(profile.spec)) is not None
        return tuple(w for w in profile.warnings if not (is_pinned and w.code == FLOATING_IMAGE))

    def _resolve_each(
        self, profiles: Iterable[config.Profile], invalid: Mapping[str, ConfigError], pins: Pins
    ) -> tuple[list[Deployment], Mapping[str, ConfigError]]:
        """Return the deployments, and `invalid` with each profile of which none can be made.

        Raise the first `errors.ConfigError` where no deployment can be made.
        """
        from tpudeploy.domain.errors import ConfigError

        deployments: list[Deployment] = []
        unusable = dict(invalid)
        for profile in profiles:
            try:
                deployments.append(self.deployment(profile, pins=pins))
            except ConfigError as error:
                unusable[profile.spec.name] = error
        if unusable and not deployments:
            raise next(iter(unusable.values()))
        return deployments, unusable

    def _pinned(self, world: World, profiles: tuple[config.Profile, ...]) -> Pinned:
        """What the names in these profiles are held to. Asked is only for what neither lock file nor slices tell."""
        from tpudeploy.engine.look import readable_states
        from tpudeploy.engine.pins import Found, complete
        from tpudeploy.pins.pins import names

        held = self.pins.read()
        wanted = {p.spec.name: names(p.spec) for p in profiles}
        lacking = {name: tuple(n for n in of if held.target_of(n) is None) for name, of in wanted.items()}
        lacking = {name: of for name, of in lacking.items() if of}
        if not lacking:
            return Found(pins=held, unknown={})
        states = [state for state in readable_states(world, list(lacking))[0].values() if state is not None]
        asked_for = (n for of in lacking.values() for n in of)
        return complete(held, asked_for, states, self._sources, emulated=self.is_emulated)

    def _quota(self, project: str | None) -> Facts:
        """Its reader is imported where it is asked, which is seldom."""
        return self.survey.quota(project)

    def _url(self, deployment: Deployment) -> str:
        """Where it answers, as the last apply published it. Raise `errors.QueryFailed`."""
        published = self.endpoint(deployment.name)
        if published is None:
            raise QueryFailed(f"{deployment.name} has no endpoint yet.", hint="Run `tpudeploy apply` first.")
        return str(published["url"])

    def _told(self, remembered: Callable[[], T]) -> T | Unknown:
        """What the states tell, or why they do not."""
        from tpudeploy.domain.errors import CloudError, StateError
        from tpudeploy.domain.facts import Unknown

        try:
            return remembered()
        except (StateError, CloudError) as cause:
            return Unknown(because=cause.message, hint=cause.hint)

    def _deployment(self, profile: config.Profile) -> Deployment:
        """As `deployment`, for who goes on without a project."""
        from dataclasses import replace

        known = self.deployment(profile, offline=True, script=False)
        return known if known.project else replace(known, project=self._any_project())

    def _some_project(self) -> str:
        """Raise `errors.ConfigError` where none is known."""
        from tpudeploy.domain.errors import ConfigError

        found = self.connection.project()
        if found is None:
            hint = "Set GOOGLE_CLOUD_PROJECT, or name it in full: projects/P/locations/Z/queuedResources/N."
            raise ConfigError("No Google Cloud project is known.", hint=hint)
        return found

    def _any_project(self) -> str | None:
        """The project of whoever names none, or None: that the credentials are missing is told with what they read."""
        from tpudeploy.domain.errors import CloudError

        try:
            return self._known_project() or self.connection.project()
        except CloudError:
            return None


def _named_once(profiles: Iterable[config.Profile]) -> tuple[tuple[config.Profile, ...], Mapping[str, ConfigError]]:
    """Return the profiles whose names are their own, and an error for each name that several have."""
    from tpudeploy.domain.errors import ConfigError

    by_name: dict[str, list[config.Profile]] = {}
    for profile in profiles:
        by_name.setdefault(profile.spec.name, []).append(profile)
    hint = "A deployment is known by its name: give each profile its own, or name this one once."
    ambiguous = {
        name: ConfigError(f"Several profiles are called {name}.", hint=hint)
        for name, each in by_name.items()
        if len(each) > 1
    }
    return tuple(each[0] for name, each in by_name.items() if name not in ambiguous), ambiguous


def _unheard(_: str) -> None:
    """Nobody waits for each piece."""
