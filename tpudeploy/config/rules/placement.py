"""Check `placement`: what a provisioning model needs, supported values, and lists that name each choice once."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tpudeploy import catalog
from tpudeploy.catalog.backends import BACKENDS, BackendFacts, Durations
from tpudeploy.config import codes
from tpudeploy.config.diagnose import did_you_mean, quoted
from tpudeploy.config.nodes import Path
from tpudeploy.config.rules.violation import Violation, is_set
from tpudeploy.config.scalars import Duration
from tpudeploy.config.schema import ProfileSpec
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import AUTO

_PROVISIONING: Path = ("placement", "provisioning")
_ZONES: Path = ("placement", "zones")
_RESERVATION: Path = ("placement", "reservation")
_RUN: Path = ("placement", "max_run_duration")
_ENDS: tuple[Path, ...] = (_RUN, ("lifecycle", "end"), ("lifecycle", "hours"))
_BACKEND: Path = ("placement", "backend")
_VALID_UNTIL: Path = ("placement", "valid_until")
_LONGEST = Duration.parse("7d")
_SHORTEST_REQUEST = Duration.parse("1m")


def flex_start(profile: ProfileSpec) -> Iterator[Violation]:
    for i, model in enumerate(profile.placement.provisioning):
        if model == "flex-start" and not is_set(profile, _RUN):
            hint = "add max_run_duration: 12h, or any time up to 7d"
            yield Violation(codes.FLEX_WITHOUT_END, (*_PROVISIONING, i), "flex-start needs max_run_duration", hint)


def budget_with_end(profile: ProfileSpec) -> Iterator[Violation]:
    """Check that a deployment with a budget has an end."""
    if profile.budget.model_fields_set and not any(is_set(profile, end) for end in _ENDS):
        hint = "add lifecycle: {end: 24h}; lifecycle.hours or placement.max_run_duration do, too"
        yield Violation(codes.BUDGET_WITHOUT_END, ("budget",), "A budget needs an end", hint)


def run_duration(profile: ProfileSpec) -> Iterator[Violation]:
    duration = profile.placement.max_run_duration
    if duration is not None and duration > _LONGEST:
        yield Violation(codes.RUN_TOO_LONG, _RUN, f"{duration.text} is more than 7d", "at most 7d")


def shortest_wait(profile: ProfileSpec) -> Iterator[Violation]:
    """Report a request that would lapse before Google answers it: an operation takes about half a minute."""
    wait = profile.placement.valid_until
    if wait is not None and wait < _SHORTEST_REQUEST:
        message = f"{wait.text} is less than {_SHORTEST_REQUEST.text}: a request would lapse before Google answers it"
        hint = "write 15m or more; a request that waits costs nothing"
        yield Violation(codes.WAIT_OUT_OF_RANGE, _VALID_UNTIL, message, hint)


def backend_serves(profile: ProfileSpec) -> Iterator[Violation]:
    """Check that the backend creates slices of this type; else the error names one that does."""
    slice_type, backend = catalog.accelerator_type(profile.tpu.type), profile.placement.backend
    # Another rule reports an unknown type, and `auto` requests where the type is served.
    if slice_type is None or backend == AUTO or backend in slice_type.backends:
        return
    is_size = backend in catalog.generation(slice_type.generation).backends
    message = f"{backend} does not serve {slice_type.name if is_size else slice_type.generation}"
    hint = f"write placement.backend: {slice_type.backends[0]}"
    # The default is written nowhere: the type is then the place to look at.
    path: Path = _BACKEND if is_set(profile, _BACKEND) else ("tpu", "type")
    yield Violation(codes.BACKEND_UNSERVED, path, message, hint)


def backends(profile: ProfileSpec) -> tuple[Backend, ...]:
    """Return the backends that the profile requests from."""
    if profile.placement.backend != AUTO:
        return (Backend(profile.placement.backend),)
    slice_type = catalog.accelerator_type(profile.tpu.type)
    return tuple(Backend) if slice_type is None else slice_type.backends


def durations(profile: ProfileSpec) -> Iterator[Violation]:
    """Check the durations that an API limits more narrowly than the profile's own rules."""
    for row in map(BACKENDS.__getitem__, backends(profile)):
        if row.durations is not None:
            yield from _durations(profile, row, row.durations)


