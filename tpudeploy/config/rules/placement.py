"""Check `placement`: what a provisioning model needs, supported values, and lists that name each choice once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tpudeploy import catalog
from tpudeploy.config import codes
from tpudeploy.config.diagnose import did_you_mean, problem, quoted, warning
from tpudeploy.config.nodes import MapNode, Path, ScalarNode, dotted, find
from tpudeploy.config.rules import look
from tpudeploy.config.scalars import Duration
from tpudeploy.domain.diagnostics import Diagnostic

_PROVISIONING: Path = ("placement", "provisioning")
_ZONES: Path = ("placement", "zones")
_RESERVATION: Path = ("placement", "reservation")
_RUN: Path = ("placement", "max_run_duration")
_LONGEST = Duration.parse("7d")
# Values of the format that this version refuses, because to ignore them would be worse.
_UNSUPPORTED: Mapping[Path, tuple[str, ...]] = {("placement", "backend"): ("gce-instance", "auto")}


def supported_values(root: MapNode) -> Iterator[Diagnostic]:
    for path in _UNSUPPORTED:
        node = find(root, path)
        if isinstance(node, ScalarNode) and not is_supported(path, node.value):
            message = f"{dotted(path)}: {node.text} is not supported yet"
            yield problem(codes.NOT_SUPPORTED, message, node.at, path=path, hint="leave it out, or write its default")


def is_supported(path: Path, value: object) -> bool:
    """Return whether this version supports a value that the format has."""
    return value not in _UNSUPPORTED.get(path, ())


def flex_start(root: MapNode) -> Iterator[Diagnostic]:
    for path, model in look.texts(root, _PROVISIONING).items():
        if model == "flex-start" and find(root, _RUN) is None:
            at = look.at(root, path)
            hint = "add max_run_duration: 12h, or any time up to 7d"
            yield problem(codes.FLEX_WITHOUT_END, "flex-start needs max_run_duration", at, path=path, hint=hint)


def run_duration(root: MapNode) -> Iterator[Diagnostic]:
    duration = look.value(root, _RUN, str)
    try:
        is_too_long = duration is not None and Duration.parse(duration) > _LONGEST
    except ValueError:  # the schema reports it, with the allowed forms
        return
    if is_too_long:
        yield problem(
            codes.RUN_TOO_LONG, f"{duration} is more than 7d", look.at(root, _RUN), path=_RUN, hint="at most 7d"
        )


def reserved(root: MapNode) -> Iterator[Diagnostic]:
    paths = [path for path, model in look.texts(root, _PROVISIONING).items() if model == "reserved"]
    if paths and find(root, _RESERVATION) is None:
        hint = "add reservation: projects/P/locations/ZONE/reservations/R"
        at = look.at(root, paths[0])
        yield problem(codes.RESERVED_ALONE, "reserved needs a reservation", at, path=paths[0], hint=hint)
    if not paths and find(root, _RESERVATION) is not None:
        at = look.at(root, _RESERVATION)
        hint = "add reserved to provisioning, or leave the reservation out"
        message = "This reservation is not used"
        yield problem(codes.RESERVATION_UNUSED, message, at, path=_RESERVATION, hint=hint)


def reservation_in_reach(root: MapNode) -> Iterator[Diagnostic]:
    """Report a list of zones without the reservation's own zone, from which it cannot be used."""
    zones = set(look.texts(root, _ZONES).values())
    match = re.search(r"/locations/([^/]+)/", look.value(root, _RESERVATION, str) or "")
    if zones and match and match[1] not in zones:
        message = f"The reservation is in {quoted(match[1])}, which is not one of the zones"
        at = look.at(root, _RESERVATION)
        yield problem(codes.RESERVATION_UNUSED, message, at, path=_RESERVATION, hint=f"add {match[1]} to zones")


def each_once(root: MapNode) -> Iterator[Diagnostic]:
    for section in (_PROVISIONING, _ZONES):
        first: dict[str, Path] = {}
        for path, word in look.texts(root, section).items():
            if word in first:
                also = look.at(root, first[word])
                message = f"{quoted(word)} is listed twice in this order of preference"
                yield problem(codes.REPEATED, message, look.at(root, path), path=path, hint="keep one", also=also)
            first.setdefault(word, path)


def known_zones(root: MapNode) -> Iterator[Diagnostic]:
    slice_type = catalog.accelerator_type(look.value(root, ("tpu", "type"), str) or "")
    zones = catalog.generation(slice_type.generation).zones if slice_type else ()
    listed = look.texts(root, _ZONES)
    for path, zone in listed.items():
        if slice_type and zones and zone not in zones:
            message = f"The catalogue lists no {slice_type.generation} in {quoted(zone)}"
            hint = did_you_mean(zone, (each for each in zones if each not in listed.values()))
            yield warning(codes.ZONE_UNKNOWN, message, look.at(root, path), path=path, hint=hint)
