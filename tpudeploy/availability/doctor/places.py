"""The gates, over all pairs that the profile names: hardware, provisioning model, quota, price; and the pairs left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tpudeploy.availability.diagnosis import Finding
from tpudeploy.availability.doctor.case import DoctorInput, fail, ok, some_or_all, unknown, warn
from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.availability import FactSource, Fill, Gate, Pair, Standing
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.names import Zone
from tpudeploy.text import words

_SEE = "`tpudeploy zones PROFILE` shows each."


def _pairs_by_zone(case: DoctorInput) -> Mapping[Zone, list[Pair]]:
    pairs: dict[Zone, list[Pair]] = {}
    for pair in case.zones.pairs:
        pairs.setdefault(pair.zone, []).append(pair)
    return pairs


def _any_api(answers: list[bool | None]) -> bool | None:
    """Return whether one API has it; None where that is not known of any, and denied by none."""
    if any(answers):
        return True
    return None if None in answers else False


def hardware(case: DoctorInput) -> Iterator[Finding]:
    answers = [_any_api([p.hardware.yes for p in pairs]) for pairs in _pairs_by_zone(case).values()]
    listing = answers.count(True)
    readings, kind = [own[Gate.HARDWARE] for own in case.zones.readings_by_api.values()], case.zones.type
    reading = next((each for each in readings if each.source is FactSource.LIVE), readings[0])
    if all(yes is False for yes in answers) and (answers or reading.source is FactSource.LIVE):
        where = f"No zone of {len(answers)}" if answers else "No zone"
        yield fail("hardware", f"{where} has {kind}.", _SEE)
    elif not listing:
        yield unknown(case, "hardware", reading.unknown or Unknown(because=f"No source says which zones have {kind}."))
    else:
        by = "" if reading.source is FactSource.LIVE else f", by the catalogue of {reading.as_of}"
        yield ok("hardware", f"{listing} of {len(answers)} zones list {kind}{by}.")


def runtime(case: DoctorInput) -> Iterator[Finding]:
    """Check that the zones list the runtime version. A zone that lists none is one that the project cannot use."""
    runtimes = case.deployment.runtimes
    runtime_version = next((name for backend, name in runtimes.items() if BACKENDS[backend].lists_runtimes), "")
    listed = {zone: fact for zone, fact in case.facts.runtimes.items() if fact and not isinstance(fact, Unknown)}
    lacking = [str(zone) for zone, versions in listed.items() if runtime_version not in versions]
    reason = next((fact for fact in case.facts.runtimes.values() if isinstance(fact, Unknown)), None)
    if lacking:
        message = f"{words.some(lacking)} {'does' if len(lacking) == 1 else 'do'} not list {runtime_version}."
        hint = "Leave tpu.runtime_version out: each generation has a suitable default."
        yield some_or_all("runtime", lacking, len(listed), message, hint)
    elif listed:
        yield ok("runtime", f"{len(listed)} of {len(case.facts.runtimes)} zones list {runtime_version}.")
    elif reason:
        yield unknown(case, "runtime", reason)


def model(case: DoctorInput) -> Iterator[Finding]:
    pairs = case.zones.pairs
    refusing = sum(p.model.yes is False for p in pairs)
    if pairs and refusing == len(pairs):
        yield fail("model", "No zone takes the provisioning models of the profile.", _SEE)
    elif refusing:
        yield ok("model", f"{len(pairs) - refusing} of {len(pairs)} pairs are not known to refuse their model.")
    elif pairs:
        yield ok("model", "No zone is known to refuse its provisioning model.")


def quota(case: DoctorInput) -> Iterator[Finding]:
    """Check the quota of each API, and warn at most: Google's figures are often wrong, and capacity decides."""
    for backend in case.zones.readings_by_api:
        yield from _quota_of(case, backend)


def _quota_of(case: DoctorInput, backend: Backend) -> Iterator[Finding]:
    fills = [p.quota.fill for p in case.zones.pairs if p.closed_by is None and p.backend is backend]
    enough, reported = fills.count(Fill.ENOUGH), len(fills) - fills.count(Fill.UNKNOWN)
    reading = case.zones.readings_by_api[backend][Gate.QUOTA]
    chips = f"{case.zones.chips} chip{'s' if case.zones.chips > 1 else ''}"
    where = f" at {BACKENDS[backend].api}" if len(case.zones.readings_by_api) > 1 else ""
    if not reported:
        because = f"No limit is known for these zones{where}."
        yield unknown(case, "quota", reading.unknown or Unknown(because=because))
    elif not enough:
        yield warn("quota", f"No pair has {chips} of quota left{where}.", BACKENDS[backend].quota_advice)
    elif enough < reported:
        yield ok("quota", f"{enough} of {len(fills)} pairs have {chips} of quota left{where}.")
    else:
        yield ok("quota", f"Every pair has quota left{where}.")


def price(case: DoctorInput) -> Iterator[Finding]:
    pairs, most = case.zones.pairs, case.deployment.attributes.get("placement.max_price_per_chip_hour")
    dear = sum(p.price.is_too_dear for p in pairs)
    prices = [p.price.usd_per_chip_hour for p in pairs if p.price.usd_per_chip_hour is not None]
    reading = case.zones.readings[Gate.PRICE]
    if pairs and dear == len(pairs):
        yield fail("price", f"Every pair costs more than ${most} a chip and hour.", "Raise the limit, or add zones.")
    elif not prices:
        yield unknown(case, "price", reading.unknown or Unknown(because="No price is known for these pairs."))
    else:
        low, high = min(prices), max(prices)
        span = f"${low:.2f}" if low == high else f"${low:.2f} to ${high:.2f}"
        by = "" if reading.source is FactSource.LIVE else f", at list prices of {reading.as_of}"
        excluded = f"; {dear} of {len(pairs)} pairs are above ${most}" if dear else ""
        yield ok("price", f"{span} a chip and hour{by}{excluded}.")


def pairs(case: DoctorInput) -> Iterator[Finding]:
    every = case.zones.pairs
    possible = [p for p in every if p.standing is not Standing.CLOSED]
    if not possible:
        yield fail("places", f"None of {len(every)} pairs of zone and provisioning model can be requested.", _SEE)
        return
    first = possible[0]
    where = first.zone if len({p.backend for p in every}) == 1 else f"{first.zone} ({first.backend})"
    message = f"{len(possible)} of {len(every)} pairs can be requested, {first.provisioning} in {where} first."
    doubtful = first.standing is Standing.DOUBTFUL
    yield warn("places", message, "None of them has quota left.") if doubtful else ok("places", message)
