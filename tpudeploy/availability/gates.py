"""The availability of a slice type: each gate judged by itself, and the pairs in the order in which to request them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from tpudeploy import catalog
from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.domain.accelerator import DEFAULT_BACKEND, AcceleratorType, Backend, Generation
from tpudeploy.domain.availability import (
    FactSource,
    Fill,
    Gate,
    GateSource,
    Pair,
    Price,
    SourcedAnswer,
    Standing,
    ZoneTable,
)
from tpudeploy.domain.deployment import Deployment, Place, Provisioning
from tpudeploy.domain.facts import POOLS, ApiFacts, Facts, Offers, Prices, Unknown
from tpudeploy.domain.history import Ending, HistoryEntry
from tpudeploy.domain.names import Zone
from tpudeploy.planning.quota import QuotaTable
from tpudeploy.planning.resolve import in_turn
from tpudeploy.reconcile.capacity_score import capacity_score, doubtful_places_of_history, preference, summarize_results

_DAY = 86400.0
WINDOW = 14 * _DAY
# How long a refusal for the place is believed: Google opens zones and models, rarely.
_BELIEVED = 30 * _DAY
# Kinds of refusal (adapters/google/verdicts.py) that are about the place, and not about a moment's capacity.
NO_MODEL = frozenset({"model-unsupported", "queue-closed", "reservation-missing"})
NO_HARDWARE = frozenset({"zone-unsupported", "type-unsupported", "location-denied", "no-queueing", "too-big"})
# Those that are about every type of the generation; the others are about the requested type.
OF_ALL_TYPES = frozenset({"zone-unsupported", "location-denied", "model-unsupported"})
_ACCEPTED = {Ending.GRANTED, Ending.LAPSED, Ending.STUCK}  # the place took the request, whatever became of it
_USUAL = (Provisioning.FLEX_START, Provisioning.SPOT, Provisioning.ON_DEMAND)
_ORDER = tuple(Standing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The places in question. `zones` None: wherever there is the type. `models` are in order where `has_taste`.

    `reserved` is the zone of the reservation, the only one where `reserved` can be requested. `backends` are the APIs
    to request from, the preferred one first.
    """

    type: AcceleratorType
    profile: str = ""
    zones: tuple[Zone, ...] | None = None
    reserved: Zone | None = None
    models: tuple[Provisioning, ...] = _USUAL
    most_usd: float | None = None
    has_taste: bool = False
    backends: tuple[Backend, ...] = (DEFAULT_BACKEND,)

    @classmethod
    def for_deployment(cls, deployment: Deployment, kind: AcceleratorType | None = None) -> Query:
        """Return the places that a profile names, too expensive or not; for another slice type, where one is given."""
        attributes, slice_type = deployment.attributes, kind or deployment.accelerator
        zones, models = attributes.get("placement.zones"), attributes.get("placement.provisioning")
        most, reservation = attributes.get("placement.max_price_per_chip_hour"), deployment.reservation
        return cls(
            type=slice_type,
            profile=deployment.name,
            zones=tuple(Zone(str(z)) for z in zones) if isinstance(zones, list) else None,
            reserved=Zone(reservation.split("/")[3]) if reservation is not None else None,
            models=tuple(Provisioning(str(m)) for m in models) if isinstance(models, list) else _USUAL,
            most_usd=float(most) if isinstance(most, int | float) else None,
            has_taste=True,
            # Another type may be one that the profile's API does not create.
            backends=tuple(b for b in deployment.backends if b in slice_type.backends) or slice_type.backends[:1],
        )


