"""The docker daemon of a node: its images, its registries' logins, its containers."""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
import time
import zlib
from collections.abc import Mapping
from typing import Any

from tpudeploy.emulator.machine import engine
from tpudeploy.emulator.machine.addresses import Addresses
from tpudeploy.emulator.machine.docker.chip import BUSY, Chip
from tpudeploy.emulator.machine.docker.container import Container
from tpudeploy.emulator.machine.docker.mounts import on_node
from tpudeploy.emulator.machine.docker.run_options import RunOptions
from tpudeploy.emulator.machine.docker.serve import Serve, find_serve, listens, refusal
from tpudeploy.emulator.machine.facts import Behaviour, Facts
from tpudeploy.emulator.machine.root import Root
from tpudeploy.emulator.machine.sleepers import TICK, Sleepers

PATIENCE = 20.0  # real seconds for a stand-in to say where it is
# What a stand-in knows of its scenario.
TOLD = ("crash", "hang", "instead", "kv_blocks", "block_size", "load")
CACHE_VARIABLE, CACHE = "VLLM_XLA_CACHE_PATH", "/root/.cache/vllm/xla_cache"  # vLLM's variable and default
NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+")


class DaemonError(Exception):
    """What the daemon answers to its client: `Error response from daemon: …`."""


class Daemon:
    def __init__(
        self, facts: Facts, behaviour: Behaviour, root: Root, sleepers: Sleepers, addresses: Addresses
    ) -> None:
        self._facts = facts
        self._behaviour = behaviour
        self._root = root
        self._sleepers = sleepers
        self._addresses = addresses
        self._control: Mapping[str, Any] = {}
        self._lock = threading.RLock()
        self._failures_left = behaviour.image_pull_failures
        self._containers: dict[str, Container] = {}
        self._made = 0
        self._pulls = 0
        self._chip = Chip(root, behaviour.chip_busy, facts.clock)
        self.images: set[str] = set()
        self.registries: set[str] = set()

    def connect(self, port: int, key: str) -> None:
        """Where stand-ins find the node's server."""
        self._control = {"port": port, "key": key}

    def pull(self, image: str) -> None:
        registry = _registry(image)
        if registry.endswith(".pkg.dev") and registry not in self.registries:
            raise DaemonError(f"Head https://{registry}/v2/: denied: Unauthenticated request.")
        with self._lock:
            self._pulls += 1
        self._sleepers.wait(self._facts.jitter.vary(self._behaviour.image_pull, "pull", self._pulls))
        with self._lock:
            if self._failures_left:
                self._failures_left -= 1
                raise DaemonError(f"Get https://{registry}/v2/: net/http: TLS handshake timeout")
            self.images.add(image)

    def create(self, options: RunOptions, words: tuple[str, ...], caller: Mapping[str, str]) -> Container:
        with self._lock:
            if options.name and not NAME.fullmatch(options.name):  # it also names files
                raise DaemonError(f"Invalid container name ({options.name}), only {NAME.pattern[:-1]} are allowed")
            if options.name in self._containers:
                raise DaemonError(
                    f'Conflict. The container name "/{options.name}" is already in use by container '
                    f'"{self._containers[options.name].id}". You have to remove (or rename) that container.'
                )
            container = self._new(options, caller)
            self._containers[container.name] = container
        self._record(container, words)
        container.start()
        return container

    def find(self, reference: str) -> Container:
        with self._lock:
            for container in self._containers.values():
                if reference in {container.name, f"/{container.name}"} or (
                    len(reference) >= 12 and container.id.startswith(reference)  # noqa: PLR2004 - docker's short id
                ):
                    return container
        raise DaemonError(f"No such container: {reference}")

    def containers(self) -> tuple[Container, ...]:
        with self._lock:
            return tuple(self._containers.values())

    def remove(self, container: Container) -> None:
        if container.is_running and container.is_on_chip:
            self._chip.let_go()
        container.stop(kill=True)
        with self._lock:
            self._containers.pop(container.name, None)
        container.log_file.unlink(missing_ok=True)
        container.log_file.with_suffix(".json").unlink(missing_ok=True)

    def kill_all(self) -> None:
        for container in self.containers():
            container.stop(kill=True)

    def listening(self, port: int) -> tuple[str, int] | None:
        """Where the node's own curl finds the server of its port, or None."""
        running = (c for c in self.containers() if c.port == port and c.is_running)
        return next((c.place for c in running), None)

    def heard(self, message: Mapping[str, Any]) -> None:
        """A stand-in says where it is: `asleep` until a moment (we return then), or `serving`."""
        container = next((c for c in self.containers() if c.id == message["container"]), None)
        if container is None:  # removed while it spoke
            return
        container.says = message["says"]
        if message["says"] == "asleep":
            until = math.inf if message["until"] is None else message["until"]
            self._sleepers.sleep_until(container.id, until, woken=lambda: not container.is_running)
            container.says = "starting"

    def has_caught_up(self) -> bool:
        """Every stand-in serves, is gone, or waits for time that has not come."""
        return all(self._is_settled(container) for container in self.containers())

    def catch_up(self) -> None:
        self._chip.look()
        end = time.monotonic() + PATIENCE
        while not self.has_caught_up() and not self._sleepers.closed:
            if time.monotonic() > end:
                raise DaemonError("a stand-in did not say where it is; its log is in `docker logs`")
            time.sleep(TICK / 4)

    def _is_settled(self, container: Container) -> bool:
        naps = self._sleepers.naps(container.id)
        return container.says == "serving" or (bool(naps) and all(naps)) or not container.is_running

    def _new(self, options: RunOptions, caller: Mapping[str, str]) -> Container:
        self._made += 1
        name = options.name or f"container_{self._made}"
        given = {key: caller.get(key) if value is None else value for key, value in options.environment.items()}
        environment = {key: value for key, value in given.items() if value is not None}
        serve = find_serve(options.command)
        host, port = listens(serve.words) if serve else (None, 0)
        place = self._addresses.listening(host, port) if serve and options.on_host_network else None
        seed = f"{self._facts.node}/{self._facts.worker}/{self._made}".encode()
        others = (each.is_running and each.is_on_chip for each in self._containers.values())
        is_busy = "privileged" in options.switches and (self._chip.is_held or any(others))
        jitter = self._facts.jitter.of("container", self._made)
        identity = "".join(f"{zlib.crc32(seed, salt):08x}" for salt in range(8))
        return Container(
            id=identity,
            name=name,
            options=options,
            environment=environment,
            place=place,
            port=port,
            log_file=self._root.containers / f"{name}.log",
            created=self._facts.clock.now(),
            is_real=bool(self._facts.engine),
            task={
                "container": identity,
                "control": self._control,
                "image": options.image,
                "words": serve.words if serve else (),
                "refusal": refusal(options.command, serve, setup_fails=self._behaviour.setup_fails),
                "environment": environment,
                "place": place or (self._addresses.inner_address, 0),
                "accelerator_type": self._facts.accelerator_type,
                "image_digest": digest(options.image),
                "cache_folder": self._cache_folder(options, environment),
                "has_weights": self._has_weights(options, serve.words if serve else ()),
                "boot_seconds": jitter.vary(self._behaviour.boot_seconds),
                "jitter": {"share": jitter.share, "source": jitter.source},
                **{name: getattr(self._behaviour, name) for name in TOLD},
                **({"crash": BUSY} if is_busy else {}),
                **self._order(options, serve, environment, place),
            },
        )

    def _order(
        self,
        options: RunOptions,
        serve: Serve | None,
        environment: Mapping[str, str],
        place: tuple[str, int] | None,
    ) -> Mapping[str, Any]:
        """Return what a real engine is told instead of the stand-in, where one was asked for."""
        if not self._facts.engine or serve is None:
            return {}
        ordered = engine.order(
            self._facts.engine,
            serve.words,
            environment,
            place=place or (self._addresses.inner_address, 0),
            volumes=options.volumes,
            root=self._root,
            has_avx512=engine.has_avx512(),
        )
        setup = ("the setup steps are not run: no text of a profile is",) if serve.has_setup else ()
        return {
            "words": ordered.words,
            "environment": ordered.environment,
            "notes": (*setup, *ordered.notes),
        }

    def _cache_folder(self, options: RunOptions, environment: Mapping[str, str]) -> str | None:
        """Where on the node the server's compile cache lies; None where it dies with the container."""
        found = on_node(environment.get(CACHE_VARIABLE) or CACHE, options.volumes, self._root)
        return None if found is None else str(found)

    def _has_weights(self, options: RunOptions, words: tuple[str, ...]) -> bool:
        """What is no path comes from the hub, which has everything."""
        if not words or not words[0].startswith("/"):
            return True
        found = on_node(words[0], options.volumes, self._root)
        return found is not None and (found / "config.json").is_file()

    def _record(self, container: Container, words: tuple[str, ...]) -> None:
        """What was asked for, word by word. Values that came from the caller's environment are secrets: not here."""
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
    """The one that the image names, or what this emulated registry gives its tag."""
    _, at, named = image.partition("@sha256:")
    return named if at else hashlib.sha256(image.encode()).hexdigest()


def _registry(image: str) -> str:
    """A first part without a dot or a port is a name on Docker Hub."""
    first, slash, _ = image.partition("/")
    return first if slash and set(first) & set(".:") else "registry-1.docker.io"
