"""Composition root: which adapter implements which port for one project folder. Each is made when first needed."""

from __future__ import annotations

import logging
import os
import sys
import uuid
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from tpudeploy import loading
from tpudeploy.adapters.boot_file import BootFile
from tpudeploy.adapters.http_budget import within
from tpudeploy.adapters.http_probe import HttpEngineSource, HttpProbe
from tpudeploy.adapters.local_routers import LocalRouters
from tpudeploy.adapters.pin_file import PinFile
from tpudeploy.adapters.project import STATES, absolute
from tpudeploy.adapters.records import BucketRecords, LocalRecords
from tpudeploy.adapters.registry import NAME_SECONDS, Registry
from tpudeploy.adapters.sources import Hub, Origins
from tpudeploy.adapters.state import address
from tpudeploy.adapters.state.aside import Aside
from tpudeploy.adapters.state.disk import Folder
from tpudeploy.adapters.state.holder import who
from tpudeploy.adapters.state.local import LocalState
from tpudeploy.adapters.system_clock import SystemClock
from tpudeploy.domain import events
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.events import ChangeFailed, Sentences, Warned
from tpudeploy.domain.excerpt import plain
from tpudeploy.domain.names import PROJECT
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.together import PARALLELISM
from tpudeploy.engine.budget import CreateBudget
from tpudeploy.ports import BootStore, Clock, PinStore, RecordStore, Sources, StateBackend, Survey, VerifySources, World
from tpudeploy.text.paint import Paint
from tpudeploy.views.events import line

if TYPE_CHECKING:
    from tpudeploy.adapters.google.backends import Backends
    from tpudeploy.adapters.google.connect import CloudConnection
    from tpudeploy.adapters.google.objects import BucketObjects

_PROJECT_VARIABLE = "GOOGLE_CLOUD_PROJECT"


class WorkspaceOptions(TypedDict, total=False):
    """The options of a workspace, each as `Workspace` describes it."""

    backend: str | None
    project: str | None
    parallelism: int
    clock: Clock | None
    patience: Patience | None


