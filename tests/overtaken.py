"""A workspace that somebody overtakes: an apply comes in the very moment in which the project is looked through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from command_line import CommandLine

from tpudeploy.domain.events import Event
from tpudeploy.ports import TpuCloud, World
from tpudeploy.wiring import Adapters
from tpudeploy.workspace import Workspace


class LateAdapters(Adapters):
    at: CommandLine

    def world(self, on_event: Callable[[Event], None] | None = None) -> World:
        world = super().world(on_event)
        return replace(world, cloud=_Late(world.cloud, self.at))


class Overtaken(Workspace):
    """`adapters.at` is where the other one sits; gemma.yaml is what they apply."""

    adapters_class = LateAdapters
    adapters: LateAdapters


class _Late:
    def __init__(self, cloud: TpuCloud, at: CommandLine) -> None:
        self._cloud, self._at = cloud, at

    def __getattr__(self, name: str) -> Any:
        if name == "list_marked":
            assert self._at.run("apply", "-auto-approve", "gemma.yaml").code == 0
        return getattr(self._cloud, name)
