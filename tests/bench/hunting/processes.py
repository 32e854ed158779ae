"""The command line itself in a world: `apply -watch` against the emulator, on virtual time, until a slice lasts."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.hunting.outcome import Outcome
from bench.hunting.setting import ANSWER, CHIPS, DELETING, HOUR, LASTING, MINUTE, SUSPENDING, Habit
from bench.hunting.worlds import Place, World

from tpudeploy import catalog
from tpudeploy.cli.main import main
from tpudeploy.emulator import Emulator, VirtualClock, running

# Nobody watches longer here: a look of the real program takes a millisecond for each request.
LONGEST = 24 * HOUR
_PROFILE = """\
version: 1
name: hunt
model: {{id: google/gemma-4-E2B-it}}
tpu: {{type: v6e-{chips}}}
serving: {{image: "vllm/vllm-tpu:v0.32.0", max_model_len: 16384}}
placement:
  zones: [{zones}]
  provisioning: [spot]
{keys}"""


def hunt(world: World, keys: str = "") -> Outcome:
    """Spot in every zone, with the default number of requests; `keys` are further lines of `placement`."""
    clock = VirtualClock()
    with TemporaryDirectory() as folder, running(clock=clock, scenario=_scenario(world)) as emulator:
        os.environ["TPU_EMULATOR_HOST"] = emulator.host
        profile = Path(folder) / "hunt.yaml"
        zones = ", ".join(_zones(world).values())
        profile.write_text(_PROFILE.format(chips=CHIPS, zones=zones, keys=keys), encoding="utf-8")
        watched = _Watched(clock, emulator, world.setting.boot)
        clock.on_advance.append(watched.look)
        said = TextIOWrapper(BytesIO(), encoding="utf-8")
        with redirect_stdout(said), redirect_stderr(said):
            main(["apply", "-auto-approve", "-watch", str(profile), "--chdir", folder], clock=clock)
        if os.environ.get("HUNT_STORY"):
            said.seek(0)
            sys.stderr.write(said.read())
        return watched.outcome()


class _Watched:
    """What became of each slice, looked at whenever time passes."""

    def __init__(self, clock: VirtualClock, emulator: Emulator, boot: float) -> None:
        self._clock = clock
        self._emulator = emulator
        self._boot = boot
        self._began = clock.now()
        self._active: dict[str, tuple[float, float]] = {}  # since when, and when it was last seen so
        self._deleted: set[str] = set()
        self._winner: str | None = None
        self._is_over = False

    def look(self) -> None:
        if self._is_over:
            return
        now = self._clock.now() - self._began
        for slices in self._emulator.live().values():
            for name, state in slices.items():
                if state == "ACTIVE":
                    since, _ = self._active.get(name, (now, now))
                    self._active[name] = (since, now)
                    if now - since >= self._boot + LASTING and self._winner is None:
                        self._winner = name
                if state == "DELETING":
                    self._deleted.add(name)
        if self._winner is not None or now >= LONGEST:
            self._is_over = True
            raise KeyboardInterrupt

    def outcome(self) -> Outcome:
        others = [name for name in self._active if name != self._winner]
        doubles = sum(name in self._deleted for name in others)
        usable_at = math.inf if self._winner is None else self._active[self._winner][0] + self._boot
        creates = [r for r in self._emulator.requests if r.method == "POST" and r.resource.endswith("/queuedResources")]
        return Outcome(
            usable_at=usable_at,
            creates=len(creates),
            doubles=doubles,
            doomed=len(others) - doubles,
            wasted=sum(CHIPS * (self._active[name][1] - self._active[name][0]) / MINUTE for name in others),
        )


def _zones(world: World) -> dict[str, str]:
    """Zones of the catalogue in place of the world's, whose names no profile may have."""
    real = catalog.generation("v6e").zones
    return {place.zone: zone for place, zone in zip(world.places, real, strict=False)}


def _scenario(world: World) -> dict[str, Any]:
    setting = world.setting
    trouble: list[dict[str, Any]] = []
    for place, zone in zip(world.places, _zones(world).values(), strict=True):
        trouble += ({**row, "zone": zone} for row in _rows(place))
    if setting.slow:
        trouble.append({"fault": "slow", "zone": _zones(world)[world.places[1].zone], "seconds": setting.slow})
    habits = []
    if setting.habit in {Habit.EARLY_PREEMPTION, Habit.INTERNAL_ERROR}:
        habits.append({"habit": setting.habit.value, "zone": _zones(world)[world.places[0].zone]})
    timings = {"queued": ANSWER, "waiting": 0, "deleting": DELETING, "suspending": SUSPENDING, "boot": setting.boot}
    return {"nodes": "simulated", "timings": timings, "trouble": trouble, "habits": habits}


def _rows(place: Place) -> Iterator[dict[str, Any]]:
    """Full outside of its windows; what is granted in one is as slow as the world says, and may end with code 13."""
    if place.habit in {Habit.EARLY_PREEMPTION, Habit.INTERNAL_ERROR}:
        return
    full_since = at = 0.0
    while at < LONGEST and (window := place.window(at)) is not None:
        # A create is answered later, so what is requested a moment before a window is granted in it.
        opens, closes = window.opens - ANSWER, window.closes - ANSWER
        at = window.closes
        if closes <= 0:
            continue
        yield {"fault": "stockout", "since": full_since, "until": opens}
        when = {"since": opens, "until": closes}
        yield {"fault": "timings", "provisioning": window.provisioning, **when}
        if window.internal:
            yield {"fault": "internal-error", **when}
        full_since = closes
    yield {"fault": "stockout", "since": full_since}
