"""Lists of Compute Engine: filters, pages, and lists over all zones."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tpudeploy.emulator import listings, wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.wire import Call, page

Row: TypeAlias = Mapping[str, Any]
_MOST = 500  # Compute Engine's largest page, and its default
_TERM = re.compile(r"(?P<path>[\w.-]+?)(?P<how>\s*(?:!=|=|:)\s*|\s+(?:eq|ne)\s+)(?P<value>\"[^\"]*\"|'[^']*'|[^\s()]+)")
_TESTS: Mapping[str, Callable[[str | None, str], bool]] = {
    "=": lambda actual, value: actual == value,
    "!=": lambda actual, value: actual != value,
    ":": lambda actual, value: actual is not None and (value == "*" or value in actual),
    "eq": lambda actual, value: actual is not None and re.fullmatch(value, actual) is not None,
    "ne": lambda actual, value: actual is None or re.fullmatch(value, actual) is None,
}


def _filter(call: Call) -> Callable[[Row], bool]:
    """Return the test of the call's filter: terms that must all hold. Raise Refusal for another kind of filter."""
    text = call.query.get("filter", "")
    terms = list(_TERM.finditer(text))
    if _TERM.sub("", text).replace("AND", "").strip(" ()"):
        raise wire.refuse(3, "Invalid value for field 'filter': Invalid list filter expression.")  # UNVERIFIED
    tests = [(term["path"].split("."), _TESTS[term["how"].strip()], term["value"].strip("\"'")) for term in terms]
    return lambda row: all(fits(_text_at(row, path), value) for path, fits, value in tests)


def listed(call: Call, kind: str, items: Sequence[Row]) -> dict[str, Any]:
    """Return a page of the items that fit the filter of the call; Compute Engine leaves out an empty `items`."""
    fitting = list(filter(_filter(call), items))
    body = page(call, "items", fitting, dict, most=_MOST, usual=_MOST)
    return {"kind": kind, **(body if fitting else {})}


def aggregated(
    cloud: Cloud, call: Call, kind: str, key: str, rows: Sequence[tuple[str, Row]], *, scope: str = "zones"
) -> dict[str, Any]:
    """Return a page of those that fit the filter, over all zones. `rows` are pairs of zone and resource.

    With the scope `regions`, they are pairs of region and resource; a region answers while one of its zones does.

    A zone that does not answer fails the whole call, unless the call takes a partial answer. Which of two forms then
    names the zone is UNVERIFIED: a draw decides.
    """
    in_regions = scope == "regions"
    silent_zones, zones = listings.silent_zones(cloud, call), listings.zones(cloud)
    places = dict.fromkeys(_region(zone) if in_regions else zone for zone in zones)
    answering = {_region(zone) if in_regions else zone for zone in zones if zone not in silent_zones}
    silent = places.keys() - answering
    if silent and not call.flag("returnPartialSuccess"):
        raise wire.refuse(14, "The service is currently unavailable.")  # UNVERIFIED
    fits = _filter(call)
    fitting = [(zone, resource) for zone, resource in rows if zone not in silent and fits(resource)]
    body = page(call, "rows", fitting, lambda row: {"row": row}, most=_MOST, usual=_MOST)
    by_zone: dict[str, list[Row]] = defaultdict(list)
    for each in body.pop("rows"):
        zone, resource = each["row"]
        by_zone[zone].append(resource)
    items: dict[str, Any] = {}
    for zone in places:
        place = f"{scope}/{zone}"
        if zone in silent:
            if cloud.scenario.draw("unreachable", zone) < 1 / 2:
                body.setdefault("unreachables", []).append(f"projects/{call.project}/{place}")
            else:
                items[place] = _warning(place, "UNREACHABLE", f"{place} is unreachable.")
        elif by_zone[zone]:
            items[place] = {key: by_zone[zone]}
        else:
            empty = f"There are no results for scope '{place}' on this page."
            items[place] = _warning(place, "NO_RESULTS_ON_PAGE", empty)
    return {"kind": kind, "items": items, **body}


def _region(zone: str) -> str:
    return zone.rpartition("-")[0]


def _warning(scope: str, code: str, message: str) -> dict[str, Any]:
    return {"warning": {"code": code, "message": message, "data": [{"key": "scope", "value": scope}]}}


def _text_at(row: Any, path: Sequence[str]) -> str | None:
    """Return the text of a nested field, as a filter compares it; None for a missing one."""
    value = row
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)
