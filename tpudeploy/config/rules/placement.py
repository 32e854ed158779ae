"""Check `placement`: what a provisioning model needs, supported values, and lists that name each choice once."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tpudeploy import catalog
from tpudeploy.catalog.backends import BACKENDS, BackendFacts, Durations
from tpudeploy.config import codes
from tpudeploy.config.diagnose import did_you_mean, problem, quoted, warning
from tpudeploy.config.nodes import MapNode, Path, find
from tpudeploy.config.rules import look
from tpudeploy.config.scalars import Duration
from tpudeploy.domain.accelerator import DEFAULT_BACKEND, Backend
from tpudeploy.domain.deployment import AUTO
from tpudeploy.domain.diagnostics import Diagnostic

_PROVISIONING: Path = ("placement", "provisioning")
_ZONES: Path = ("placement", "zones")
_RESERVATION: Path = ("placement", "reservation")
_RUN: Path = ("placement", "max_run_duration")
_BUDGET: Path = ("budget",)
_ENDS: tuple[Path, ...] = (_RUN, ("lifecycle", "end"), ("lifecycle", "hours"))
_TYPE: Path = ("tpu", "type")
_BACKEND: Path = ("placement", "backend")
_VALID_UNTIL: Path = ("placement", "valid_until")
_LONGEST = Duration.parse("7d")
_SHORTEST_REQUEST = Duration.parse("1m")


def flex_start(root: MapNode) -> Iterator[Diagnostic]:
    for path, model in look.texts(root, _PROVISIONING).items():
        if model == "flex-start" and find(root, _RUN) is None:
            at = look.at(root, path)
            hint = "add max_run_duration: 12h, or any time up to 7d"
            yield problem(codes.FLEX_WITHOUT_END, "flex-start needs max_run_duration", at, path=path, hint=hint)


def budget_with_end(root: MapNode) -> Iterator[Diagnostic]:
    """Check that a deployment with a budget has an end."""
    if look.entries(root, _BUDGET) and not any(find(root, end) is not None for end in _ENDS):
        hint = "add lifecycle: {end: 24h}; lifecycle.hours or placement.max_run_duration do, too"
        yield problem(
            codes.BUDGET_WITHOUT_END, "A budget needs an end", look.at(root, _BUDGET), path=_BUDGET, hint=hint
        )


def run_duration(root: MapNode) -> Iterator[Diagnostic]:
    duration = _duration(root, _RUN)
    if duration is not None and duration > _LONGEST:
        message = f"{duration.text} is more than 7d"
        yield problem(codes.RUN_TOO_LONG, message, look.at(root, _RUN), path=_RUN, hint="at most 7d")


def shortest_wait(root: MapNode) -> Iterator[Diagnostic]:
    """Report a request that would lapse before Google answers it: an operation takes about half a minute."""
    wait = _duration(root, _VALID_UNTIL)
    if wait is not None and wait < _SHORTEST_REQUEST:
        message = f"{wait.text} is less than {_SHORTEST_REQUEST.text}: a request would lapse before Google answers it"
        at, hint = look.at(root, _VALID_UNTIL), "write 15m or more; a request that waits costs nothing"
        yield problem(codes.WAIT_OUT_OF_RANGE, message, at, path=_VALID_UNTIL, hint=hint)


def backend_serves(root: MapNode) -> Iterator[Diagnostic]:
    """Check that the backend creates slices of this type; else the error names one that does."""
    slice_type = catalog.accelerator_type(look.value(root, _TYPE, str) or "")
    backend = look.value(root, _BACKEND, str) or DEFAULT_BACKEND
    # Other rules report an unknown type and an unknown backend, and `auto` requests where the type is served.
    if slice_type is None or backend not in set(Backend):
        return
    if backend not in slice_type.backends:
        is_size = backend in catalog.generation(slice_type.generation).backends
        message = f"{backend} does not serve {slice_type.name if is_size else slice_type.generation}"
        hint = f"write placement.backend: {slice_type.backends[0]}"
        # The default is written nowhere: the type is then the place to look at.
        path = _TYPE if find(root, _BACKEND) is None else _BACKEND
        yield problem(codes.BACKEND_UNSERVED, message, look.at(root, path), path=path, hint=hint)


def backends(root: MapNode) -> tuple[Backend, ...]:
    """Return the backends that the profile requests from; the default for a value that another rule reports."""
    text = look.value(root, _BACKEND, str)
    slice_type = catalog.accelerator_type(look.value(root, _TYPE, str) or "")
    if text == AUTO:
        return tuple(Backend) if slice_type is None else slice_type.backends
    return (Backend(text) if text in set(Backend) else DEFAULT_BACKEND,)


def durations(root: MapNode) -> Iterator[Diagnostic]:
    """Check the durations that an API limits more narrowly than the profile's own rules."""
    for backend in backends(root):
        row = BACKENDS[backend]
        if row.durations is not None:
            yield from _durations(root, row, row.durations)


