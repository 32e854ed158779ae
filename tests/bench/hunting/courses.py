"""What becomes of a request: a course of states with their times, known as soon as it is asked for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from bench.hunting.setting import ANSWER, LATE, SUSPENDING, Refusals
from bench.hunting.worlds import Place, Window

from tpudeploy.adapters.google.verdicts import classify
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import Refusal
from tpudeploy.emulator import texts

REFUSED = "REFUSED"
GONE = "GONE"


@dataclass(frozen=True, slots=True)
class Turn:
    """What a request is from `at` on, and what Google says to it."""

    at: float
    state: str
    refusal: Refusal | None = None


def course(place: Place, model: Provisioning, refusals: Refusals, at: float, lapses: float) -> Iterator[Turn]:
    """Of a request made at `at` that lapses at `lapses` if nothing was granted. It starts out CREATING."""
    if model not in place.offers:
        yield Turn(at + ANSWER, REFUSED, refusal_of("model-unsupported", place.zone, model))
    elif fails_fast(model, refusals):
        answered = at + ANSWER
        window = place.grant(model, answered)
        if window is None or window.opens > answered:
            yield Turn(answered, REFUSED, refusal_of("stockout", place.zone, model))
        else:
            yield from _granted(place, window, model, answered)
    else:
        yield from _waiting(place, model, refusals, at, lapses)


def fails_fast(model: Provisioning, refusals: Refusals) -> bool:
    return refusals is Refusals.FAST or (refusals is Refusals.MIXED and model is Provisioning.SPOT)


@cache
def refusal_of(cause: str, zone: Zone, model: Provisioning) -> Refusal:
    """Google's words for it, as our table reads them."""
    facts = {
        "zone": zone,
        "region": zone.region,
        "model": model.upper().replace("-", "_"),
        "type": "v6e-8",
        "quota": "TPUV6EPreemptiblePerProjectPerRegionForTPUAPI",
        "limit": "some",
    }
    status = texts.status(cause, facts)
    return classify(status.message, status.code)


def _waiting(place: Place, model: Provisioning, refusals: Refusals, at: float, lapses: float) -> Iterator[Turn]:
    yield Turn(at, "WAITING_FOR_RESOURCES")
    ends, cause = lapses, "expired"
    if refusals is Refusals.LATE and model is Provisioning.SPOT and at + LATE < lapses:
        ends, cause = at + LATE, "stockout"
    window = place.grant(model, at)
    granted = ends if window is None else max(window.opens, at)
    if window is None or granted >= ends:
        yield Turn(ends, "FAILED", refusal_of(cause, place.zone, model))
    else:
        yield from _granted(place, window, model, granted)


def _granted(place: Place, window: Window, model: Provisioning, at: float) -> Iterator[Turn]:
    yield Turn(at, "PROVISIONING")
    lands, ends = at + window.provisioning, window.ends_at(model, at)
    if window.internal and lands <= ends:
        yield Turn(lands, "SUSPENDING")
        yield Turn(lands + SUSPENDING, "FAILED", refusal_of("internal-error", place.zone, model))
        return
    if lands <= ends:
        yield Turn(lands, "ACTIVE")
    if ends < math.inf:
        yield Turn(ends, "SUSPENDING")
        yield Turn(ends + SUSPENDING, "SUSPENDED")
