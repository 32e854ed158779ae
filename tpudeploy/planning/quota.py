"""What a quota leaves for one slice: a zone's limit and its region's, both of which count."""

from __future__ import annotations

from tpudeploy.domain.availability import Fill, Quota
from tpudeploy.domain.facts import UNLIMITED, Facts, Limit, Pool, Unknown, Use
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import Zone


@frozen
class Book:
    """Limits and uses of one generation; None: not known."""

    limits: tuple[Limit, ...]
    uses: tuple[Use, ...] | None

    @classmethod
    def of(cls, facts: Facts, generation: str) -> Book:
        limits = () if isinstance(facts.limits, Unknown) else facts.limits
        uses = None if isinstance(facts.uses, Unknown) else facts.uses
        return cls(
            limits=tuple(x for x in limits if x.generation == generation),
            uses=None if uses is None else tuple(u for u in uses if u.generation == generation),
        )

    def quota(self, zone: Zone, pool: Pool, *, chips: int) -> Quota:
        there, around = self._limit(pool, zone, zonal=True), self._limit(pool, zone.region, zonal=False)
        held, held_around = self._used(pool, zone, zonal=True), self._used(pool, zone.region, zonal=False)
        return Quota(
            fill=_fill(((there, held), (around, held_around)), chips),
            zone_limit=there,
            zone_used=held,
            region_limit=around,
            region_used=held_around,
        )

    def _limit(self, pool: Pool, place: str, *, zonal: bool) -> int | None:
        """The place's own limit, else the one of every place, else None."""
        found = {x.place: x.chips for x in self.limits if (x.pool, x.zonal) == (pool, zonal)}
        return found.get(place, found.get(""))

    def _used(self, pool: Pool, place: str, *, zonal: bool) -> int | None:
        if self.uses is None:
            return None
        return sum(u.chips for u in self.uses if u.pool is pool and (u.zone if zonal else u.zone.region) == place)


def _fill(places: tuple[tuple[int | None, int | None], ...], chips: int) -> Fill:
    """Of (limit, used) of both places. What is not known to be used is taken for free: quota warns, it never blocks."""
    known = [(limit, used or 0) for limit, used in places if limit is not None]
    bounded = [(limit, used) for limit, used in known if limit != UNLIMITED]
    if any(limit == 0 for limit, _ in bounded):
        return Fill.NONE
    if any(limit - used < chips for limit, used in bounded):
        return Fill.SHORT
    return Fill.ENOUGH if len(known) == len(places) else Fill.UNKNOWN
