"""The tool, except that it may die before any effect or lose the reply to one, and that its clock may be wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from tpudeploy.adapters.google.compute_engine.group_body import slice_type
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.events import Event
from tpudeploy.emulator import VirtualClock
from tpudeploy.ports import Workers, World
from tpudeploy.wiring import Adapters
from tpudeploy.workspace import Workspace

# Effects that Google replies to, and the method that carries each out.
METHODS: Mapping[str, str] = {
    "request": "queuedResources.create",
    "release": "queuedResources.delete",
    "update": "nodes.patch",
    "restart": "queuedResources.reset",
}
INSTANCE_METHODS: Mapping[str, str] = {
    "request": "compute.instances.insert",
    "release": "compute.instances.delete",
    "update": "compute.instances.set*",
    "restart": "compute.instances.reset",
}
# The calls of which an effect on a group of instances consists, each of which a run may not survive.
GROUP_CALL = re.compile(
    r"/regions/[^/]+/(?P<part>resourcePolicies|instanceTemplates|instanceGroupManagers)(?:/[^/]+)?"
    r"|/zones/[^/]+/instances/[^/]+-w-\d+/(?P<change>setMetadata|setLabels|setTags|reset)"
)


def has_reply(effect: str) -> bool:
    """Whether Google replies to an effect, and the reply can be lost."""
    return effect in METHODS or effect.startswith(("POST ", "DELETE "))


def is_group(what: Any) -> bool:
    """Whether an effect is about a slice that is a group of instances, to which Google replies call by call."""
    is_instance = getattr(what, "backend", None) is Backend.GCE_INSTANCE
    return is_instance and slice_type(what.accelerator_type) is not None


class Killed(BaseException):
    """kill -9, as it looks from inside: nothing catches it, and nothing runs after it."""


@dataclass
class Fuse:
    """Strikes at the effect numbered `at`, counted from 0; None never.

    It kills before that effect; after one effect is before the next. Or the effect is carried out and its reply lost.
    """

    at: int | None = None
    reply_lost: bool = False
    passed: list[str] = field(default_factory=list)
    is_blown: bool = False

    def burn(self, where: str) -> bool:
        """Return whether the reply to this effect is lost. A killed process stays dead."""
        self.passed.append(where)
        strikes = len(self.passed) - 1 == self.at
        self.is_blown |= strikes and not self.reply_lost
        if self.is_blown:
            raise Killed(where)
        return strikes


@dataclass
class Stop(Fuse):
    """Strikes as a `Fuse` does, but stops the process for as long as `meanwhile` takes, and lets it continue then."""

    meanwhile: Callable[[], None] = lambda: None

    def burn(self, where: str) -> bool:
        self.passed.append(where)
        if len(self.passed) - 1 == self.at:
            with ThreadPoolExecutor(max_workers=1) as pool:  # as another process: nothing of this thread holds there
                pool.submit(self.meanwhile).result()
        return False


class Mortal:
    """A port at whose effects the process may end. It does not end at looks, which change nothing."""

    EFFECTS = frozenset({*METHODS, "write", "publish"})
    IN_A_BUCKET = EFFECTS | {"lock", "unlock"}  # in a folder, the kernel unlocks for a killed process

    def __init__(
        self,
        port: object,
        fuse: Fuse,
        *,
        effects: frozenset[str],
        before: Callable[[str, Any, bool], None],
        after: Callable[[], None],
    ) -> None:
        self._port, self._fuse, self._effects, self._before, self._after = port, fuse, effects, before, after

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        if name not in self._effects:
            return method

        def effect(*arguments: Any, **keywords: Any) -> Any:
            # Inside an effect on a group, each call of its own is one.
            where = f"{name} a group" if is_group(arguments[0]) else name
            self._before(name, arguments[0], self._fuse.burn(where))
            answer = method(*arguments, **keywords)
            self._after()
            return answer

        return effect


class MortalAdapters(Adapters):
    """The adapters, with their effects under observation."""

    fuse: Fuse
    before: Callable[[str, Any, bool], None]
    after: Callable[[], None]

    @cached_property
    def connection(self) -> CloudConnection:
        connection = super().connection
        connection.on_exchange = self._note_exchange
        return connection

    def _note_exchange(self, method: str, url: str, _body: object, status: int, _content: bytes) -> None:
        """Let the process end after a call, or lose the reply to it: what follows in the same effect never happens."""
        call = GROUP_CALL.fullmatch(urlsplit(url).path.partition("/projects/emulated")[2])
        if call is None or method == "GET" or status != 200:
            return
        if self.fuse.burn(f"{method} {call['part'] or call['change']}"):
            raise ConnectionResetError("the connection closed before the reply")

    def world(self, on_event: Callable[[Event], None] | None = None) -> World:
        world = super().world(on_event)
        return replace(world, cloud=self._mortal(world.cloud), state=self._mortal(world.state))

    def _mortal(self, port: object) -> Any:
        effects = Mortal.EFFECTS if self._bucket is None else Mortal.IN_A_BUCKET
        return Mortal(port, self.fuse, effects=effects, before=self.before, after=self.after)

    def close(self) -> None:
        """Close, except that a killed process frees nothing."""
        if self.fuse.is_blown:
            self.__dict__.pop("states", None)
        super().close()


class MortalWorkspace(Workspace):
    adapters_class = MortalAdapters
    adapters: MortalAdapters


@dataclass
class Watch:
    """The tool's clock: the world's time, and how far it is `ahead` of that."""

    world: VirtualClock
    ahead: float = 0.0

    def now(self) -> float:
        return self.world.now() + self.ahead

    def sleep(self, seconds: float) -> None:
        self.world.sleep(seconds)

    def stop(self) -> None:
        self.world.stop()

    def workers(self) -> AbstractContextManager[Workers]:
        return self.world.workers()
