"""Workspace: one project folder with its states and many profiles. The face of the library.

Each operation (tpudeploy/operations) is a method. This module holds what the operations share, and what only a program
needs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Self, TypeVar, Unpack

from tpudeploy import loading
from tpudeploy.adapters.vllm_client import BadAnswer, Completion, NoAnswer, VllmClient
from tpudeploy.boot_log.reading import Timeline
from tpudeploy.config import profile as config
from tpudeploy.config.codes import FLOATING_IMAGE
from tpudeploy.domain import events
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import CloudError, ConfigError, ProfileInvalid, QueryFailed, StateError, UsageError
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.names import DEPLOYMENT_NAME, address
from tpudeploy.domain.orphans import Orphans
from tpudeploy.domain.pins import Pin, Pins
from tpudeploy.domain.starts import MeasuredStart
from tpudeploy.domain.state import Attempt, State
from tpudeploy.domain.verify import Verification
from tpudeploy.engine.boot_logs import last_start, read_logs, timelines
from tpudeploy.engine.confirmation import confirmed_document
from tpudeploy.engine.orphan_removal import collect
from tpudeploy.engine.pins import renew
from tpudeploy.engine.plan import with_renewals
from tpudeploy.engine.session import states_by_name
from tpudeploy.engine.verify import verify
from tpudeploy.loading import Profile, Profiles
from tpudeploy.node.serving import served_model
from tpudeploy.operations import Methods
from tpudeploy.pins import image_of, names, written_digests
from tpudeploy.plans import Plan, Report
from tpudeploy.reconcile.replicas import with_replicas
from tpudeploy.wiring import Adapters, WorkspaceOptions

T = TypeVar("T")
Listener = Callable[["events.Event"], None]


class Workspace(Methods):
    """A project folder and its deployments: what the command line does, as methods.

        with Workspace.open(".") as workspace:
            plan = workspace.plan("gemma.yaml")
            report = workspace.apply(plan, timeout="1h")

    Profiles are paths or `Profile` objects. States are in `.tpudeploy/`, or in `backend`. `adapters` are the
    connections to everything outside.
    """

    adapters_class = Adapters

    def __init__(self, folder: str | Path = ".", **options: Unpack[WorkspaceOptions]) -> None:
        """Open the workspace of a folder, without I/O; clients are made when they are first needed.

        `backend` is another place for the states: a folder, or gs://bucket/prefix. `project` is used where a profile
        names none. `parallelism` is how many calls to Google, and how many deployments, may run at the same time.
        `clock` and `patience` are for pipelines with their own time, and for tests.

        Raise `errors.ConfigError` for an invalid backend, `errors.UsageError` for a parallelism below 1.
        """
        self.adapters = self.adapters_class(Path(folder), **options)
        self._lock = Lock()
        self._calls = 0

    @classmethod
    def open(cls, folder: str | Path = ".", **options: Unpack[WorkspaceOptions]) -> Self:
        """Return the workspace of a folder. The options are those of the constructor."""
        return cls(folder, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the locks of an interrupted run, and close the connections to Google, if any were made."""
        self.adapters.close()

    def stop(self) -> None:
        """End the calls of this workspace that are under way, from any thread; later calls run. Progress is saved."""
        with self._lock:
            if self._calls:
                self.adapters.interrupt()

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Count a call of an operation, which may make others: `stop` ends them all, and is over with the last one."""
        with self._lock:
            self._calls += 1
        try:
            yield
        finally:
            with self._lock:
                self._calls -= 1
                if not self._calls:
                    self.adapters.resume()

    def deployment(
        self, profile: config.Profile, *, offline: bool = False, script: bool = True, pins: Pins | None = None
    ) -> Deployment:
        """Return the profile with every default decided. With `offline`, no credentials are read for a project.

        Without `script`, the startup script is only checked against Google's limit, which is faster. `pins` replace
        those of the lock file.

        Raise `errors.PinsUnreadable` or `errors.PinsTooNew` for a lock file that cannot be used.
        """
        self.note_trust([profile])
        project = profile.placement.project or self.adapters.known_project
        if not project and not offline:
            project = self.adapters.connection.project()
        active_pins = pins if pins is not None else self.adapters.pins.read()
        folder = self.adapters.folder
        return loading.deployment(profile, project=project, folder=folder, script=script, pins=active_pins)

    def note_trust(self, profiles: Iterable[config.Profile]) -> None:
        """Note whether a profile's author is untrusted, before a name in it is looked up."""
        if any(map(loading.is_untrusted, profiles)):
            self.adapters.has_untrusted_profile = True

    def offline_deployment(self, profile: config.Profile) -> Deployment:
        """Return the deployment for an operation that continues without a project, and without a startup script."""
        deployment = self.deployment(profile, offline=True, script=False)
        return deployment if deployment.project else dataclasses.replace(deployment, project=self.project_or_none())

    def resolve(
        self, profiles: Iterable[config.Profile], invalid: Mapping[str, ConfigError] | None, pins: Pins
    ) -> tuple[list[Deployment], Mapping[str, ConfigError]]:
        """Return the deployments of profiles, and an error for each that cannot be resolved or has another's name.

        The errors of `invalid` files are among them. Raise the first error if there is no deployment at all.
        """
        unique, errors = unique_names(profiles)
        unusable = {**(invalid or {}), **errors}
        deployments: list[Deployment] = []
        for profile in unique:
            try:
                deployments.append(self.deployment(profile, pins=pins))
            except ConfigError as error:
                unusable[profile.name] = error
        if unusable and not deployments:
            raise next(iter(unusable.values()))
        return deployments, unusable

    def warnings(self, profile: config.Profile) -> tuple[Diagnostic, ...]:
        """Return the warnings of a profile, by what the lock file knows of its image.

        A floating tag is a warning only as long as it is not pinned. A profile that is invalid by its release keeps its
        warnings: the operation says what is wrong.
        """
        if not profile.warnings:
            return ()
        pins = self.adapters.pins.read()
        with suppress(ProfileInvalid):
            profile = loading.judge(profile, pins)
        is_pinned = pins.target_of(image_of(profile)) is not None
        return tuple(w for w in profile.warnings if not (is_pinned and w.code == FLOATING_IMAGE))

    def pin(self, profiles: Profiles, *, on_event: Listener | None = None) -> tuple[Pin, ...]:
        """Look up the tags and revisions of profiles again, pin them in tpudeploy.lock.json, and return what moved.

        A name that cannot be looked up keeps its pin. Nothing else changes: the next plan shows what it would restart.

        Raise `errors.PinsUnreadable` or `errors.PinsTooNew`, or `errors.StateError` if the file cannot be written.
        """
        loaded = tuple(loading.profiles(profiles))
        self.note_trust(loaded)
        all_names = [name for profile in loaded for name in names(profile)]
        adapters = self.adapters
        return renew(
            adapters.world(on_event),
            adapters.pins,
            all_names,
            adapters.sources,
            states=self.states(),
            digests=written_digests(loaded),
        )

    def with_approved_renewals(self, plan: Plan, *, on_event: Listener | None = None) -> Plan:
        """Return `plan` in which a deployment whose runs end is renewed as it was applied, instead of being changed.

        So a change that is not approved yet does not keep a slice from its successor. Deployments with nothing to
        renew stay as they are. Raise as `plan` does.
        """
        world = self.adapters.world(on_event)
        return dataclasses.replace(plan, goals=with_renewals(world, plan.goals, loading.applied))

    def collect(self, orphans: Orphans, *, on_event: Listener | None = None) -> Report:
        """Delete the orphans that `gc` listed, and wait until they are gone. One that is needed meanwhile stays."""
        return Report.from_domain(collect(self.adapters.world(on_event), orphans))

    def states(self) -> tuple[State, ...]:
        """Return the states here, without a look at the cloud. Raise `errors.StateUnreadable`."""
        return tuple(state for state in states_by_name(self.adapters.states).values() if not state.moved_to)

    def recorded_profile(self, name: str, sets: Sequence[str] = ()) -> Profile:
        """Return a profile for the deletion of a deployment, from its state. Raise `errors.UsageError` without one."""
        state = self.adapters.states.read(name).state if DEPLOYMENT_NAME.fullmatch(name) else None
        if state is None:
            names = ", ".join(self.adapters.states.names())
            hint = f"Deployments with a state here: {names}." if names else "No deployment has a state here."
            raise UsageError(f"`{name}` is neither a profile nor a deployment with a state here.", hint=hint)
        return loading.recorded(state, sets)

    def addresses(self, name: str) -> Mapping[str, str]:
        """Return the address of the replica, such as gemma[1], by each slice in the deployment's state."""
        state = self.adapters.states.read(name).state
        records = () if state is None else state.all_records
        return {attempt.name: address(name, record.index) for record in records for attempt in record.attempts}

    def boot_logs(
        self, name: str, *, on_unreadable: Callable[[str, CloudError], None] | None = None
    ) -> Mapping[str, tuple[str, ...]]:
        """Return the lines of each machine's boot by its slice, oldest first.

        `on_unreadable` gets a slice whose log cannot be read, and why; the others are read.

        Raise `errors.StateError` if nothing is deployed under this name, `errors.Fault` or `errors.Denied` if a log
        cannot be read.
        """
        return read_logs(self.adapters.world(), self.adapters.cloud_logs, name, on_unreadable)

    def timelines(self, name: str) -> tuple[Timeline, ...]:
        """Return the last start of each machine of a deployment that was granted and has reported one.

        Raise `errors.StateError`, or `errors.Fault` or `errors.Denied` if the machines cannot be observed.
        """
        return timelines(self.adapters.world(), self.adapters.cloud_logs, name)

    def last_start(self, attempt: Attempt) -> MeasuredStart | None:
        """Return how the server on this slice started: its time, and what the compile cache held. None if unknown.

        Raise `errors.Fault` or `errors.Denied` if the machine cannot be observed.
        """
        return last_start(self.adapters.world(), self.adapters.cloud_logs, attempt)

    def endpoint(self, name: str) -> Mapping[str, object] | None:
        """Return `endpoints/NAME.json`, as the last apply published it, or None. Raise `errors.StateUnreadable`."""
        # An agent may ask for `../../other`: a name that no deployment can have is not a path.
        return self.adapters.states.published(name) if DEPLOYMENT_NAME.fullmatch(name) else None

    def confirmed_endpoint(self, profile: config.Profile) -> Mapping[str, object]:
        """Return the endpoint document of a profile, each of whose addresses may get a prompt and the API key.

        Those are the addresses that Google reports for the slices in the state, in the profile's project, and a
        router that runs here. A profile whose author is trusted also confirms the address of its own router, and this
        machine's end of a tunnel. Replicas at other addresses are left out.

        Raise `errors.QueryFailed` without an endpoint, or where its address is another one; `errors.StateError`,
        `errors.Fault` or `errors.Denied`.
        """
        deployment = self.deployment(profile, script=False)
        document = self.endpoint(deployment.name)
        if document is None:
            raise QueryFailed(f"{deployment.name} has no endpoint yet.", hint="Run `tpudeploy apply` first.")
        is_trusted = not loading.is_untrusted(profile)
        return confirmed_document(self.adapters.world(), deployment, document, is_trusted=is_trusted)

    def completion(
        self,
        profile: config.Profile,
        prompt: str,
        *,
        max_tokens: int,
        on_piece: Callable[[str], None] | None = None,
        system: str = "",
        model: str = "",
    ) -> Completion:
        """Return one completion from the published endpoint. `on_piece` gets each piece of text as it arrives.

        `system` is the system prompt, `model` another served name than the deployment's own, such as an adapter's.

        Raise `errors.QueryFailed`, also for a server that completes no prompts.
        """
        deployment = self.deployment(profile)
        client = VllmClient(
            str(self.confirmed_endpoint(profile)["url"]), api_key=self.adapters.probe.key(deployment), timeout=25.0
        )
        try:
            return client.complete(
                model or served_model(deployment),
                prompt,
                max_tokens=max_tokens,
                now=self.adapters.clock.now,
                system=system,
                on_piece=on_piece if on_piece is not None else lambda _: None,
            )
        except (NoAnswer, BadAnswer) as cause:
            hint = "See `tpudeploy status` for what the machine says."
            raise QueryFailed(f"{client.url} did not answer: {cause}.", hint=hint) from cause

    def verification(self, profile: config.Profile) -> Verification:
        """Return what a profile declares beside what its engines do. Raise as the operation `verify` does."""
        deployment = self.deployment(profile, script=False)
        if self.endpoint(deployment.name) is None:
            raise QueryFailed(f"{deployment.name} has no endpoint yet.", hint="Run `tpudeploy apply` first.")
        replicas = verify(self.adapters.world(), self.adapters.verify_sources, deployment)
        present = {replica.address for replica in replicas}
        expected = (address(deployment.name, index) for index in self.replica_indexes(profile))
        absent = tuple(each for each in expected if each not in present)
        return Verification(name=deployment.name, replicas=replicas, absent=absent)

    def replica_indexes(self, profile: config.Profile) -> tuple[int, ...]:
        """Return the indexes of a profile's replicas, as its state has them."""
        deployment = self.deployment(profile, script=False)
        state = self.adapters.states.read(deployment.name).state
        return (deployment if state is None else with_replicas(deployment, state)).replica_indexes

    def or_unknown(self, read: Callable[[], T]) -> T | Unknown:
        """Return what `read` returns, or why the states cannot be read."""
        try:
            return read()
        except (StateError, CloudError) as cause:
            return Unknown(because=cause.message, hint=cause.hint)

    def project_or_none(self) -> str | None:
        """Return the project for a profile that names none; missing credentials are reported with what they read."""
        try:
            return self.adapters.project()
        except CloudError:
            return None


def unique_names(profiles: Iterable[config.Profile]) -> tuple[tuple[config.Profile, ...], Mapping[str, ConfigError]]:
    """Return the profiles whose names are their own, and an error for each name that several have."""
    by_name: dict[str, list[config.Profile]] = {}
    for profile in profiles:
        by_name.setdefault(profile.name, []).append(profile)
    hint = "A deployment is identified by its name: give each profile its own, or name this one once."
    ambiguous = {
        name: ConfigError(f"Several profiles are called {name}.", hint=hint)
        for name, each in by_name.items()
        if len(each) > 1
    }
    return tuple(each[0] for name, each in by_name.items() if name not in ambiguous), ambiguous