class Adapters:
    """The adapters of one project folder. `close` frees locks and connections."""

    def __init__(
        self,
        folder: Path,
        *,
        backend: str | None = None,
        project: str | None = None,
        parallelism: int = PARALLELISM,
        clock: Clock | None = None,
        patience: Patience | None = None,
    ) -> None:
        """Raise `errors.ConfigError` for an invalid backend, `errors.UsageError` for a parallelism below 1."""
        if parallelism < 1:
            raise UsageError(f"A parallelism of {parallelism} runs nothing.", hint="It is a positive integer.")
        self.parallelism = parallelism
        self.folder = folder
        self.clock: Clock = clock if clock is not None else SystemClock()
        self.patience = patience if patience is not None else Patience()
        self.backend = backend or ""
        self._bucket = None if backend is None else address.parse(backend)
        # The folder for files of this machine: the states, or what belongs to states in a bucket.
        self._local_folder = folder / (backend if backend and self._bucket is None else STATES)
        self._project = project
        self._stops: list[Callable[[], None]] = []
        self._is_stopped = False
        # The ledger and the budgets of what is requested, None for those of `states`.
        self.accounts: StateBackend | None = None
        # Once one is used here, registries inside the network are not asked for any profile.
        self.has_untrusted_profile = False

    def elsewhere(self, backend: str) -> Adapters:
        """Return the adapters of this folder with the states in another backend. Raise as the constructor does."""
        return Adapters(
            self.folder,
            backend=backend,
            project=self._project,
            parallelism=self.parallelism,
            clock=self.clock,
            patience=self.patience,
        )

    @property
    def place(self) -> str:
        """Return where the states are, as `--backend` takes it in any folder."""
        if self._bucket is not None:
            return f"gs://{self._bucket.name}/{self._bucket.prefix}".rstrip("/")
        return str(absolute(self._local_folder))

    def stop(self) -> None:
        """End every wait and every load, present and future, from any thread."""
        self._is_stopped = True
        self.interrupt()

    def interrupt(self) -> None:
        """End every wait and every load under way, from any thread. After `resume`, others may follow."""
        self.clock.stop()
        for stop in tuple(self._stops):
            stop()

    def resume(self) -> None:
        """Let new waits and loads follow those that `interrupt`, or an exception in one of several runs, has ended."""
        self._stops.clear()
        # A clock from outside is its owner's to start again.
        if not self._is_stopped and isinstance(self.clock, SystemClock):
            self.clock.resume()

    def within(self, seconds: float | None) -> AbstractContextManager[None]:
        """Let each request of the block end within these seconds of the clock; None, or virtual time, bounds none."""
        clock = self.clock
        if seconds is None or not isinstance(clock, SystemClock):
            return nullcontext()

        ends = clock.now() + seconds
        return within(lambda: clock.real_seconds(ends - clock.now()))

    def close(self) -> None:
        """Release the locks of an interrupted run, and close the connections to Google, if any were made."""
        if "states" in self.__dict__:
            self.states.close()
        if "connection" in self.__dict__:
            self.connection.close()

    @property
    def known_project(self) -> str | None:
        """Return the project that is set for this workspace or in the environment, without asking the credentials.

        Raise `errors.UsageError` where the environment has what is no project's id or number.
        """
        if self._project:
            return self._project
        project = os.environ.get(_PROJECT_VARIABLE)
        if project and not PROJECT.fullmatch(project) and not project.isdecimal():
            raise UsageError(
                f"The environment variable {_PROJECT_VARIABLE} is `{plain(project)}`, which has not the form of a "
                "project id.",
                hint="A project id has 6 to 30 lower-case letters, digits and hyphens, such as my-project; "
                "`gcloud projects list` shows it beside the project's name.",
            )
        return project

    def project(self) -> str | None:
        """Return the project for a profile that names none. Raise `errors.CloudError` without credentials."""
        return self.known_project or self.connection.project()

    @property
    def is_local(self) -> bool:
        """Return whether the states are files of this machine."""
        return self._bucket is None

    @property
    def is_emulated(self) -> bool:
        return bool(os.environ.get("TPU_EMULATOR_HOST"))

    @cached_property
    def connection(self) -> CloudConnection:
        from tpudeploy.adapters.google.connect import CloudConnection

        return CloudConnection.from_environment(
            timeout=self.patience.call_timeout, is_trusted=lambda: not self.has_untrusted_profile
        )

    @cached_property
    def probe(self) -> HttpProbe:
        from tpudeploy.adapters.google import secrets

        def read(project: str, secret: str) -> str:
            return secrets.read(self.connection, project, secret)

        return HttpProbe(self.clock, read, has_iap=not self.is_emulated)

    def stop_too(self, stop: Callable[[], None]) -> None:
        """Let `interrupt` call this as well. A workspace that was stopped for good calls it at once."""
        self._stops.append(stop)
        if self._is_stopped:  # `stop` may have come from another thread before this was in the list
            stop()

    @property
    def cloud_logs(self) -> Backends:
        return self._cloud()

    def _cloud(self) -> Backends:
        from tpudeploy.adapters.google.backends import Backends

        return Backends(self.connection, self.clock, threads=self.parallelism)

    @property
    def verify_sources(self) -> VerifySources:
        return VerifySources(
            engine=HttpEngineSource(self.probe), logs=self.cloud_logs, applied=loading.applied, boots=self.boots
        )

    @property
    def boots(self) -> BootStore:
        own = BootFile(Folder(self._local_folder, root=self.folder), emulated=self.is_emulated)
        if self._bucket is None:
            return own
        from tpudeploy.adapters.state.bucket import BucketBoots

        return BucketBoots(self._objects(self._bucket.name), self._bucket.prefix, own)

    @cached_property
    def _creates(self) -> dict[Backend, CreateBudget]:
        return {backend: CreateBudget(self.clock, every=self.patience.create_every) for backend in Backend}

    @cached_property
    def states(self) -> StateBackend:
        if self._bucket is None:
            emulated = self.is_emulated
            return LocalState(self._local_folder, self.clock, who=who(), root=self.folder, emulated=emulated)
        from tpudeploy.adapters.state.bucket import BucketState

        aside = Aside(self.own_folder("errored"), backend=self.place)
        objects = self._objects(self._bucket.name)
        return BucketState(objects, self.clock, who=who(), prefix=self._bucket.prefix, aside=aside)

    def records(self, name: str) -> RecordStore:
        """Return the storage of records of this kind, where the states are."""
        local = LocalRecords(self.own_folder(name))
        if self._bucket is None:
            return local
        return BucketRecords(self._objects(self._bucket.name), f"{self._bucket.prefix}{name}/", local)

    def shared_records(self, name: str) -> RecordStore | None:
        """Return the storage of records of this kind that other computers reach, or None if states are here alone."""
        return None if self._bucket is None else self.records(name)

    def _objects(self, bucket: str) -> BucketObjects:
        from tpudeploy.adapters.google.objects import BucketObjects

        return BucketObjects(self.connection, self.clock, self.patience, bucket=bucket)

    @cached_property
    def routers(self) -> LocalRouters:
        """Return the routers of this machine, which follow the endpoints here or in the bucket."""
        backend = ["--backend", self.backend] if self.backend else []
        command = [sys.executable, "-m", "tpudeploy", "router", *backend]
        return LocalRouters(self.folder / STATES / "routers", command=command, folder=self.folder)

    @cached_property
    def pins(self) -> PinStore:
        return PinFile(self.folder, self._local_folder, emulated=self.is_emulated)

    @cached_property
    def sources(self) -> Sources:
        from tpudeploy.adapters.google.compute_engine.images import newest_image

        connection, timeout = self.connection, min(self.patience.call_timeout, NAME_SECONDS)
        registry = Registry(connection.registry, connection.token, timeout=timeout, allow=connection.may_be_registry)
        return Origins(registry, Hub(connection.hub, timeout=timeout), partial(newest_image, connection))

    @cached_property
    def survey(self) -> Survey:
        from tpudeploy.adapters.google.survey import GoogleSurvey

        return GoogleSurvey(self.connection, self.clock, self.own_folder("facts"))

    def own_folder(self, name: str) -> Folder:
        """Return a folder for files of this machine, which no link in the project leads out of."""
        return Folder(self._local_folder / name, root=self.folder)

    def world(self, on_event: Callable[[events.Event], None] | None = None) -> World:
        return World(
            cloud=self._cloud(),
            state=self.states,
            probe=self.probe,
            routers=self.routers,
            clock=self.clock,
            emit=_logged(_guarded(on_event) if on_event is not None else _silent),
            patience=self.patience,
            creates=self._creates,
            who=who(),
            mint=lambda: uuid.uuid4().hex,
            threads=self.parallelism,
            accounts=self.accounts,
        )