def _durations(root: MapNode, row: BackendFacts, limits: Durations) -> Iterator[Diagnostic]:
    is_flex = "flex-start" in look.texts(root, _PROVISIONING).values()
    run, wait = _duration(root, _RUN), _duration(root, _VALID_UNTIL)
    shortest = Duration.parse(limits.shortest_flex_run if is_flex else limits.shortest_run)
    if run is not None and run < shortest:
        model = "flex-start" if is_flex else row.forms[0]
        message = f"{run.text} is less than {shortest.text}, the shortest run of {model} at {row.api}"
        hint = _longer_or_elsewhere(root, shortest)
        yield problem(codes.RUN_TOO_SHORT, message, look.at(root, _RUN), path=_RUN, hint=hint)
    # The other models answer at once, so their requests do not wait.
    if not is_flex or wait is None:
        return
    at = look.at(root, _VALID_UNTIL)
    shortest_wait, longest = Duration.parse(limits.shortest_wait), Duration.parse(limits.longest_wait)
    if _SHORTEST_REQUEST <= wait < shortest_wait:
        message = f"{wait.text} is less than {shortest_wait.text}, the shortest wait of flex-start at {row.api}"
        hint = _longer_or_elsewhere(root, shortest_wait)
        yield problem(codes.WAIT_OUT_OF_RANGE, message, at, path=_VALID_UNTIL, hint=hint)
    elif wait > longest:
        message = f"{row.api} keeps a flex-start request for at most {longest.text}, not for {wait.text}"
        hint = f"each request waits for {longest.text}, and is sent again after it lapses"
        yield warning(codes.WAIT_OUT_OF_RANGE, message, at, path=_VALID_UNTIL, hint=hint)


def _longer_or_elsewhere(root: MapNode, least: Duration) -> str:
    """Return the hint about a duration that is too short for one API."""
    unlimited = next((backend for backend, row in BACKENDS.items() if row.durations is None), None)
    if unlimited is not None and look.value(root, _BACKEND, str) == AUTO:
        return f"at least {least.text}, or backend: {unlimited}"
    return f"at least {least.text}"


def _duration(root: MapNode, path: Path) -> Duration | None:
    """Return a duration of the profile, or None for one that is absent or that the schema reports."""
    text = look.value(root, path, str)
    try:
        return None if text is None else Duration.parse(text)
    except ValueError:
        return None


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
    slice_type = catalog.accelerator_type(look.value(root, _TYPE, str) or "")
    zones = catalog.generation(slice_type.generation).zones if slice_type else ()
    listed = look.texts(root, _ZONES)
    for path, zone in listed.items():
        if slice_type and zones and zone not in zones:
            message = f"The catalogue lists no {slice_type.generation} in {quoted(zone)}"
            hint = did_you_mean(zone, (each for each in zones if each not in listed.values()))
            yield warning(codes.ZONE_UNKNOWN, message, look.at(root, path), path=path, hint=hint)