def _durations(profile: ProfileSpec, row: BackendFacts, limits: Durations) -> Iterator[Violation]:
    is_flex = "flex-start" in profile.placement.provisioning
    run, wait = profile.placement.max_run_duration, profile.placement.valid_until
    shortest = Duration.parse(limits.shortest_flex_run if is_flex else limits.shortest_run)
    if run is not None and run < shortest:
        model = "flex-start" if is_flex else row.forms[0]
        message = f"{run.text} is less than {shortest.text}, the shortest run of {model} at {row.api}"
        yield Violation(codes.RUN_TOO_SHORT, _RUN, message, _longer_or_elsewhere(profile, shortest))
    # The other models answer at once, so their requests do not wait.
    if not is_flex or wait is None:
        return
    shortest_wait, longest = Duration.parse(limits.shortest_wait), Duration.parse(limits.longest_wait)
    if _SHORTEST_REQUEST <= wait < shortest_wait:
        message = f"{wait.text} is less than {shortest_wait.text}, the shortest wait of flex-start at {row.api}"
        yield Violation(codes.WAIT_OUT_OF_RANGE, _VALID_UNTIL, message, _longer_or_elsewhere(profile, shortest_wait))
    elif wait > longest:
        message = f"{row.api} keeps a flex-start request for at most {longest.text}, not for {wait.text}"
        hint = f"each request waits for {longest.text}, and is sent again after it lapses"
        yield Violation(codes.WAIT_OUT_OF_RANGE, _VALID_UNTIL, message, hint, is_warning=True)


def _longer_or_elsewhere(profile: ProfileSpec, least: Duration) -> str:
    """Return the hint about a duration that is too short for one API."""
    unlimited = next((backend for backend, row in BACKENDS.items() if row.durations is None), None)
    if unlimited is not None and profile.placement.backend == AUTO:
        return f"at least {least.text}, or backend: {unlimited}"
    return f"at least {least.text}"


def reserved(profile: ProfileSpec) -> Iterator[Violation]:
    models, has_reservation = profile.placement.provisioning, is_set(profile, _RESERVATION)
    if "reserved" in models and not has_reservation:
        path = (*_PROVISIONING, models.index("reserved"))
        hint = "add reservation: projects/P/locations/ZONE/reservations/R"
        yield Violation(codes.RESERVED_ALONE, path, "reserved needs a reservation", hint)
    if "reserved" not in models and has_reservation:
        hint = "add reserved to provisioning, or leave the reservation out"
        yield Violation(codes.RESERVATION_UNUSED, _RESERVATION, "This reservation is not used", hint)


def reservation_in_reach(profile: ProfileSpec) -> Iterator[Violation]:
    """Report a list of zones without the reservation's own zone, from which it cannot be used."""
    zones = _zones(profile)
    match = re.search(r"/locations/([^/]+)/", profile.placement.reservation or "")
    if zones and match and match[1] not in zones:
        message = f"The reservation is in {quoted(match[1])}, which is not one of the zones"
        yield Violation(codes.RESERVATION_UNUSED, _RESERVATION, message, f"add {match[1]} to zones")


def each_once(profile: ProfileSpec) -> Iterator[Violation]:
    for path, words in ((_PROVISIONING, profile.placement.provisioning), (_ZONES, _zones(profile))):
        for i, word in enumerate(words):
            if word in words[:i]:
                message = f"{quoted(word)} is listed twice in this order of preference"
                also = (*path, words.index(word))
                yield Violation(codes.REPEATED, (*path, i), message, "keep one", also=also)


def known_zones(profile: ProfileSpec) -> Iterator[Violation]:
    slice_type = catalog.accelerator_type(profile.tpu.type)
    zones = catalog.generation(slice_type.generation).zones if slice_type else ()
    listed = _zones(profile)
    for i, zone in enumerate(listed):
        if slice_type and zones and zone not in zones:
            message = f"The catalogue lists no {slice_type.generation} in {quoted(zone)}"
            hint = did_you_mean(zone, (each for each in zones if each not in listed))
            yield Violation(codes.ZONE_UNKNOWN, (*_ZONES, i), message, hint, is_warning=True)


def _zones(profile: ProfileSpec) -> tuple[str, ...]:
    """Return the zones that the profile lists, none for `any`."""
    zones = profile.placement.zones
    return () if isinstance(zones, str) else zones
