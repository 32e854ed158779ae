"""A command line for tests: a folder, a terminal and a clock, before an emulated cloud in virtual time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from googleapiclient.discovery import build
from real_time import DEADLINE

from tpudeploy.adapters.google.reports import READ_EVERY
from tpudeploy.cli.main import main
from tpudeploy.domain.patience import Patience
from tpudeploy.emulator import Emulator, VirtualClock
from tpudeploy.emulator.timings import CLOUD
from tpudeploy.ports import Workers

# How slow the cloud of a story is, and by what share each of its durations varies, unless the story says otherwise.
# Of several deployments, the one of these names gets every reply about its slices after 15 s.
UNKIND: Mapping[str, Any] = {
    "jitter": 0.1,
    "timings": asdict(CLOUD),
    "trouble": [
        {"fault": "slow", "name": f"{name}-*", "seconds": 15} for name in ("two", "b", "second", "other", "beta")
    ],
}
# A machine that runs its script looks every ten seconds, which is real work: here a boot takes a minute, not seven. An
# apply and a destroy cost 1.0 s of processor time without a boot, 1.4 s with this one, 1.9 s with one of 150 s.
REAL_BOOT = 60.0
# A story observes at first every five seconds: of an apply at the product's own pace, half of the processor time goes into
# observations without news.
CALM = Patience(poll_first=5.0)
_AFTER = 0.01  # a look sees what has happened just before
_CALM_MOST = 130.0  # seconds between two looks: not all that a run waits for is an event of its cloud
HAND_MADE = "my-tpu"  # the name of a slice that was made by other means
PROFILE = """\
version: 1
name: gemma
model:
  id: google/gemma-4-E2B-it
tpu:
  type: v6e-1
serving:
  image: vllm/vllm-tpu:v0.32.0
  max_model_len: 16384
secrets:
  HF_TOKEN: hf-token
placement:
  zones: [us-east5-a, us-east5-b, europe-west4-a]
  provisioning: [spot]
  max_parallel_requests: 1
"""
# The same deployment on instances of Compute Engine.
INSTANCE = PROFILE.replace("placement:\n", "placement:\n  backend: gce-instance\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class NextEvent(Patience):
    """The pace of a calm story: the next look is when something has happened in its cloud. It saves most of an apply.

    Where a test hangs something of its own on the clock, that may act at any moment, and the pace is that of `CALM`.
    """

    emulator: Emulator
    clock: VirtualClock

    def poll(self, quiet_looks: int, outstanding: int = 1) -> float:
        if len(self.clock.on_advance) > 1:
            return CALM.poll(quiet_looks, outstanding)
        seconds = self.emulator.next_moment(turns=True) - self.clock.now() + _AFTER
        return max(READ_EVERY, min(seconds, _CALM_MOST))


@dataclass(frozen=True, kw_only=True)
class Result:
    """The output of one command, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return self.out + self.err

    @property
    def words(self) -> str:
        """Return all output, with runs of white space as one space: for what is aligned in columns."""
        return " ".join(self.all.split())


def command(folder: Path, capture: pytest.CaptureFixture[str], *words: str) -> Result:
    """Run one command in a folder, in process, without a cloud of its own."""
    capture.readouterr()
    code = main([*words, "--chdir", str(folder)])
    output = capture.readouterr()
    return Result(code=code, out=output.out, err=output.err)


class Killed(BaseException):
    """kill -9, as it looks from inside: nothing catches it."""


@dataclass(frozen=True)
class Doomed:
    """The clock of a process that ends it at `end`, in the sleep under way then."""

    world: VirtualClock
    end: float

    def now(self) -> float:
        return self.world.now()

    def sleep(self, seconds: float) -> None:
        rest = max(0.0, self.end - self.world.now())
        self.world.sleep(min(seconds, rest))
        if seconds >= rest:
            raise Killed

    def stop(self) -> None:
        self.world.stop()

    @contextmanager
    def workers(self) -> Iterator[DoomedWorkers]:
        with self.world.workers() as workers:
            yield DoomedWorkers(workers, self)


