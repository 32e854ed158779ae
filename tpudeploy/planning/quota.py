"""The room that quotas leave for one slice. The limit of a zone and the limit of its region both apply."""

from __future__ import annotations

from dataclasses import dataclass

from tpudeploy.domain.availability import Fill, Quota
from tpudeploy.domain.facts import UNLIMITED, ApiFacts, QuotaLimit, QuotaPool, Unknown, Use
from tpudeploy.domain.names import Zone


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaTable:
    """The limits and the uses of one generation at one API. `uses` is None if they are unknown."""

    limits: tuple[QuotaLimit, ...]
    uses: tuple[Use, ...] | None

    @classmethod
    def from_facts(cls, facts: ApiFacts, generation: str) -> QuotaTable:
        limits = () if isinstance(facts.limits, Unknown) else facts.limits
        uses = None if isinstance(facts.uses, Unknown) else facts.uses
        return cls(
            limits=tuple(x for x in limits if x.generation == generation),
            uses=None if uses is None else tuple(u for u in uses if u.generation == generation),
        )

    def quota(self, zone: Zone, pool: QuotaPool, *, chips: int) -> Quota:
        """Return the quota for a slice of `chips` in this zone."""
        zone_limit, zone_used = self._limit(pool, zone, zonal=True), self._used(pool, zone, zonal=True)
        region_limit = self._limit(pool, zone.region, zonal=False)
        region_used = self._used(pool, zone.region, zonal=False)
        return Quota(
            fill=_fill(((zone_limit, zone_used), (region_limit, region_used)), chips),
            zone_limit=zone_limit,
            zone_used=zone_used,
            region_limit=region_limit,
            region_used=region_used,
        )

    def _limit(self, pool: QuotaPool, place: str, *, zonal: bool) -> int | None:
        """Return the place's own limit, else the one of all places, else None."""
        limits = {x.place: x.chips for x in self.limits if (x.pool, x.zonal) == (pool, zonal)}
        return limits.get(place, limits.get(""))

    def _used(self, pool: QuotaPool, place: str, *, zonal: bool) -> int | None:
        if self.uses is None:
            return None
        return sum(u.chips for u in self.uses if u.pool is pool and (u.zone if zonal else u.zone.region) == place)


def _fill(places: tuple[tuple[int | None, int | None], ...], chips: int) -> Fill:
    """Return whether both places, each as (limit, used), have room for the slice.

    An unknown use counts as 0: a quota causes a warning, and never prevents a request.
    """
    known_limits = [(limit, used or 0) for limit, used in places if limit is not None]
    bounded = [(limit, used) for limit, used in known_limits if limit != UNLIMITED]
    if any(limit == 0 for limit, _ in bounded):
        return Fill.NONE
    if any(limit - used < chips for limit, used in bounded):
        return Fill.SHORT
    return Fill.ENOUGH if len(known_limits) == len(places) else Fill.UNKNOWN
