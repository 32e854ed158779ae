"""Facts → pairs: each gate judged by itself, and the pairs in the order in which one would ask them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from tpudeploy import catalog
from tpudeploy.domain.accelerator import AcceleratorType, Generation
from tpudeploy.domain.deployment import Deployment, Provisioning
from tpudeploy.domain.facts import POOLS, Facts, Offers, Prices, Unknown
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.gates import Fill, Gate, Pair, Price, Reading, Source, Standing, Word, Zones
from tpudeploy.domain.history import Ending, HistoryEntry
from tpudeploy.domain.names import Zone
from tpudeploy.planning.quota import Book
from tpudeploy.reconcile.luck import luck, places_of_failed_landings, preference, score

_DAY = 86400.0
WINDOW = 14 * _DAY
# How long a learned "not here" is believed: Google opens zones and models, rarely.
_BELIEVED = 30 * _DAY
# Kinds of refusal (adapters/google/verdicts.py) that speak of the place, and not of a moment's capacity.
NO_MODEL = frozenset({"model-unsupported", "queue-closed", "reservation-missing"})
NO_HARDWARE = frozenset({"zone-unsupported", "type-unsupported", "location-denied", "no-queueing", "too-big"})
# Those that speak of every type of the generation; the others of the type that was asked for.
OF_ALL_TYPES = frozenset({"zone-unsupported", "location-denied", "model-unsupported"})
_TAKEN = {Ending.GRANTED, Ending.LAPSED, Ending.STUCK}  # the request was let in, whatever became of it
_USUAL = (Provisioning.FLEX_START, Provisioning.SPOT, Provisioning.ON_DEMAND)
_ORDER = tuple(Standing)


@frozen
class Wanted:
    """What is asked about. `zones` None: wherever it stands. `models` in order of preference where `has_taste`.

    `reserved` is the zone of the reservation, the only one where `reserved` can be asked.
    """

    type: AcceleratorType
    profile: str = ""
    zones: tuple[Zone, ...] | None = None
    reserved: Zone | None = None
    models: tuple[Provisioning, ...] = _USUAL
    most_usd: float | None = None
    has_taste: bool = False

    @classmethod
    def of(cls, deployment: Deployment, kind: AcceleratorType | None = None) -> Wanted:
        """What a profile names, too dear or not; of another slice type, where one is given."""
        written = deployment.attributes
        zones, models = written.get("placement.zones"), written.get("placement.provisioning")
        most, reservation = written.get("placement.max_price_per_chip_hour"), deployment.reservation
        return cls(
            type=kind or deployment.accelerator,
            profile=deployment.name,
            zones=tuple(Zone(str(z)) for z in zones) if isinstance(zones, list) else None,
            reserved=Zone(reservation.split("/")[3]) if reservation is not None else None,
            models=tuple(Provisioning(str(m)) for m in models) if isinstance(models, list) else _USUAL,
            most_usd=float(most) if isinstance(most, int | float) else None,
            has_taste=True,
        )


def zones(
    wanted: Wanted, facts: Facts, history: tuple[HistoryEntry, ...] | Unknown, *, project: str | None, now: float
) -> Zones:
    """Every pair that is asked about, what one would ask first on top."""
    tries = () if isinstance(history, Unknown) else history
    generation = catalog.generation(wanted.type.generation)
    book = Book.of(facts, generation.name)
    doubtful = places_of_failed_landings(tries, wanted.type.name, now)
    judge = _Judge(wanted=wanted, facts=facts, book=book, tries=tries, doubtful=doubtful, now=now)
    return Zones(
        profile=wanted.profile,
        project=project,
        type=wanted.type.name,
        chips=wanted.type.chips,
        window=WINDOW,
        pairs=tuple(sorted(judge.pairs(), key=judge.rank)),
        readings=_readings(facts, book, history, generation, now),
    )


@frozen
class _Judge:
    wanted: Wanted
    facts: Facts
    book: Book
    tries: tuple[HistoryEntry, ...]
    doubtful: frozenset[tuple[Zone, Provisioning]]
    now: float

    @property
    def generation(self) -> Generation:
        return catalog.generation(self.wanted.type.generation)

    def pairs(self) -> Iterator[Pair]:
        places = self.places()
        for model in self.wanted.models:
            only = self.wanted.reserved if model is Provisioning.RESERVED else None
            for zone in places if only is None else (only,):
                yield self.pair(zone, model)

    def places(self) -> tuple[Zone, ...]:
        """The zones that are named, or those that list the type; in the catalogue's order, then by name."""
        if self.wanted.zones is not None:
            return self.wanted.zones
        known = tuple(map(Zone, self.generation.zones))
        offers = self.facts.offers
        if isinstance(offers, Unknown):
            return known
        listed = {zone for zone, types in offers.types.items() if self.wanted.type.name in types}
        listed |= {zone for zone in known if zone in offers.silent}
        return (*(z for z in known if z in listed), *sorted(listed - set(known)))

    def pair(self, zone: Zone, model: Provisioning) -> Pair:
        hardware, takes = self.hardware(zone), self.model(zone, model)
        quota = self.book.quota(zone, POOLS[model], chips=self.wanted.type.chips)
        price = self.price(zone, model)
        answers = {Gate.HARDWARE: hardware.yes, Gate.MODEL: takes.yes, Gate.PRICE: not price.is_too_dear}
        closed_by = next((gate for gate, answer in answers.items() if answer is False), None)
        is_doubtful = quota.fill in {Fill.NONE, Fill.SHORT}
        return Pair(
            zone=zone,
            provisioning=model,
            standing=Standing.CLOSED if closed_by else Standing.DOUBTFUL if is_doubtful else Standing.OPEN,
            closed_by=closed_by,
            hardware=hardware,
            model=takes,
            quota=quota,
            price=price,
            luck=luck(self.alike(zone, model), now=self.now, window=WINDOW),
        )

    def rank(self, pair: Pair) -> tuple[float, ...]:
        """Smaller is asked earlier, by the rules of the search (reconcile/placement.py). Sorting is stable: equal pairs
        stay in the order of the catalogue.
        """
        taste = self.wanted.models.index(pair.provisioning) if self.wanted.has_taste else 0
        unheard_of = pair.provisioning is Provisioning.FLEX_START and pair.model.yes is None
        worth = score(self.alike(pair.zone, pair.provisioning), self.now)
        is_listed = self.wanted.zones is not None
        return (
            _ORDER.index(pair.standing),
            (pair.zone, pair.provisioning) in self.doubtful,
            taste,
            unheard_of,
            *preference(pair.price.usd_per_chip_hour, worth, is_listed=is_listed),
        )

    def hardware(self, zone: Zone) -> Word:
        """What asking came to outweighs what is listed: a zone can list a type and not serve it."""
        learned = self.learned(NO_HARDWARE, (t for t in self.tries if t.zone == zone))
        if learned is not None and not learned.yes:
            return learned
        offers = self.facts.offers
        if isinstance(offers, Unknown) or zone in offers.silent:
            is_known = zone in self.generation.zones
            return (
                Word(yes=True, source=Source.TABLE, as_of=self.generation.zones_as_of) if is_known else Word(yes=None)
            )
        is_listed = self.wanted.type.name in offers.types.get(zone, ())
        return Word(yes=is_listed, source=Source.LIVE, as_of=_day(offers.read_at))

    def model(self, zone: Zone, model: Provisioning) -> Word:
        of_pair = (t for t in self.tries if (t.zone, t.provisioning) == (zone, model))
        learned = self.learned(NO_MODEL, of_pair)
        if learned is not None:
            return learned
        if model is Provisioning.FLEX_START:
            taken, refused = self.generation.flex_start_zones, self.generation.flex_start_refused
            if zone in taken or zone in refused:
                as_of = taken.get(zone) or refused[zone]
                return Word(yes=zone in taken, source=Source.TABLE, as_of=as_of)
        return Word(yes=None)

    def learned(self, kinds: frozenset[str], tries: Iterable[HistoryEntry]) -> Word | None:
        """The last word of the log on a gate, or None where it has none that is recent."""
        for tried in reversed(list(tries)):
            if self.now - tried.at > _BELIEVED or not self.speaks_of_ours(tried):
                continue
            as_of = _day(tried.at)
            if tried.outcome is Ending.REFUSED and tried.kind in kinds:
                return Word(yes=False, source=Source.LOG, as_of=as_of, because=tried.text)
            if tried.outcome in _TAKEN:
                return Word(yes=True, source=Source.LOG, as_of=as_of)
        return None

    def speaks_of_ours(self, tried: HistoryEntry) -> bool:
        """Whether it was asked for this type, or came to something that holds for all of its generation."""
        kind = catalog.accelerator_type(tried.type)
        is_kin = kind is not None and kind.generation == self.generation.name
        return tried.type == self.wanted.type.name or (is_kin and tried.kind in OF_ALL_TYPES)

    def alike(self, zone: Zone, model: Provisioning) -> tuple[HistoryEntry, ...]:
        """What asking for this very type came to there."""
        wanted = (zone, model, self.wanted.type.name)
        return tuple(t for t in self.tries if (t.zone, t.provisioning, t.type) == wanted)

    def price(self, zone: Zone, model: Provisioning) -> Price:
        """The billing catalogue's; where it has none, the table's."""
        about, prices = (self.generation.name, zone.region, model), self.facts.prices
        rates = () if isinstance(prices, Unknown) else prices.rates
        live = next((r.usd for r in rates if (r.generation, r.region, r.provisioning) == about), None)
        listed = catalog.usd_per_chip_hour(*about)
        usd = live if live is not None else listed
        if usd is None:
            return Price(usd_per_chip_hour=None)
        most = self.wanted.most_usd
        is_live = live is not None and not isinstance(prices, Unknown)
        return Price(
            usd_per_chip_hour=usd,
            source=Source.LIVE if is_live else Source.TABLE,
            as_of=_day(prices.read_at) if isinstance(prices, Prices) and is_live else self.generation.prices_as_of,
            is_too_dear=most is not None and usd > most,
        )


