"""What the stories of a hunt share: profiles that ask in many places, when each was asked, and how a hunt must end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from command_line import PROFILE, CommandLine, Result

A, B, EAST_C = "us-east5-a", "us-east5-b", "us-east5-c"
WEST, TOKYO, CHILE = "europe-west4-a", "asia-northeast1-b", "southamerica-west1-a"
CENTRAL, CENTRAL_B, CENTRAL_C = "us-central1-a", "us-central1-b", "us-central1-c"
APPLY = ("apply", "-auto-approve", "gemma.yaml")


def hunt(*zones: str, models: str = "spot", requests: int = 4, more: str = "", top: str = "") -> str:
    """A profile; `more` are further keys of `placement`, `top` of the profile."""
    profile = PROFILE.replace("[us-east5-a, us-east5-b, europe-west4-a]", f"[{', '.join(zones)}]")
    profile = profile.replace("[spot]", f"[{models}]").replace(
        "max_parallel_requests: 1", f"max_parallel_requests: {requests}"
    )
    return f"{profile}  max_run_duration: 4h\n{more and f'  {more}'}\n{top}\n"


def heard(result: Result, kind: str) -> Iterator[dict[str, Any]]:
    """The events of that kind, of a command that ran with --json."""
    events = (json.loads(line) for line in result.out.splitlines())
    return (event for event in events if event.get("type") == kind)


def holds(at: CommandLine, *, slices: int = 1) -> None:
    """Exactly the wanted slices: alive, billed, remembered, counted against quota; and nothing beside them."""
    assert list(at.slices.values()) == ["ACTIVE"] * slices, at.slices
    assert sorted(at.emulator.billed()) == sorted(at.slices)
    attempts = [attempt for record in at.state()["records"] for attempt in record["attempts"]]
    assert sorted(a["name"] for a in attempts) == sorted(at.slices)
    assert at.state()["goal"] is None


def heals(at: CommandLine, *, after: float) -> None:
    """So many seconds from now, no more trouble for whatever is asked from then on."""
    end = at.clock.now() + after

    def on_advance() -> None:
        if at.clock.now() >= end:
            at.emulator._cloud.troubles.clear()

    at.clock.on_advance.append(on_advance)


def lose(at: CommandLine) -> None:
    """Google takes back what is up, and ends with it within the time that takes."""
    for name in at.emulator.billed():
        at.emulator.preempt(name)
    at.clock.sleep(120)


def gives_back(at: CommandLine) -> None:
    """`destroy` leaves nothing: no slice, no husk that takes quota, nothing remembered."""
    destroyed = at.run("destroy", "-auto-approve", "gemma.yaml")
    assert destroyed.code == 0, destroyed.all
    assert at.slices == {}
    assert not [attempt for record in at.state()["records"] for attempt in record["attempts"]]
