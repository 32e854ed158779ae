"""A running emulator: the object that tests and the command line hold."""

from __future__ import annotations

import os
import shutil
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tpudeploy.domain.pace import VARIABLE
from tpudeploy.emulator import lifecycle
from tpudeploy.emulator.clock import EmulatorClock, RealClock, VirtualClock
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.compute_engine import groups, life
from tpudeploy.emulator.http_server import HttpServer
from tpudeploy.emulator.records import WAITING, BilledMachine, Host, Instance, QueuedResource
from tpudeploy.emulator.scenario import Scenario
from tpudeploy.emulator.scenario_file import load_scenario
from tpudeploy.emulator.service import EmulatedService, LoggedRequest
from tpudeploy.emulator.timings import DEMO, Timings
from tpudeploy.emulator.trouble import Trouble

FOLDER = "tpudeploy-emulator-"  # and the process id, by which the folder of a killed one is removed
_TICK = 0.1  # how late a real machine may boot


class Emulator:
    """`host` is what TPU_EMULATOR_HOST takes. Time is `clock`'s; `close` leaves no process, socket or file behind."""

    def __init__(self, *, clock: EmulatorClock, scenario: Scenario, port: int = 0) -> None:
        self.clock = clock
        self._folder = Path(mkdtemp(prefix=f"{FOLDER}{os.getpid()}-"))
        self._cloud = Cloud(clock=clock, scenario=scenario, folder=self._folder)
        self._service = EmulatedService(self._cloud)
        self._ended = threading.Event()
        self._ticker: threading.Thread | None = None
        sleep = clock.sleep if isinstance(clock, VirtualClock) else self._nap
        try:
            self._server = HttpServer(port, self._service.answer, sleep=sleep, now=clock.now)
        except OSError:
            shutil.rmtree(self._folder)
            raise
        self.host = f"127.0.0.1:{self._server.port}"
        if isinstance(clock, VirtualClock):
            clock.on_advance.append(self.settle)
        else:
            self._ticker = threading.Thread(target=self._tick, name="emulator-clock", daemon=True)
            self._ticker.start()

    @property
    def is_running(self) -> bool:
        return not self._ended.is_set()

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables by which a child process finds this emulator and its time."""
        hosts = {"TPU_EMULATOR_HOST": self.host, "STORAGE_EMULATOR_HOST": f"http://{self.host}"}
        if isinstance(self.clock, RealClock) and self.clock.pace.speed != 1:
            hosts[VARIABLE] = self.clock.pace.text()
        return hosts

    @property
    def requests(self) -> tuple[LoggedRequest, ...]:
        return tuple(self._service.requests)

    @property
    def unsupported(self) -> tuple[str, ...]:
        """Return the requests of scripts and clients that this emulator cannot answer as the real ones would."""
        with self._cloud.lock:
            return tuple(self._cloud.unsupported)

    def live(self) -> Mapping[str, Mapping[str, str]]:
        """Return the state of every queued resource and instance, husks too, by zone and name.

        An instance with the name of a queued resource is `instances/NAME`. A group stands for its instances, and what
        is left of one, a policy or a template, for the group: `LEFT`, by region.
        """
        with self._cloud.lock:
            self._cloud.age()
            by_zone: dict[str, dict[str, str]] = defaultdict(dict)
            for slice_ in self._cloud.slices.values():
                by_zone[slice_.zone][slice_.id] = slice_.state
            for part in self._cloud.group_parts.values():
                by_zone[part.name.split("/")[3]][part.name.rpartition("/")[2]] = "LEFT"
            for group in self._cloud.groups.values():
                by_zone[group.zone.rpartition("-")[0]].pop(group.id, None)
                by_zone[group.zone][group.id] = groups.state_of(self._cloud, group)
            for instance in self._cloud.instances.values():
                if instance.group is not None and instance.group.name in self._cloud.groups:
                    continue
                in_zone = by_zone[instance.zone]
                in_zone[f"instances/{instance.id}" if instance.id in in_zone else instance.id] = instance.state
            return {zone: slices for zone, slices in by_zone.items() if slices}

    def billed(self) -> tuple[str, ...]:
        """Return the names of the nodes and instances whose chips cost money now."""
        with self._cloud.lock:
            self._cloud.age()
            nodes = [node.name for node in self._cloud.nodes.values() if node.is_billed]
            instances = [i for i in self._cloud.instances.values() if i.is_billed]
            # The machines of a group are one slice.
            names = {(i if i.group is None else i.group).name for i in instances}
            return tuple(sorted(name.rpartition("/")[2] for name in (*nodes, *names)))

    def bill(self) -> tuple[BilledMachine, ...]:
        """Return what is billed: each machine that ran, from its creation until it stopped to run or was to be deleted.

        No API shows it. That a machine is billed from its creation, and only once it was ready, is not verified.
        """
        with self._cloud.lock:
            self._cloud.age()
            paths = [(row, row.name.split("/")) for row in self._cloud.bill]
            return tuple(replace(row, name=path[-1], zone=path[3]) for row, path in paths)

    def preempt(self, name: str, *, notice: float = 0.0) -> None:
        """Take the machines of every slice of this name that has them, after a notice in seconds.

        Raise KeyError if none exists.
        """
        self._change(
            name,
            ("ACTIVE",),
            partial(lifecycle.preempt, notice=notice),
            ("RUNNING",),
            partial(life.preempt, notice=notice),
        )

    def delete_instance(self, name: str) -> None:
        """Delete the instances of this name, as a person does there. Raise KeyError if none runs."""

        def delete(cloud: Cloud, instance: Instance, at: float) -> None:
            life.delete(cloud, instance, None, at)

        self._change(name, (), lifecycle.preempt, ("RUNNING",), delete)

    def set_load(self, **figures: float) -> None:
        """Let the servers of simulated nodes report these figures from now on (see `Behaviour.load`)."""
        with self._cloud.lock:
            self._cloud.scenario.boot.load.clear()
            self._cloud.scenario.boot.load.update(figures)

    def grant(self, name: str) -> None:
        """Grant every waiting slice of this name now. Raise KeyError if none exists."""
        self._change(name, WAITING, lifecycle.provision, life.QUEUEING, life.provision)

    def _change(
        self,
        name: str,
        states: Sequence[str],
        change: Callable[[Cloud, QueuedResource, float], None],
        instance_states: Sequence[str],
        change_instance: Callable[[Cloud, Instance, float], None],
    ) -> None:
        with self._cloud.lock:
            self._cloud.age()
            slices = [s for s in self._cloud.slices.values() if s.id == name and s.state in states]
            instances = [
                instance
                for instance in self._cloud.instances.values()
                if instance.state in instance_states and _has_name(instance, name)
            ]
            for slice_ in slices:
                change(self._cloud, slice_, self.clock.now())
            for instance in instances:
                change_instance(self._cloud, instance, self.clock.now())
        if not slices and not instances:
            raise KeyError(name)

    def script(self, fault: Mapping[str, Any]) -> None:
        """Add a row of trouble. Raise ValueError for one that cannot be played."""
        with self._cloud.lock:
            self._cloud.troubles.append(Trouble.parse(fault))

    def settle(self) -> None:
        """Age everything up to now, and let every machine come as far as time allows."""
        self._cloud.age()
        # Nothing runs on a simulated node, and a fleet may have ten thousand of them.
        if self._cloud.scenario.simulated:
            return
        with self._cloud.lock:
            hosts = [host for machines in self._cloud.hosts.values() for host in machines]
        for host in hosts:
            host.settle()

    def next_moment(self, *, turns: bool = False) -> float:
        """Return when something changes next without a caller, in seconds since the epoch; infinite if nothing will.

        With `turns` the phases of a boot before its server starts do not count: nothing depends on them.
        """
        with self._cloud.lock:
            self._cloud.age()
            return self._cloud.next_moment(turns=turns)

    def log(self, name: str, worker: int = 0) -> str:
        """Return what the startup script of a node printed. Raise KeyError where no machine of this name runs."""
        return self._host(name, worker).log()

    def kill(self, name: str, unit: str, worker: int = 0) -> None:
        """Kill -9 of a process of node `name` that systemd runs. Raise KeyError where none runs."""
        self._host(name, worker).kill(unit)

    def run_script_by_hand(self, name: str, worker: int = 0) -> None:
        """Repeat the startup script of node `name`, as a person does there. Raise KeyError where no machine runs."""
        host = self._host(name, worker)
        host.run_script_by_hand()
        host.settle()

    def removed_attributes(self, name: str, worker: int = 0) -> tuple[str, ...]:
        """Return the guest attributes that writes above Google's limit removed. Raise KeyError as `log` does."""
        return self._host(name, worker).removed_attributes

    def read_guest_attributes(self, name: str, *, times: int, worker: int = 0) -> None:
        """Read them as another client's poller does, where a machine of this name runs."""
        with suppress(KeyError):
            for _ in range(times):
                self._host(name, worker).read_guest_attributes()

    def _host(self, name: str, worker: int) -> Host:
        """Return a machine of a node, an instance or a group. Raise KeyError where none runs."""
        with self._cloud.lock:
            group = next((group for group in self._cloud.groups.values() if group.id == name), None)
            if group is not None and worker < len(group.members):
                name, worker = group.members[worker], 0
            hosts = [machines for path, machines in self._cloud.hosts.items() if path.rpartition("/")[2] == name]
        if not hosts or not hosts[0]:
            raise KeyError(name)
        return hosts[0][worker]

    def secret(self, name: str, value: str) -> None:
        """Add a version of a secret."""
        with self._cloud.lock:
            scenario = self._cloud.scenario
            self._cloud.scenario = replace(scenario, secrets={**(scenario.secrets or {}), name: value})

    def close(self) -> None:
        if isinstance(self.clock, VirtualClock):
            self.clock.on_advance.remove(self.settle)
        self._ended.set()
        if self._ticker is not None:
            self._ticker.join()
        self._server.close()
        self._cloud.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _nap(self, seconds: float) -> None:
        self._ended.wait(self.clock.real_seconds(seconds))

    def _tick(self) -> None:
        while not self._ended.wait(_TICK):
            self._cloud.age()


def _has_name(instance: Instance, name: str) -> bool:
    """Return whether this is the name of an instance, or of the group that it belongs to."""
    return name == instance.id or (instance.group is not None and name == instance.group.id)


@contextmanager
def running(
    *,
    clock: EmulatorClock | None = None,
    scenario: Mapping[str, Any] | Path | str | None = None,
    port: int = 0,
    engine: Sequence[str] = (),
) -> Iterator[Emulator]:
    """Run an emulator for the length of a `with`. Without a clock, real time and timings for a demonstration.

    `engine` is the command of a real engine, which its real nodes run instead of the stand-in, in real time.
    Raise ScenarioInvalid for a scenario that cannot be played; its format is in scenario.py.
    """
    timings = DEMO if clock is None or isinstance(clock, RealClock) else Timings()
    played = replace(load_scenario(scenario, timings=timings), engine=tuple(engine))
    emulator = Emulator(clock=clock or RealClock(), scenario=played, port=port)
    try:
        yield emulator
    finally:
        emulator.close()