def _readings(
    facts: Facts, book: Book, history: tuple[HistoryEntry, ...] | Unknown, generation: Generation, now: float
) -> dict[Gate, Reading]:
    log = Reading(source=Source.LOG)
    return {
        Gate.HARDWARE: _kept(facts.offers, generation.zones_as_of, now),
        Gate.MODEL: Reading(source=Source.TABLE, as_of=max(generation.flex_start_zones.values(), default="")),
        Gate.QUOTA: _of_quota(facts, book, generation),
        Gate.PRICE: _kept(facts.prices, generation.prices_as_of, now),
        Gate.LUCK: replace(log, source=Source.NONE, unknown=history) if isinstance(history, Unknown) else log,
    }


def _of_quota(facts: Facts, book: Book, generation: Generation) -> Reading:
    if isinstance(facts.limits, Unknown):
        return Reading(source=Source.NONE, unknown=facts.limits)
    if not book.limits:
        because = f"Service Usage names no metric like `{generation.quota}`."
        return Reading(source=Source.NONE, unknown=Unknown(because=because, hint="See the console's page of quotas."))
    unknown = facts.uses if isinstance(facts.uses, Unknown) else None
    return Reading(source=Source.LIVE, age=0.0, unknown=unknown)


def _kept(of: Offers | Prices | Unknown, as_of: str, now: float) -> Reading:
    if isinstance(of, Unknown):
        return Reading(source=Source.TABLE, as_of=as_of, unknown=of)
    return Reading(source=Source.LIVE, age=max(now - of.read_at, 0.0), as_of=_day(of.read_at), unknown=of.stale)


def _day(moment: float) -> str:
    """`2026-11-21`, in UTC."""
    return datetime.fromtimestamp(moment, UTC).date().isoformat()
