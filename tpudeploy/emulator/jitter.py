"""How much durations vary: no two measured ones are equal, and a seed repeats them all."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b


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
