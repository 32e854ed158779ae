"""`placement`: what a provisioning model needs, and orders of preference that name each choice once."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tpudeploy import catalog
from tpudeploy.config import codes
from tpudeploy.config.diagnose import did_you_mean, problem, quoted, warning
from tpudeploy.config.nodes import MapNode, Path, find
from tpudeploy.config.rules import look
from tpudeploy.config.scalars import Duration
from tpudeploy.domain.diagnostics import Diagnostic

_PROVISIONING: Path = ("placement", "provisioning")
_ZONES: Path = ("placement", "zones")
_RESERVATION: Path = ("placement", "reservation")
_RUN: Path = ("placement", "max_run_duration")
_LONGEST = Duration.parse("7d")


def flex_start(root: MapNode) -> Iterator[Diagnostic]:
    for path, model in look.texts(root, _PROVISIONING).items():
        if model == "flex-start" and find(root, _RUN) is None:
            at = look.at(root, path)
            hint = "add max_run_duration: 12h, or any time up to 7d"
            yield problem(codes.FLEX_WITHOUT_END, "flex-start needs max_run_duration", at, path=path, hint=hint)


def run_duration(root: MapNode) -> Iterator[Diagnostic]:
    written = look.value(root, _RUN, str)
    try:
        too_long = written is not None and Duration.parse(written) > _LONGEST
    except ValueError:  # the schema has said so, with the forms there are
        return
    if too_long:
        yield problem(
            codes.RUN_TOO_LONG, f"{written} is more than 7d", look.at(root, _RUN), path=_RUN, hint="at most 7d"
        )


def reserved(root: MapNode) -> Iterator[Diagnostic]:
    asked = [path for path, model in look.texts(root, _PROVISIONING).items() if model == "reserved"]
    if asked and find(root, _RESERVATION) is None:
        hint = "add reservation: projects/P/locations/ZONE/reservations/R"
        at = look.at(root, asked[0])
        yield problem(codes.RESERVED_ALONE, "reserved needs a reservation", at, path=asked[0], hint=hint)
    if not asked and find(root, _RESERVATION) is not None:
        at = look.at(root, _RESERVATION)
        hint = "add reserved to provisioning, or leave the reservation out"
        message = "Nothing takes from this reservation"
        yield problem(codes.RESERVATION_UNUSED, message, at, path=_RESERVATION, hint=hint)


def reservation_in_reach(root: MapNode) -> Iterator[Diagnostic]:
    """A list of zones that leaves out the reservation's zone can never be served from it."""
    zones = set(look.texts(root, _ZONES).values())
    match = re.search(r"/locations/([^/]+)/", look.value(root, _RESERVATION, str) or "")
    if zones and match and match[1] not in zones:
        message = f"The reservation stands in {quoted(match[1])}, which is not among the zones"
        at = look.at(root, _RESERVATION)
        yield problem(codes.RESERVATION_UNUSED, message, at, path=_RESERVATION, hint=f"add {match[1]} to zones")


def each_once(root: MapNode) -> Iterator[Diagnostic]:
    for section in (_PROVISIONING, _ZONES):
        first: dict[str, Path] = {}
        for path, word in look.texts(root, section).items():
            if word in first:
                also = look.at(root, first[word])
                message = f"{quoted(word)} stands twice in this order of preference"
                yield problem(codes.REPEATED, message, look.at(root, path), path=path, hint="keep one", also=also)
            first.setdefault(word, path)


def known_zones(root: MapNode) -> Iterator[Diagnostic]:
    slice_type = catalog.accelerator_type(look.value(root, ("tpu", "type"), str) or "")
    known = catalog.generation(slice_type.generation).zones if slice_type else ()
    written = look.texts(root, _ZONES)
    for path, zone in written.items():
        if slice_type and known and zone not in known:
            message = f"The catalogue knows no {slice_type.generation} in {quoted(zone)}"
            hint = did_you_mean(zone, (each for each in known if each not in written.values()))
            yield warning(codes.ZONE_UNKNOWN, message, look.at(root, path), path=path, hint=hint)
