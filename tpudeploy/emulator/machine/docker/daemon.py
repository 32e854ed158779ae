"""The docker daemon of a node: its images, its registries' logins, its containers, and the chip they share."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
import threading
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tpudeploy.emulator.addresses import NodeAddresses
from tpudeploy.emulator.machine import ray, real_engine
from tpudeploy.emulator.machine.docker.container import DockerContainer
from tpudeploy.emulator.machine.docker.run_options import RunOptions
from tpudeploy.emulator.machine.docker.serve import Serve, find_ray, find_serve, listens, ray_option, refusal
from tpudeploy.emulator.machine.facts import Behaviour, MachineFacts
from tpudeploy.emulator.machine.root import Root
from tpudeploy.emulator.machine.sleepers import DEADLINE, TICK, Sleepers

# The parts of its scenario that a stand-in gets.
FORWARDED = (
    *("crash", "hang", "serves", "release", "instead", "kv_blocks", "block_size", "load", "growth"),
    *("access_log", "paced", "acceptance", "noise", "drift"),
)
CACHE_VARIABLE, CACHE = "VLLM_XLA_CACHE_PATH", "/root/.cache/vllm/xla_cache"  # vLLM's variable and default
NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+")
SHORT_ID = 12  # characters of docker's short id
# libtpu's message about a chip that another process holds (published: marin #4675).
BUSY = "RuntimeError: TPU initialization failed: open(/dev/vfio/0): Device or resource busy"
_CHIP_FILE = "proc/4242/fd/7"  # how Linux shows an open file of a process, below the node's root


class DaemonError(Exception):
    """What the daemon answers to its client: `Error response from daemon: …`."""


class Daemon:
    def __init__(
        self, facts: MachineFacts, behaviour: Behaviour, root: Root, sleepers: Sleepers, addresses: NodeAddresses
    ) -> None:
        self._facts = facts
        self._behaviour = behaviour
        self._root = root
        self._sleepers = sleepers
        self._addresses = addresses
        self._control: Mapping[str, Any] = {}
        self._lock = threading.RLock()
        self._failures_ahead = behaviour.image_pull_failures
        self._containers: dict[str, DockerContainer] = {}
        self._servers: dict[str, DockerContainer] = {}  # what `docker exec` started, by the id of its container
        self._created = 0
        self._pulls = 0
        self._chip_free_at = -math.inf  # after a container on it was killed, the chip stays busy for a while
        self.images: set[str] = set()
        self.registries: set[str] = set()

    def connect(self, port: int, key: str) -> None:
        """Set where stand-ins find the node's server."""
        self._control = {"port": port, "key": key}

    def pull(self, image: str) -> None:
        registry = _registry(image)
        if registry.endswith(".pkg.dev") and registry not in self.registries:
            raise DaemonError(f"Head https://{registry}/v2/: denied: Unauthenticated request.")
        with self._lock:
            self._pulls += 1
        self._sleepers.wait(self._facts.jitter.vary(self._behaviour.image_pull, "pull", self._pulls))
        with self._lock:
            if self._failures_ahead:
                self._failures_ahead -= 1
                raise DaemonError(f"Get https://{registry}/v2/: net/http: TLS handshake timeout")
            if refusal_of_registry := self._facts.pull_refusal(image):
                raise DaemonError(refusal_of_registry)
            if not self._facts.has_room:
                raise DaemonError("failed to register layer: write /usr/lib: no space left on device")
            self.images.add(image)

    def create(self, options: RunOptions, words: tuple[str, ...], caller: Mapping[str, str]) -> DockerContainer:
        """Create and start a container. `caller` is the environment that `docker run` was called in."""
        with self._lock:
            if options.name and not NAME.fullmatch(options.name):  # it also names files
                raise DaemonError(f"Invalid container name ({options.name}), only {NAME.pattern[:-1]} are allowed")
            if options.name in self._containers:
                raise DaemonError(
                    f'Conflict. The container name "/{options.name}" is already in use by container '
                    f'"{self._containers[options.name].id}". You have to remove (or rename) that container.'
                )
            container = self._new_container(options, caller)
            self._containers[container.name] = container
        self._record(container, words)
        container.start()
        return container

    def find(self, reference: str) -> DockerContainer:
        for container in self.containers():
            is_id = len(reference) >= SHORT_ID and container.id.startswith(reference)
            if is_id or reference in {container.name, f"/{container.name}"}:
                return container
        raise DaemonError(f"No such container: {reference}")

    def start_server(self, container: DockerContainer, words: tuple[str, ...]) -> None:
        """Start the server that `docker exec` runs in a container of Ray: it has the container's variables and log."""
        command = list(itertools.dropwhile(lambda word: word != "vllm", words))
        options = replace(container.options, command=tuple(command), name="", environment=container.environment)
        with self._lock:
            server = replace(self._new_container(options, {}), log_file=container.log_file)
            self._servers[container.id] = server
        missing = self._facts.hosts - len(self.ray_nodes(container))
        # vLLM waits for the devices that Ray lacks, for up to half an hour.
        server.task = {**server.task, "ray": container.place, "hang": server.task["hang"] or missing > 0}
        server.start()

    def server_of(self, container: DockerContainer) -> DockerContainer | None:
        return self._servers.get(container.id)

    def ray_nodes(self, container: DockerContainer) -> list[str]:
        """Return `ADDRESS ID` of each host that is part of the Ray in a container; none where it does not answer."""
        try:
            return [] if container.place is None else ray.nodes_at(container.place)
        except OSError:
            return []

    def _processes(self) -> tuple[DockerContainer, ...]:
        with self._lock:
            return (*self._containers.values(), *self._servers.values())

    def containers(self) -> tuple[DockerContainer, ...]:
        with self._lock:
            return tuple(self._containers.values())

    def remove(self, container: DockerContainer) -> None:
        if container.is_running and container.is_on_chip and self._behaviour.chip_busy:
            self._chip_free_at = self._facts.clock.now() + self._behaviour.chip_busy
            holder = self._root.path / _CHIP_FILE
            holder.parent.mkdir(parents=True, exist_ok=True)
            holder.unlink(missing_ok=True)
            holder.symlink_to("/dev/vfio/0")
        with self._lock:
            server = self._servers.pop(container.id, None)
        if server is not None:
            server.stop(kill=True)
        container.stop(kill=True)
        with self._lock:
            self._containers.pop(container.name, None)
        container.log_file.unlink(missing_ok=True)
        container.log_file.with_suffix(".json").unlink(missing_ok=True)

    def kill_all(self) -> None:
        for container in self._processes():
            container.stop(kill=True)

    def listening(self, port: int) -> tuple[str, int] | None:
        """Return where the node's own curl finds the server of its port; None where none runs."""
        running = (c for c in self._processes() if c.port == port and c.is_running)
        return next((c.place for c in running), None)

    def receive(self, message: Mapping[str, Any]) -> None:
        """Take the report of a stand-in: `asleep` until a moment, at which this returns, or `serving`; or nothing."""
        container = next((c for c in self._processes() if c.id == message["container"]), None)
        if container is None or "says" not in message:  # removed while it reported, or it asks for the time
            return
        container.status = message["says"]
        if message["says"] == "asleep":
            until = math.inf if message["until"] is None else message["until"]
            self._sleepers.sleep_until(container.id, until, woken=lambda: not container.is_running)
            container.status = "starting"

    def has_caught_up(self) -> bool:
        """Return whether every stand-in serves, has ended, or waits for a time that has not come."""
        return all(self._is_settled(container) for container in self._processes())

    def catch_up(self) -> None:
        if not self._is_chip_busy():
            (self._root.path / _CHIP_FILE).unlink(missing_ok=True)
        end = time.monotonic() + DEADLINE
        while not self.has_caught_up() and not self._sleepers.closed:
            if time.monotonic() > end:
                raise DaemonError("a stand-in did not say where it is; its log is in `docker logs`")
            time.sleep(TICK / 4)

    def _is_chip_busy(self) -> bool:
        return self._facts.clock.now() < self._chip_free_at

    def _is_settled(self, container: DockerContainer) -> bool:
        naps = self._sleepers.naps(container.id)
        return container.status == "serving" or (bool(naps) and all(naps)) or not container.is_running

    def _new_container(self, options: RunOptions, caller: Mapping[str, str]) -> DockerContainer:
        self._created += 1
        name = options.name or f"container_{self._created}"
        environment = _environment(options, caller)
        serve, ray_words = find_serve(options.command), find_ray(options.command)
        host, port = (None, 0) if serve is None else listens(serve.words)
        if ray_words is not None:
            port = int(ray_option(ray_words, "port") or 0)
        place = None
        if options.on_host_network and (serve is not None or port):
            place = self._addresses.listening(host, port)
        seed = f"{self._facts.node}/{self._facts.worker}/{self._created}".encode()
        identity = "".join(f"{zlib.crc32(seed, salt):08x}" for salt in range(8))
        server = place or (self._addresses.inner_address, 0)
        return DockerContainer(
            id=identity,
            name=name,
            options=options,
            environment=environment,
            place=place,
            port=port,
            log_file=self._root.containers / f"{name}.log",
            created=self._facts.clock.now(),
            is_real=bool(self._facts.engine) and ray_words is None,
            program="vllm.main" if ray_words is None else "ray",
            task={
                "container": identity,
                "control": self._control,
                **self._stand_in_task(options, serve, environment, server),
                **self._real_engine_task(options, serve, environment, server),
                **({} if ray_words is None else self._ray_task(ray_words, place)),
            },
        )

    def _ray_task(self, words: Sequence[str], place: tuple[str, int] | None) -> Mapping[str, Any]:
        """Return what a stand-in of Ray gets: where it listens as the head, or where it finds the head."""
        address, _, port = ray_option(words, "address").rpartition(":")
        own = ray_option(words, "node-ip-address")
        head = (self._facts.listening(address, int(port)) or (address, int(port))) if address else None
        return {"address": own, "is_head": "--head" in words, "place": place, "head": head}

    def _stand_in_task(
        self, options: RunOptions, serve: Serve | None, environment: Mapping[str, str], place: tuple[str, int]
    ) -> Mapping[str, Any]:
        words = () if serve is None else serve.words
        jitter = self._facts.jitter.part_of("container", self._created)
        cache = self._root.path_of(environment.get(CACHE_VARIABLE) or CACHE, options.volumes)
        task = {
            "image": options.image,
            "words": words,
            "refusal": refusal(options.command, serve, setup_fails=self._behaviour.setup_fails),
            "environment": environment,
            "place": place,
            "accelerator_type": self._facts.accelerator_type,
            "image_digest": digest(options.image),
            "cache_folder": None if cache is None else str(cache),  # without a folder it ends with the container
            "has_weights": self._has_weights(options, words),
            "boot_seconds": jitter.vary(self._behaviour.boot_seconds),
            "jitter": {"share": jitter.share, "source": jitter.source},
            "real_second": self._facts.clock.real_seconds(1.0),
            **{name: getattr(self._behaviour, name) for name in FORWARDED},
        }
        # Ray itself holds no chip.
        others = (each.is_running and each.is_on_chip and each.program != "ray" for each in self._processes())
        if "privileged" in options.switches and (self._is_chip_busy() or any(others)):
            task["crash"] = BUSY
        return task

    def _real_engine_task(
        self, options: RunOptions, serve: Serve | None, environment: Mapping[str, str], place: tuple[str, int]
    ) -> Mapping[str, Any]:
        """Return what a real engine gets instead of the stand-in's task, where one is to run."""
        if not self._facts.engine or serve is None:
            return {}
        order = real_engine.translate(
            self._facts.engine,
            serve.words,
            environment,
            place=place,
            volumes=options.volumes,
            root=self._root,
            has_avx512=real_engine.has_avx512(),
        )
        setup = ("the setup steps are not run: no text of a profile is",) if serve.has_setup else ()
        return {"words": order.words, "environment": order.environment, "notes": (*setup, *order.notes)}

    def _has_weights(self, options: RunOptions, words: tuple[str, ...]) -> bool:
        """Return whether the weights are there: a name that is not a path is one of the hub, which has everything."""
        if not words or not words[0].startswith("/"):
            return True
        folder = self._root.path_of(words[0], options.volumes)
        return folder is not None and (folder / "config.json").is_file()

    def _record(self, container: DockerContainer, words: tuple[str, ...]) -> None:
        """Write down the request, word by word, without the values of the caller's environment, which are secrets."""
        options = container.options
        record = {
            "id": container.id,
            "name": container.name,
            "image": options.image,
            "argv": words,
            "command": options.command,
            "env": options.environment,
            "volumes": options.volumes,
            "flags": {**options.flags, **dict.fromkeys(sorted(options.switches), True)},
        }
        text = json.dumps(record, indent=1, ensure_ascii=False)
        container.log_file.with_suffix(".json").write_text(text, encoding="utf-8", errors="surrogateescape")


def digest(image: str) -> str:
    """Return the digest that the image names, or the one that this emulated registry gives its tag."""
    _, at, stated = image.partition("@sha256:")
    return stated if at else hashlib.sha256(image.encode()).hexdigest()


def _registry(image: str) -> str:
    """Return the registry of an image: a first part without a dot or a port is a name on Docker Hub."""
    first, slash, _ = image.partition("/")
    return first if slash and set(first) & set(".:") else "registry-1.docker.io"


def _environment(options: RunOptions, caller: Mapping[str, str]) -> dict[str, str]:
    """Return the container's variables; one without a value has that of docker's caller, or is not set."""
    values = {key: caller.get(key) if value is None else value for key, value in options.environment.items()}
    return {key: value for key, value in values.items() if value is not None}
