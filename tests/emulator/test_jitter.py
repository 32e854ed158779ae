"""No two durations of the emulator are equal, and the same seed repeats every one of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from emulator.cloud_world import QUICK, ZONE, World, world

from tpudeploy.emulator.machine.vllm.arguments import parse
from tpudeploy.emulator.machine.vllm.boot import Programs, milestones
from tpudeploy.emulator.machine.vllm.engine import new_engine
from tpudeploy.emulator.timings import Jitter

TASK: Mapping[str, Any] = {
    "accelerator_type": "v6e-1",
    "image": "vllm/vllm-tpu:v0.32.0",
    "environment": {},
    "instead": {},
    "load": {},
    "kv_blocks": None,
    "block_size": None,
}


def seconds_to_active(w: World, name: str) -> float:
    """From event to event of the cloud's own agenda: to the last digit, and with few calls."""
    began = w.clock.now()
    w.create(name)
    while w.emulator.live()[ZONE][name] != "ACTIVE":
        w.clock.sleep(w.emulator.next_moment() - w.clock.now() + 1e-6)
    return w.clock.now() - began


def provisioned(seed: int, share: float) -> list[float]:
    """How long three slices took, one after the other."""
    with world(seed=seed, jitter=share, timings=QUICK | {"provisioning": 100}) as w:
        return [round(seconds_to_active(w, name), 2) for name in ("a", "b", "c")]


def compile_seconds(jitter: Jitter) -> float:
    """What a boot with this jitter says in its log."""
    arguments = parse(["google/gemma-4-E2B-it", "--max-num-batched-tokens", "4096"])
    engine = new_engine(arguments, TASK)
    log = "\n".join(
        line for _, line in milestones(engine, arguments, ("", 1), Programs(folder=None, identity=""), jitter)
    )
    match = re.search(r"\(compilation: ([\d.]+) s\)", log)
    assert match is not None
    return float(match[1])


def test_a_duration_varies_within_its_share_and_is_the_same_for_the_same_source() -> None:
    jitter = Jitter(share=0.1, source=(7, "create", 1))
    drawn = [jitter.vary(100.0, number) for number in range(1000)]
    assert drawn == [Jitter(share=0.1, source=(7, "create", 1)).vary(100.0, number) for number in range(1000)]
    assert len(set(drawn)) == 1000
    assert 90.0 <= min(drawn) < 91.0
    assert 109.0 < max(drawn) <= 110.0
    assert Jitter().vary(100.0) == 100.0


def test_no_two_slices_take_equally_long_and_a_seed_repeats_them() -> None:
    times = provisioned(seed=1, share=0.1)
    assert len(set(times)) == 3
    assert provisioned(seed=1, share=0.1) == times
    assert provisioned(seed=2, share=0.1) != times
    assert len(set(provisioned(seed=1, share=0.0))) == 1


def test_no_two_starts_compile_equally_long() -> None:
    times = [compile_seconds(Jitter(share=0.1, source=("container", number))) for number in range(20)]
    assert len(set(times)) == 20
    assert compile_seconds(Jitter()) == 393.98  # the measured boot's
