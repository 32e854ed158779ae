"""How many chips lanes may have at the same time: the number in the grid, or Google's quota of each generation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.availability import Quota
from tpudeploy.domain.deployment import Candidate, Deployment
from tpudeploy.domain.facts import POOLS, UNLIMITED, Facts, Unknown
from tpudeploy.planning.quota import QuotaTable

QuotaOf = Callable[[str | None, Iterable[Backend]], Facts]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipLimits:
    """The chips of all lanes `together`, and those of each generation. None, or an absent generation: no limit.

    A generation's limit is what its quota has free in all places of its lanes together. Its first lane starts in any
    case: what others use may become free while it waits.
    """

    together: int | None = None
    by_generation: Mapping[str, int] = field(default_factory=dict)

    def has_room(self, generation: str, chips: int, beside: Iterable[tuple[str, int]]) -> bool:
        """Return whether a lane fits beside others, each of which is its generation and its chips."""
        others = tuple(beside)
        if self.together is not None and chips + sum(each for _, each in others) > self.together:
            return False
        own, limit = [each for name, each in others if name == generation], self.by_generation.get(generation)
        return limit is None or not own or chips + sum(own) <= limit


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaReading:
    """Google's quota for lanes. `most` is the largest quota of a slice in one place, by lane; `unknown` the reasons."""

    limits: ChipLimits
    most: Mapping[str, int]
    unknown: tuple[str, ...] = ()


def read_quota(lanes: Mapping[str, Deployment], quota_of: QuotaOf) -> QuotaReading:
    """Return the quota of these deployments, by the names of their lanes. An unknown quota limits no lane.

    `quota_of` reads the quota of a project at some APIs, without what the campaign's own slices use.
    """
    keys = dict.fromkeys((each.project, each.backends) for each in lanes.values())
    facts = {key: quota_of(*key) for key in keys}
    free: dict[str, dict[tuple[str | None, Candidate], Quota]] = {}
    most: dict[str, int] = {}
    unknown: list[str] = []
    for name, deployment in lanes.items():
        own = facts[deployment.project, deployment.backends]
        unknown += _reasons(own)
        quotas = dict(_quotas(deployment, own))
        free.setdefault(deployment.accelerator.generation, {}).update(
            {(deployment.project, place): quota for place, quota in quotas.items()}
        )
        largest = max((_smaller(each.zone_limit, each.region_limit) for each in quotas.values()), default=inf)
        if largest != inf:
            most[name] = int(largest)
    totals = {generation: _free_chips(quotas) for generation, quotas in free.items()}
    limits = ChipLimits(by_generation={name: int(chips) for name, chips in totals.items() if chips != inf})
    return QuotaReading(limits=limits, most=most, unknown=tuple(dict.fromkeys(unknown)))


def _reasons(facts: Facts) -> Iterator[str]:
    """Yield why limits are not known."""
    for api in facts.apis.values():
        if isinstance(api.limits, Unknown):
            yield api.limits.because


def _quotas(deployment: Deployment, facts: Facts) -> Iterator[tuple[Candidate, Quota]]:
    """Yield each place of a deployment whose API was read, and its quota."""
    generation, chips = deployment.accelerator.generation, deployment.accelerator.chips
    tables = {backend: QuotaTable.from_facts(api, generation) for backend, api in facts.apis.items()}
    for place in deployment.candidates:
        if place.backend in tables:
            yield place, tables[place.backend].quota(place.zone, POOLS[place.provisioning], chips=chips)


def _free_chips(quotas: Mapping[tuple[str | None, Candidate], Quota]) -> float:
    """Return the chips that all places have free together. A region has no more than its own limit."""
    zones: dict[tuple[object, ...], float] = {}
    regions: dict[tuple[object, ...], float] = {}
    for (project, place), quota in quotas.items():
        region = (project, place.backend, POOLS[place.provisioning], place.zone.region)
        zones[*region, place.zone] = _free(quota.zone_limit, quota.zone_used)
        regions[region] = _free(quota.region_limit, quota.region_used)
    return sum(
        min(free, sum(chips for zone, chips in zones.items() if zone[:-1] == region))
        for region, free in regions.items()
    )


def _free(limit: int | None, used: int | None) -> float:
    return inf if limit in (None, UNLIMITED) else max(0.0, float(limit or 0) - (used or 0))


def _smaller(*limits: int | None) -> float:
    return min(inf if limit in (None, UNLIMITED) else float(limit or 0) for limit in limits)
