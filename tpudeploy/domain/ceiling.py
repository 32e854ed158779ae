"""Ceiling: the most that may be billed per hour, and how many of its prices are unknown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """The most that may be billed per hour in USD, for all chips, at list prices.

    If `unknown_prices` of the `prices` that decide it are unknown, `usd_per_hour` is a lower bound: it may cost more.
    """

    usd_per_hour: float = 0.0
    prices: int = 0
    unknown_prices: int = 0

    @classmethod
    def for_slices(cls, prices: Iterable[float | None], slices: int = 1) -> Ceiling:
        """Return the ceiling of this many slices, each at another one of these prices, the highest first."""
        all_prices = list(prices)
        known_prices = sorted((usd for usd in all_prices if usd is not None), reverse=True)
        return cls(
            usd_per_hour=sum(known_prices[:slices]),
            prices=len(all_prices),
            unknown_prices=len(all_prices) - len(known_prices),
        )

    @property
    def is_known(self) -> bool:
        """Whether no price is unknown, so that nothing above `usd_per_hour` is billed."""
        return not self.unknown_prices

    def __add__(self, other: Ceiling) -> Ceiling:
        return Ceiling(
            usd_per_hour=self.usd_per_hour + other.usd_per_hour,
            prices=self.prices + other.prices,
            unknown_prices=self.unknown_prices + other.unknown_prices,
        )

    def __mul__(self, count: int) -> Ceiling:
        """Return the ceiling of as many that have the same places, whose prices are counted once."""
        return Ceiling(usd_per_hour=self.usd_per_hour * count, prices=self.prices, unknown_prices=self.unknown_prices)
