"""Machines for the tests of emulator/machine: a root each, a shared virtual clock, addresses of this process alone."""

from __future__ import annotations

import itertools
import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from real_time import DEADLINE

from tpudeploy.emulator import http_server
from tpudeploy.emulator.clock import EmulatorClock, VirtualClock
from tpudeploy.emulator.machine.facts import Behaviour, MachineFacts
from tpudeploy.emulator.machine.machine import Machine
from tpudeploy.emulator.machine.metadata import text_reply

MODEL = "google/gemma-4-E2B-it"
IMAGE = "vllm/vllm-tpu:v0.32.0"
SECRET = "canary-hf-0123456789"
PRELUDE = """set -euo pipefail
metadata=http://metadata.google.internal/computeMetadata/v1
value() { curl -sS -f -H 'Metadata-Flavor: Google' "$metadata/$1"; }
report() { curl -sS -f -X PUT --data "$2" -H 'Metadata-Flavor: Google' "$metadata/instance/guest-attributes/tpudeploy/$1"; }
serve() { docker run -d --name vllm --privileged --net=host "$@"; }
healthy() { until curl -s -f -o /dev/null http://127.0.0.1:8000/health; do sleep ${PAUSE:-5}; done; }
"""
SERVE = f"serve {IMAGE} vllm serve {MODEL} --max-model-len 32768"


@dataclass
class World:
    folder: Path
    clock: VirtualClock = field(default_factory=VirtualClock)
    metadata: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, tuple[int, str]] = field(default_factory=dict)
    machines: list[Machine] = field(default_factory=list)
    unsupported: list[str] = field(default_factory=list)
    engine: tuple[str, ...] = ()

    def storage(self, method: str, target: str) -> http_server.Reply:
        return text_reply(f"{method} {target}: no such bucket", 404)

    @property
    def root(self) -> Path:
        return self.folder / f"node-{len(self.machines)}"

    def machine(
        self, script: str, *, clock: EmulatorClock | None = None, accelerator: str = "v6e-1", **behaviour: Any
    ) -> Machine:
        """Not booted yet."""
        self.metadata["startup-script"] = PRELUDE + script
        facts = MachineFacts(
            project="demo",
            zone="us-east5-b",
            node="node",
            accelerator_type=accelerator,
            worker=0,
            root=self.folder / f"node-{len(self.machines) + 1}",
            address=next(ADDRESSES),
            clock=clock or self.clock,
            metadata=lambda: dict(self.metadata),
            storage=lambda method, target, _: self.storage(method, target),
            engine=self.engine,
            note_unsupported=self.unsupported.append,
            secret=lambda resource: self.secrets.get(resource, (404, f"Secret [{resource}] not found.")),
        )
        machine = Machine(facts, Behaviour(**behaviour))
        self.machines.append(machine)
        return machine

    def boot(self, script: str, **behaviour: Any) -> Machine:
        """Booted, and as far as it gets without time."""
        machine = self.machine(script, **behaviour)
        machine.boot()
        machine.settle()
        return machine

    def pass_time(self, seconds: float, steps: int = 1) -> None:
        for _ in range(steps):
            self.clock.sleep(seconds / steps)
            for one in self.machines:
                one.settle()

    def stop(self) -> None:
        for one in self.machines:
            one.stop()


def _addresses() -> Iterator[str]:
    """A process number is ours alone, so no two test runs share an address."""
    pid = os.getpid()
    for net in itertools.cycle(range(90, 127)):
        yield f"127.{net}.{(pid >> 8) & 255}.{pid & 255}"


ADDRESSES = _addresses()


@dataclass(frozen=True)
class Reply:
    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def tree(self) -> Any:
        return json.loads(self.text)


def ask(machine: Machine, path: str, body: object = None, *, key: str = "", port: int = 8000) -> Reply:
    """One request from outside the machine."""
    request = urllib.request.Request(
        f"http://{machine.address}:{machine.port_for(port)}{path}",
        data=None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {key}"} if key else {},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=DEADLINE) as answer:
            return Reply(answer.status, answer.read().decode(), dict(answer.headers))
    except urllib.error.HTTPError as error:
        with error:
            return Reply(error.code, error.read().decode(), dict(error.headers))
