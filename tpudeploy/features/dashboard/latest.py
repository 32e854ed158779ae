"""The documents that the page shows: those of --json, read again every few seconds, and the load of the last day."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tpudeploy.adapters.vllm_metrics import HttpMeter
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.errors import Bug, TpudeployError, UsageError
from tpudeploy.domain.metrics import EngineFigures
from tpudeploy.domain.together import together
from tpudeploy.feature_table import FEATURES
from tpudeploy.features.dashboard.load_file import LoadFile
from tpudeploy.features.dashboard.load_history import new_row
from tpudeploy.loading import Profile, name_of
from tpudeploy.views.first_request import first_request
from tpudeploy.workspace import Workspace

# Seconds between two readings: of the slices and servers as `status --watch` has it, of the load, and of a plan.
LIVE, _LOAD, _PLAN = 10.0, 30.0, 300.0
_MOST_STATES = 20
_STOP_SECONDS = 1.0  # an interruption has two seconds; the thread ends with the process
# Of a log: how long it counts, and the most lines and characters of each machine that the page gets.
_LOG_SECONDS, _MOST_LINES, _MOST_CHARACTERS = 10.0, 2000, 1 << 19
_MOST_EVENTS = 200


class Documents:
    """The latest documents of a project, read in a thread of their own: a slow answer of Google's delays no page.

    The thread reads on after every error. `on_bug` gets each one that tpudeploy does not expect, once.
    """

    def __init__(
        self, workspace: Workspace, profiles: tuple[Profile, ...], on_bug: Callable[[], Bug] | None = None
    ) -> None:
        self._on_bug = on_bug
        self._bugs: dict[tuple[str, str], Bug] = {}
        self.workspace = workspace
        self._profiles = profiles
        self._parts: dict[str, Any] = {}
        self._errors: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._loads: dict[str, LoadFile] = {}
        self._events: deque[dict[str, Any]] = deque(maxlen=_MOST_EVENTS)
        self._states: dict[str, str] = {}
        self._deployments: dict[str, Deployment] = {}
        self._log_lock = threading.Lock()
        self._logs: dict[str, tuple[float, dict[str, Any]]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dashboard", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(_STOP_SECONDS)

    def latest(self) -> Mapping[str, Any]:
        """Return each document by its command, the error of each that could not be read, and the time."""
        with self._lock:
            return {
                **self._parts,
                "errors": dict(self._errors),
                "events": list(self._events),
                "now": time.time(),
                "profiles": [Path(name_of(profile)).name for profile in self._profiles],
                "profile_names": [profile.name for profile in self._profiles],
            }

    def load(self) -> Mapping[str, Any]:
        """Return the load of each deployment over the last hour and day, as columns, and the time of its clock."""
        now = self.workspace.adapters.clock.now()
        with self._lock:
            loads = dict(self._loads)
        return {
            "now": now,
            "deployments": {name: {**each.series(now), "error": each.error} for name, each in loads.items()},
        }

    def logs(self, name: str) -> Mapping[str, Any]:
        """Return the end of the boot log of each machine of a deployment. Raise as `Workspace.boot_logs` does."""
        workspace = self.workspace
        if name not in workspace.adapters.states.names():
            raise UsageError("No such deployment has a state here.")
        with self._log_lock:  # many pages cause one reading
            read_at, document = self._logs.get(name, (float("-inf"), {}))
            if time.monotonic() - read_at >= _LOG_SECONDS:
                addresses = workspace.addresses(name)
                texts = workspace.boot_logs(name, on_unreadable=lambda *_: None)
                machines = [
                    {"replica": addresses.get(log, log), "log": log, **_tail(lines)} for log, lines in texts.items()
                ]
                document = {"machines": machines}
                self._logs[name] = (time.monotonic(), document)
        return document

    def profile(self, name: str) -> Profile | None:
        """Return the profile of a deployment, or None where the dashboard was given none."""
        return next((profile for profile in self._profiles if profile.name == name), None)

    def _run(self) -> None:
        planned_at = loaded_at = float("-inf")
        clock = self.workspace.adapters.clock
        while not self._ended.is_set():
            self._guarded("status", self.read_live)
            if clock.now() - loaded_at >= _LOAD:
                self._guarded("load", self.read_load)
                loaded_at = clock.now()
            if self._profiles and time.monotonic() - planned_at >= _PLAN:
                self._guarded("plan", self.read_plans)
                planned_at = time.monotonic()
            self._ended.wait(LIVE)

    def read_live(self) -> None:
        """Read slices, boots and servers, and the states of the deployments that were read."""
        workspace, profiles = self.workspace, self._profiles
        self._read("status", lambda: workspace.status(profiles, timeline=True).to_dict())
        deployments = self._parts.get("status", {}).get("deployments", [])
        self._note_changes(deployments)
        self._read("endpoints", lambda: {each["name"]: self._endpoint(each["name"]) for each in deployments})
        self._read_metrics([each["name"] for each in deployments])
        if "cost" in FEATURES:
            self._read("cost", lambda: workspace.cost().to_dict())
        stored = workspace.adapters.states.names()  # a profile may not be applied yet
        names = [each["name"] for each in deployments if each["error"] is None and each["name"] in stored]
        for each in deployments:
            self._load_of(each["name"])  # with the rows of an earlier dashboard
        self._read("history", lambda: [self._history(name) for name in names])

    def _endpoint(self, name: str) -> Mapping[str, Any] | None:
        """Return the published address of a deployment, and with its profile the lines that call it."""
        document, profile = self.workspace.endpoint(name), self.profile(name)
        if document is None:
            return None
        url = str(document["url"])
        if name not in self._deployments and profile is not None:
            self._deployments[name] = self.workspace.deployment(profile, script=False)
        deployment = self._deployments.get(name)
        lines = () if deployment is None else tuple(first_request(deployment, url))
        return {"url": url, "lines": lines}

    def _note_changes(self, deployments: Sequence[Mapping[str, Any]]) -> None:
        """Note each replica whose state, boot or answer changed since the last reading."""
        now = self.workspace.adapters.clock.now()
        for deployment in deployments:
            for replica in deployment["replicas"]:
                address, text = replica["address"], _state_text(replica)
                before = self._states.get(address)
                self._states[address] = text
                if before not in {None, text}:
                    event = {"at": now, "deployment": deployment["name"], "text": f"{address}: {before} -> {text}"}
                    with self._lock:
                        self._events.append(event)

    def read_load(self) -> None:
        """Read the figures of all servers that answered last, and keep a row of each deployment."""
        adapters = self.workspace.adapters
        servers = list(_servers(self._parts.get("metrics", {})))
        answers = together(adapters.parallelism, lambda server: HttpMeter(has_iap=False).at(server[1]), servers)
        now = adapters.clock.now()
        by_name: dict[str, dict[str, EngineFigures]] = {}
        for (name, url), answer in zip(servers, answers, strict=True):
            if isinstance(answer, EngineFigures):
                by_name.setdefault(name, {})[url] = answer
        for name, figures in by_name.items():
            load = self._load_of(name)
            pairs = [(load.figures.get(url), each) for url, each in figures.items()]
            load.append(new_row(now, load.read_at, pairs))
            load.read_at, load.figures = now, figures

    def _load_of(self, name: str) -> LoadFile:
        load = self._loads.get(name) or LoadFile(self.workspace.adapters.own_folder("load"), name)
        with self._lock:
            self._loads[name] = load
        return load

    def _read_metrics(self, names: list[str]) -> None:
        """Read the metrics of all published endpoints; without one there are none, which is no error."""
        if any(self.workspace.endpoint(name) for name in names):
            self._read("metrics", lambda: self.workspace.metrics().to_dict())
        else:
            with self._lock:
                self._parts.pop("metrics", None)

    def read_plans(self) -> None:
        """Read the plan and the drift of the profiles."""
        self._read("plan", lambda: self.workspace.plan(self._profiles).to_dict())
        self._read("drift", lambda: self.workspace.drift(self._profiles).to_dict())

    def _history(self, name: str) -> Mapping[str, Any]:
        history: dict[str, Any] = self.workspace.state_history(name).to_dict()
        return {**history, "states": history["states"][:_MOST_STATES]}

    def _read(self, name: str, read: Callable[[], Any]) -> None:
        self._guarded(name, lambda: self._keep(name, read()))

    def _guarded(self, name: str, read: Callable[[], None]) -> None:
        """Read a document, or show why it could not be read."""
        try:
            read()
        except TpudeployError as error:
            self._show(name, error)
        except Exception as failure:  # noqa: BLE001 - the page must not go stale without a word, whatever it is
            self._show(name, self._bug(name, failure))

    def _bug(self, name: str, failure: Exception) -> Bug:
        """Return the error for an exception that is being handled. The same one is reported once."""
        key = (name, repr(failure))
        if key not in self._bugs:
            self._bugs[key] = self._on_bug() if self._on_bug is not None else Bug(f"this is a bug: {failure!r}")
        return self._bugs[key]

    def _show(self, name: str, error: TpudeployError) -> None:
        with self._lock:
            self._errors[name] = error.to_dict()

    def _keep(self, name: str, document: Any) -> None:
        with self._lock:
            self._parts[name] = document
            self._parts[f"{name}_at"] = time.time()
            self._errors.pop(name, None)


def _servers(metrics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the deployment and the URL of each server whose metrics were read, which are at confirmed addresses."""
    for row in metrics.get("replicas", ()):
        if row["observed"] and row["url"]:
            yield row["address"].partition("[")[0], row["url"]


def _state_text(replica: Mapping[str, Any]) -> str:
    if replica["serving"]:
        return "serving"
    if replica["state"] == "up, not serving" and replica["boot"] == "serving":
        return "does not answer"
    return f"{replica['state']}, {replica['boot']}" if replica["boot"] else str(replica["state"])


def _tail(lines: Sequence[str]) -> Mapping[str, Any]:
    """Return the last lines of a log that fit, and whether there were more."""
    end: deque[str] = deque()
    size = 0
    for line in reversed(lines[-_MOST_LINES:]):
        size += len(line) + 1
        if size > _MOST_CHARACTERS:
            break
        end.appendleft(line)
    return {"lines": list(end), "is_cut": len(end) < len(lines)}
