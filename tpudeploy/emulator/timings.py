"""How long things take in the emulated cloud, unless a scenario says otherwise; and how much that varies.

No two measured durations are equal, and a seed repeats them all.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from typing import Self


def draw(*key: object) -> float:
    """Return a number in [0, 1) that depends on `what` alone, not on the order of draws."""
    digest = blake2b(repr(key).encode(), digest_size=8).digest()
    return float(int.from_bytes(digest) / 2**64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jitter:
    """`share` is the largest deviation: 0.1 makes of 100 s something between 90 s and 110 s.

    `source` names what varies, e.g. the third slice of a scenario with seed 7.
    """

    share: float = 0.0
    source: tuple[object, ...] = ()

    def part_of(self, *part: object) -> Jitter:
        """Return the jitter of a part of this source, which varies by itself."""
        return Jitter(share=self.share, source=(*self.source, *part))

    def vary(self, seconds: float, *key: object) -> float:
        """Return `seconds`, longer or shorter: always the same for the same `what`."""
        return seconds * (1 + self.share * (2 * draw(*self.source, *key) - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """How long things take, in seconds: a slice's way CREATING, queue, PROVISIONING, ACTIVE, node READY, and back.

    `neighbour` is how long another service than Cloud TPU takes to reply: secrets, quotas, prices, registries, the hub.
    """

    queued: float = 10.0
    waiting: float = 20.0
    provisioning: float = 120.0
    node_ready: float = 0.0
    boot: float = 0.0
    reset: float = 240.0
    patch: float = 5.0
    delete_refused: float = 1.5
    deleting: float = 20.0
    suspending: float = 30.0
    preempted: float = 30.0
    neighbour: float = 0.0

    def varied(self, jitter: Jitter) -> Self:
        """Return the same timings, each a little longer or shorter."""
        return replace(self, **{row.name: jitter.vary(getattr(self, row.name), row.name) for row in fields(self)})


# As slow as the cloud: a measured boot of small weights takes seven minutes and more, what is deleted or preempted goes
# after minutes, and neighbours take 15 s to reply.
CLOUD = Timings(node_ready=20.0, boot=420.0, deleting=150.0, suspending=90.0, preempted=60.0, neighbour=15.0)
# Seconds of a person's patience; every state is still seen.
DEMO = Timings(
    queued=2.0,
    waiting=1.0,
    provisioning=4.0,
    boot=5.0,
    reset=5.0,
    patch=1.0,
    deleting=2.0,
    suspending=2.0,
    preempted=2.0,
    neighbour=0.0,
)
