"""Workspace: one project folder, its states, many profiles. Wires the adapters to the engine; the library's face."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tpudeploy import loading
from tpudeploy.adapters.project import STATES
from tpudeploy.adapters.system_clock import SystemClock
from tpudeploy.domain.errors import ConfigError, QueryFailed
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.wait import Wait

if TYPE_CHECKING:
    from tpudeploy.adapters.google.connect import Connection
    from tpudeploy.adapters.http_probe import HttpProbe
    from tpudeploy.adapters.vllm_client import Completion
    from tpudeploy.config import profile as config
    from tpudeploy.domain import events
    from tpudeploy.domain.deployment import Deployment
    from tpudeploy.domain.plan import Plan
    from tpudeploy.domain.report import Report
    from tpudeploy.domain.status import DeploymentStatus
    from tpudeploy.engine.budget import CreateBudget
    from tpudeploy.ports import Clock, World


class Workspace:
    """States beside the profiles, in `.tpudeploy/`. Opening does no I/O; clients are made when first needed.

    `backend` is another folder for the states; `project` stands in where a profile names none. `clock` and
    `patience` are for pipelines with their own sense of time, and for tests.
    """

    def __init__(
        self,
        folder: Path,
        *,
        backend: str | None = None,
        project: str | None = None,
        clock: Clock | None = None,
        patience: Patience | None = None,
    ) -> None:
        if backend is not None and "://" in backend:
            raise ConfigError(f"The backend `{backend}` is not supported yet.", hint="Name a folder, or leave it out.")
        self.folder = folder
        self.clock: Clock = clock if clock is not None else SystemClock()
        self.patience = patience if patience is not None else Patience()
        self._states = folder / (backend or STATES)
        self._project = project

    @classmethod
    def open(
        cls,
        folder: str | Path = ".",
        *,
        backend: str | None = None,
        project: str | None = None,
        clock: Clock | None = None,
        patience: Patience | None = None,
    ) -> Self:
        """Raise `errors.ConfigError` for a backend that there is not."""
        return cls(Path(folder), backend=backend, project=project, clock=clock, patience=patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connections to Google, if any were made."""
        if "connection" in self.__dict__:
            self.connection.close()

    def deployment(self, profile: config.Profile, *, offline: bool = False, script: bool = True) -> Deployment:
        """The profile with every default decided. `offline` asks no credentials for a project.

        Without `script`, the startup script is only known to be one that Google takes: enough to check, and sooner.
        """
        known = profile.spec.placement.project or self._project or os.environ.get("GOOGLE_CLOUD_PROJECT")
        project = known if known or offline else self.connection.project()
        return loading.deployment(profile, project=project, script=script)

    def plan(
        self,
        profiles: Iterable[config.Profile],
        *,
        destroy: bool = False,
        on_event: Callable[[events.Event], None] | None = None,
    ) -> Plan:
        """What would change. Raise `errors.Fault` or `errors.Denied` where the cloud cannot be looked at."""
        from tpudeploy.engine.plan import plan

        deployments = [self.deployment(p) for p in profiles]
        return plan(self._world(on_event), deployments, destroy=destroy)

    def apply(
        self,
        plan: Plan,
        *,
        on_event: Callable[[events.Event], None] | None = None,
        wait: Wait | str = Wait.SERVING,
        timeout: float | None = None,
        watch: bool = False,
    ) -> Report:
        """Make `plan` true; `timeout` is in seconds. Failures of single deployments are in the report.

        With `watch` it does not return once everything serves: what is preempted is asked for again, until `stop` is
        called from another thread (then `errors.Interrupted` is raised) or something fails for good.

        Raise `errors.CheckFailed` where a check forbids the plan, `errors.StalePlan` where it no longer holds.
        """
        from tpudeploy.domain.diagnostics import errors_in
        from tpudeploy.domain.errors import CheckFailed
        from tpudeploy.engine.apply import apply

        forbidden = errors_in(plan.diagnostics)
        if forbidden:
            raise CheckFailed(forbidden[0].message, hint=forbidden[0].hint)
        return apply(self._world(on_event), plan, until=Wait(wait), timeout=timeout, keep=watch)

    def stop(self) -> None:
        """End every wait of this workspace's runs, from whichever thread. What was begun is saved."""
        self.clock.stop()

    def destroy(
        self, profiles: Iterable[config.Profile], *, on_event: Callable[[events.Event], None] | None = None
    ) -> Report:
        """Remove everything these profiles ever asked for, and look until it is gone."""
        return self.apply(self.plan(profiles, destroy=True), on_event=on_event)

    def status(self, profiles: Iterable[config.Profile]) -> tuple[DeploymentStatus, ...]:
        """How the deployments of these profiles stand, endpoints probed."""
        from tpudeploy.engine.status import status

        known = [self.deployment(p) for p in profiles]
        return tuple(status(self._world(None), d.name, d) for d in known)

    def status_of_all(self) -> tuple[DeploymentStatus, ...]:
        """How everything with a state here stands. Without profiles nothing is probed."""
        from tpudeploy.engine.status import status

        world = self._world(None)
        return tuple(status(world, name, None) for name in world.state.names())

    def endpoint(self, name: str) -> Mapping[str, object] | None:
        """`endpoints/NAME.json`, as the last apply published it, or None."""
        import json

        path = self._states.parent / "endpoints" / f"{name}.json"
        try:
            published: Mapping[str, object] = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as cause:
            raise QueryFailed(f"{path} cannot be read: {cause}.", hint="`tpudeploy apply` writes it anew.") from cause
        if not isinstance(published, dict) or not isinstance(published.get("url"), str):
            raise QueryFailed(f"{path} names no endpoint.", hint="`tpudeploy apply` writes it anew.")
        return published

    def ask(self, profile: config.Profile, prompt: str, *, max_tokens: int) -> Completion:
        """One completion from the published endpoint, streamed. Raise `errors.QueryFailed`."""
        from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, VllmClient
        from tpudeploy.core.serving import served_model

        deployment = self.deployment(profile)
        published = self.endpoint(deployment.name)
        if published is None:
            raise QueryFailed(f"{deployment.name} has no endpoint yet.", hint="Run `tpudeploy apply` first.")
        client = VllmClient(str(published["url"]), api_key=self.probe.key(deployment), timeout=60.0)
        try:
            return client.complete(served_model(deployment), prompt, max_tokens=max_tokens, now=self.clock.now)
        except (NoAnswer, BadAnswer) as cause:
            hint = "See `tpudeploy status` for what the machine says."
            raise QueryFailed(f"{published['url']} did not answer: {cause}.", hint=hint) from cause

    @property
    def is_emulated(self) -> bool:
        return bool(os.environ.get("TPU_EMULATOR_HOST"))

    @cached_property
    def connection(self) -> Connection:
        from tpudeploy.adapters.google.connect import Connection

        return Connection.from_environment(timeout=self.patience.call_timeout)

    @cached_property
    def probe(self) -> HttpProbe:
        from tpudeploy.adapters.google import secrets
        from tpudeploy.adapters.http_probe import HttpProbe

        def read(project: str, secret: str) -> str:
            return secrets.read(self.connection, project, secret)

        return HttpProbe(self.clock, read, has_iap=not self.is_emulated)

    @cached_property
    def _creates(self) -> CreateBudget:
        from tpudeploy.engine.budget import CreateBudget

        return CreateBudget(self.clock, every=self.patience.create_every)

    def _world(self, on_event: Callable[[events.Event], None] | None) -> World:
        import uuid

        from tpudeploy.adapters.google.cloud_tpu import CloudTpu
        from tpudeploy.adapters.state.local import LocalState, who
        from tpudeploy.ports import World

        return World(
            cloud=CloudTpu(self.connection),
            state=LocalState(self._states, self.clock, who=who()),
            probe=self.probe,
            clock=self.clock,
            emit=_guarded(on_event) if on_event is not None else _silent,
            patience=self.patience,
            creates=self._creates,
            who=who(),
            mint=lambda: uuid.uuid4().hex,
        )


def _guarded(on_event: Callable[[events.Event], None]) -> Callable[[events.Event], None]:
    """A listener that fails is said so and dropped: the run holds a slice that is paid for."""
    listening = True

    def emit(event: events.Event) -> None:
        nonlocal listening
        if not listening:
            return
        try:
            on_event(event)
        except Exception as failure:  # noqa: BLE001 - whatever a stranger's callback raises
            listening = False
            warnings.warn(f"on_event raised {failure!r}; it hears no more of this run", RuntimeWarning, stacklevel=2)

    return emit


def _silent(_: events.Event) -> None:
    """Nobody listens."""