def judge_zones(
    query: Query, facts: Facts, history: tuple[HistoryEntry, ...] | Unknown, *, project: str | None, now: float
) -> ZoneTable:
    """Return every pair in question, the one to request first on top."""
    entries = () if isinstance(history, Unknown) else history
    generation = catalog.generation(query.type.generation)
    judge = _Judge(
        query=query,
        facts=facts,
        generation=generation,
        quotas={backend: QuotaTable.from_facts(api, generation.name) for backend, api in facts.apis.items()},
        entries=entries,
        doubtful=doubtful_places_of_history(entries, query.type.name, now),
        now=now,
    )
    by_api = {backend: judge.readings(backend) for backend in query.backends}
    return ZoneTable(
        profile=query.profile,
        project=project,
        type=query.type.name,
        chips=query.type.chips,
        window=WINDOW,
        pairs=tuple(sorted(judge.pairs(), key=judge.rank)),
        readings={
            Gate.HARDWARE: by_api[query.backends[0]][Gate.HARDWARE],
            Gate.MODEL: GateSource(
                source=FactSource.TABLE, as_of=max(generation.flex_start_zones.values(), default="")
            ),
            Gate.QUOTA: by_api[query.backends[0]][Gate.QUOTA],
            Gate.PRICE: judge.reading(facts.prices, generation.prices_as_of),
            Gate.LUCK: GateSource(source=FactSource.NONE, unknown=history)
            if isinstance(history, Unknown)
            else GateSource(source=FactSource.LOG),
        },
        readings_by_api=by_api,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judge:
    query: Query
    facts: Facts
    generation: Generation
    quotas: Mapping[Backend, QuotaTable]
    entries: tuple[HistoryEntry, ...]
    doubtful: frozenset[Place]
    now: float

    def pairs(self) -> Iterator[Pair]:
        places = self._places()
        for model in self.query.models:
            only = self.query.reserved if model is Provisioning.RESERVED else None
            for zone, backend in in_turn(places if only is None else (only,), self.query.backends):
                yield self._pair(Place(zone, model, backend))

    def _places(self) -> tuple[Zone, ...]:
        """Return the named zones, or those that list the type at an API; in the catalogue's order, then by name."""
        if self.query.zones is not None:
            return self.query.zones
        in_catalogue = tuple(map(Zone, self.generation.zones))
        listed: set[Zone] = set()
        for backend in self.query.backends:
            offers = self._api(backend).offers
            if isinstance(offers, Unknown):
                return in_catalogue
            listed |= {zone for zone, types in offers.types.items() if self.query.type.name in types}
            listed |= {zone for zone in in_catalogue if zone in offers.silent}
        return (*(z for z in in_catalogue if z in listed), *sorted(listed - set(in_catalogue)))

    def _pair(self, place: Place) -> Pair:
        zone, model, backend = place
        hardware, acceptance = self._hardware(place), self._model(place)
        quota = self.quotas[backend].quota(zone, POOLS[model], chips=self.query.type.chips)
        price = self._price(zone, model)
        answers = {Gate.HARDWARE: hardware.yes, Gate.MODEL: acceptance.yes, Gate.PRICE: not price.is_too_dear}
        closed_by = next((gate for gate, answer in answers.items() if answer is False), None)
        standing = Standing.DOUBTFUL if quota.fill in {Fill.NONE, Fill.SHORT} else Standing.OPEN
        return Pair(
            zone=zone,
            provisioning=model,
            backend=backend,
            standing=Standing.CLOSED if closed_by else standing,
            closed_by=closed_by,
            hardware=hardware,
            model=acceptance,
            quota=quota,
            price=price,
            luck=summarize_results(self._alike(place), now=self.now, window=WINDOW),
        )

    def rank(self, pair: Pair) -> tuple[float, ...]:
        """Return a key that is smaller for earlier requests, by the rules of the search (reconcile/placement.py).

        Sorting is stable: equal pairs stay in the order of the catalogue.
        """
        taste = self.query.models.index(pair.provisioning) if self.query.has_taste else 0
        is_untested = pair.provisioning is Provisioning.FLEX_START and pair.model.yes is None
        worth = capacity_score(self._alike(pair.place), self.now)
        is_listed = self.query.zones is not None
        usd = pair.price.usd_per_chip_hour
        return (
            _ORDER.index(pair.standing),
            usd is None and not is_listed,
            pair.place in self.doubtful,
            taste,
            is_untested,
            *preference(usd, worth, is_listed=is_listed),
        )

    def _api(self, backend: Backend) -> ApiFacts:
        return self.facts.apis[backend]

    def _hardware(self, place: Place) -> SourcedAnswer:
        """Return whether the zone has the type at this API.

        A refusal outweighs a list: a zone can list a type and not serve it.
        """
        zone = place.zone
        logged = self._logged(NO_HARDWARE, (e for e in self.entries if (e.zone, e.backend) == (zone, place.backend)))
        if logged is not None and not logged.yes:
            return logged
        offers = self._api(place.backend).offers
        if not isinstance(offers, Unknown) and zone not in offers.silent:
            is_listed = self.query.type.name in offers.types.get(zone, ())
            return SourcedAnswer(yes=is_listed, source=FactSource.LIVE, as_of=_day(offers.read_at))
        if zone in self.generation.zones:
            return SourcedAnswer(yes=True, source=FactSource.TABLE, as_of=self.generation.zones_as_of)
        return SourcedAnswer(yes=None)

    def _model(self, place: Place) -> SourcedAnswer:
        zone, model = place.zone, place.provisioning
        logged = self._logged(NO_MODEL, (e for e in self.entries if e.place == place))
        if logged is not None or model is not Provisioning.FLEX_START:
            return logged or SourcedAnswer(yes=None)
        accepting, refusing = self.generation.flex_start_zones, self.generation.flex_start_refused
        as_of = accepting.get(zone) or refusing.get(zone)
        return (
            SourcedAnswer(yes=None)
            if as_of is None
            else SourcedAnswer(yes=zone in accepting, source=FactSource.TABLE, as_of=as_of)
        )

    def _logged(self, kinds: frozenset[str], entries: Iterable[HistoryEntry]) -> SourcedAnswer | None:
        """Return the log's last answer about a gate, or None where it has none that is recent."""
        for entry in reversed(list(entries)):
            if self.now - entry.at > _BELIEVED or not self._is_about_type(entry):
                continue
            as_of = _day(entry.at)
            if entry.outcome is Ending.REFUSED and entry.kind in kinds:
                return SourcedAnswer(yes=False, source=FactSource.LOG, as_of=as_of, because=entry.text)
            if entry.outcome in _ACCEPTED:
                return SourcedAnswer(yes=True, source=FactSource.LOG, as_of=as_of)
        return None

    def _is_about_type(self, entry: HistoryEntry) -> bool:
        """Return whether the request was for this type, or its result holds for all types of the generation."""
        kind = catalog.accelerator_type(entry.type)
        is_kin = kind is not None and kind.generation == self.generation.name
        return entry.type == self.query.type.name or (is_kin and entry.kind in OF_ALL_TYPES)

    def _alike(self, place: Place) -> tuple[HistoryEntry, ...]:
        """Return the earlier requests for this very type there."""
        return tuple(e for e in self.entries if e.type == self.query.type.name and e.place == place)

    def _price(self, zone: Zone, model: Provisioning) -> Price:
        """Return the billing catalogue's price; where it has none, the table's."""
        key, prices = (self.generation.name, zone.region, model), self.facts.prices
        live = None
        if not isinstance(prices, Unknown):
            live = next((r.usd for r in prices.rates if (r.generation, r.region, r.provisioning) == key), None)
        usd = live if live is not None else catalog.usd_per_chip_hour(*key)
        if usd is None:
            return Price(usd_per_chip_hour=None)
        is_too_dear = self.query.most_usd is not None and usd > self.query.most_usd
        if live is not None and isinstance(prices, Prices):
            as_of = _day(prices.read_at)
            return Price(usd_per_chip_hour=usd, source=FactSource.LIVE, as_of=as_of, is_too_dear=is_too_dear)
        as_of = self.generation.prices_as_of
        return Price(usd_per_chip_hour=usd, source=FactSource.TABLE, as_of=as_of, is_too_dear=is_too_dear)

    def reading(self, facts: Offers | Prices | Unknown, as_of: str) -> GateSource:
        """Return the source of live facts, or the table of this date where they are unknown."""
        if isinstance(facts, Unknown):
            return GateSource(source=FactSource.TABLE, as_of=as_of, unknown=facts)
        age = max(self.now - facts.read_at, 0.0)
        return GateSource(source=FactSource.LIVE, age=age, as_of=_day(facts.read_at), unknown=facts.stale)

    def readings(self, backend: Backend) -> Mapping[Gate, GateSource]:
        """Return the sources of the gates that each API answers for itself."""
        hardware = self.reading(self._api(backend).offers, self.generation.zones_as_of)
        return {Gate.HARDWARE: hardware, Gate.QUOTA: self._quota_reading(backend)}

    def _quota_reading(self, backend: Backend) -> GateSource:
        api = self._api(backend)
        if isinstance(api.limits, Unknown):
            return GateSource(source=FactSource.NONE, unknown=api.limits)
        if not self.quotas[backend].limits:
            metric, name = self.generation.apis[backend].quota_metric, self.generation.name
            because = f"Service Usage lists no quota of {name} at {BACKENDS[backend].api} by a name that is known."
            if metric:
                because = f"Service Usage names no metric like `{metric}`."
            unknown = Unknown(because=because, hint="See the console's page of quotas.")
            return GateSource(source=FactSource.NONE, unknown=unknown)
        return GateSource(source=FactSource.LIVE, age=0.0, unknown=api.uses if isinstance(api.uses, Unknown) else None)


def _day(moment: float) -> str:
    """Return the date in UTC, e.g. `2026-11-21`."""
    return datetime.fromtimestamp(moment, UTC).date().isoformat()