@dataclass(frozen=True)
class DoomedWorkers:
    """The workers of a process whose clock ends it."""

    workers: Workers
    clock: Doomed

    def start(self) -> None:
        self.workers.start()

    def finish(self) -> None:
        self.workers.finish()

    def wait(self, seconds: float | None, until: Callable[[], bool]) -> None:
        seconds_left = max(0.0, self.clock.end - self.clock.now())
        self.workers.wait(seconds_left if seconds is None else min(seconds, seconds_left), until)
        if self.clock.now() >= self.clock.end:
            raise Killed


@dataclass(kw_only=True)
class CommandLine:
    """A user's folder, terminal and clock, with an emulated cloud behind Google's real clients."""

    folder: Path
    clock: VirtualClock
    emulator: Emulator
    capture: pytest.CaptureFixture[str]
    patience: Patience = field(default_factory=Patience)

    def run(self, *arguments: str) -> Result:
        """Run one command, in process, on the shared clock."""
        self.capture.readouterr()
        code = main([*arguments, "--chdir", str(self.folder)], clock=self.clock, patience=self.patience)
        output = self.capture.readouterr()
        return Result(code=code, out=output.out, err=output.err)

    def killed(self, after: float, *arguments: str) -> None:
        """Run one command, and kill its process `after` this number of seconds; it must not have ended before."""
        doomed = Doomed(self.clock, self.clock.now() + after)
        with pytest.raises(Killed):
            main([*arguments, "--chdir", str(self.folder)], clock=doomed, patience=self.patience)

    def left_or_killed(self, after: float, *arguments: str) -> None:
        """Run one command, and kill its process `after` this number of seconds, if it has not ended before."""
        doomed = Doomed(self.clock, self.clock.now() + after)
        with suppress(Killed):
            main([*arguments, "--chdir", str(self.folder)], clock=doomed, patience=self.patience)

    def write(self, text: str = PROFILE, name: str = "gemma.yaml") -> str:
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def state(self, name: str = "gemma") -> Mapping[str, Any]:
        text = (self.folder / ".tpudeploy" / "state" / f"{name}.json").read_text(encoding="utf-8")
        tree: Mapping[str, Any] = json.loads(text)
        return tree

    @property
    def slices(self) -> Mapping[str, str]:
        """Return the state of every queued resource, husks too, by name."""
        return {name: state for zone in self.emulator.live().values() for name, state in zone.items()}

    def make_by_hand(self, *, zone: str = "us-east5-a", name: str = HAND_MADE, **node: Any) -> None:
        """Make a queued resource as gcloud makes one, and wait until it is up."""
        where = f"projects/emulated/locations/{zone}"
        network = {"network": "default", "enableExternalIps": True}
        spec = {"acceleratorType": "v6e-1", "runtimeVersion": "v2-alpha-tpuv6e", "networkConfig": network, **node}
        body = {"tpu": {"nodeSpec": [{"parent": where, "nodeId": name, "node": spec}]}, "provisioningModel": "SPOT"}
        endpoint = {"api_endpoint": f"http://{self.emulator.host}"}
        with build("tpu", "v2alpha1", client_options=endpoint, static_discovery=True, developerKey="x") as service:
            calls = service.projects().locations().queuedResources()
            calls.create(parent=where, queuedResourceId=name, body=body).execute()
        self.clock.sleep(600)

    def delete_by_hand(self, name: str) -> None:
        """Delete a queued resource and its machine as another tool would; that takes minutes."""
        zone = next(zone for zone, slices in self.emulator.live().items() if name in slices)
        connection = HTTPConnection(self.emulator.host, timeout=DEADLINE)
        try:
            path = f"/v2alpha1/projects/emulated/locations/{zone}/queuedResources/{name}?force=true"
            connection.request("DELETE", path)
            assert connection.getresponse().status == 200
        finally:
            connection.close()

    def requested_zones(self) -> list[str]:
        """Return the zones of the requests for a slice at either API, in order."""
        posts = [r.resource for r in self.emulator.requests if r.method == "POST"]
        creates = [path for path in posts if path.endswith(("/queuedResources", "/instances"))]
        return [path.split("/")[-2] for path in creates]


Open = Callable[..., CommandLine]