def _logged(emit: Callable[[events.Event], None]) -> Callable[[events.Event], None]:
    """Return a listener that writes each event to the logger `tpudeploy` too, and give events their sentences."""
    Sentences.write = staticmethod(_sentence)
    log = logging.getLogger("tpudeploy")
    if not log.handlers:
        log.addHandler(logging.NullHandler())  # else Python prints warnings of a program that set up no logging

    def emit_and_log(event: events.Event) -> None:
        level = logging.WARNING if isinstance(event, Warned | ChangeFailed) else logging.INFO
        if log.isEnabledFor(level):
            log.log(level, "%s", event)
        emit(event)

    return emit_and_log


def _sentence(event: events.Event) -> str:
    return line(event, Paint())


def _guarded(on_event: Callable[[events.Event], None]) -> Callable[[events.Event], None]:
    """Return a listener that is dropped, with a warning, once it fails: the run holds a slice that is billed."""
    listening = True

    def emit(event: events.Event) -> None:
        nonlocal listening
        if not listening:
            return
        try:
            on_event(event)
        except Exception as failure:  # noqa: BLE001 - whatever a stranger's callback raises
            listening = False
            warnings.warn(
                f"on_event raised {failure!r}; it gets no further events of this run", RuntimeWarning, stacklevel=2
            )

    return emit


def _silent(_: events.Event) -> None:
    """Ignore an event."""
