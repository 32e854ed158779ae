"""The gates, over all pairs that the profile names: hardware, provisioning model, quota, price; and what is left."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.availability.doctor.case import Case, fail, ok, unknown, warn
from tpudeploy.domain.diagnosis import Finding
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.gates import Fill, Gate, Source, Standing

_SEE = "`tpudeploy zones PROFILE` shows each."


def hardware(case: Case) -> Iterator[Finding]:
    zones = {p.zone: p.hardware for p in case.zones.pairs}
    listing = sum(word.yes is True for word in zones.values())
    denied = sum(word.yes is False for word in zones.values())
    reading, type_ = case.zones.readings[Gate.HARDWARE], case.zones.type
    if denied == len(zones) and (zones or reading.source is Source.LIVE):
        where = f"No zone of {len(zones)}" if zones else "No zone"
        yield fail("hardware", f"{where} has {type_}.", _SEE)
    elif not listing:
        yield unknown(case, "hardware", reading.unknown or Unknown(because=f"Nobody knows where {type_} stands."))
    else:
        by = "" if reading.source is Source.LIVE else f", by the catalogue of {reading.as_of}"
        yield ok("hardware", f"{listing} of {len(zones)} zones list {type_}{by}.")


def model(case: Case) -> Iterator[Finding]:
    pairs = case.zones.pairs
    refused = sum(p.model.yes is False for p in pairs)
    if pairs and refused == len(pairs):
        yield fail("model", "No zone takes the provisioning models of the profile.", _SEE)
    elif refused:
        yield ok("model", f"{len(pairs) - refused} of {len(pairs)} pairs are not known to refuse their model.")
    elif pairs:
        yield ok("model", "No zone is known to refuse its provisioning model.")


def quota(case: Case) -> Iterator[Finding]:
    """A warning, never more: what a project may have is told wrongly often enough, and capacity is the real gate."""
    pairs = [p for p in case.zones.pairs if p.closed_by is None]
    room = sum(p.quota.fill is Fill.ENOUGH for p in pairs)
    known = sum(p.quota.fill is not Fill.UNKNOWN for p in pairs)
    reading = case.zones.readings[Gate.QUOTA]
    chips = f"{case.zones.chips} chip{'s' if case.zones.chips > 1 else ''}"
    hint = "Ask for more on the console's quota page of tpu.googleapis.com: a zone's and its region's limit both count."
    if not known:
        yield unknown(case, "quota", reading.unknown or Unknown(because="No limit is known for these zones."))
    elif not room:
        yield warn("quota", f"No pair has {chips} of quota left.", hint)
    elif room < known:
        yield ok("quota", f"{room} of {len(pairs)} pairs have {chips} of quota left.")
    else:
        yield ok("quota", "Every pair has quota left.")


def price(case: Case) -> Iterator[Finding]:
    pairs, most = case.zones.pairs, case.deployment.attributes.get("placement.max_price_per_chip_hour")
    dear = sum(p.price.is_too_dear for p in pairs)
    known = [p.price.usd_per_chip_hour for p in pairs if p.price.usd_per_chip_hour is not None]
    reading = case.zones.readings[Gate.PRICE]
    if pairs and dear == len(pairs):
        yield fail("price", f"Every pair costs more than ${most} a chip and hour.", "Raise the limit, or add zones.")
    elif not known:
        yield unknown(case, "price", reading.unknown or Unknown(because="No price is known for these pairs."))
    else:
        low, high = min(known), max(known)
        span = f"${low:.2f}" if low == high else f"${low:.2f} to ${high:.2f}"
        by = "" if reading.source is Source.LIVE else f", at list prices of {reading.as_of}"
        left_out = f"; {dear} of {len(pairs)} pairs are above ${most}" if dear else ""
        yield ok("price", f"{span} a chip and hour{by}{left_out}.")


def pairs(case: Case) -> Iterator[Finding]:
    every = case.zones.pairs
    open_ = [p for p in every if p.standing is not Standing.CLOSED]
    if not open_:
        yield fail("places", f"None of {len(every)} pairs of zone and provisioning model can be asked.", _SEE)
        return
    first = open_[0]
    message = f"{len(open_)} of {len(every)} pairs can be asked, {first.provisioning} in {first.zone} first."
    doubtful = first.standing is Standing.DOUBTFUL
    yield warn("places", message, "None of them has quota left.") if doubtful else ok("places", message)
