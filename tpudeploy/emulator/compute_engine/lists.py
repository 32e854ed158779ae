"""Lists of Compute Engine: filters, pages, and lists over all zones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tpudeploy.emulator import listings, wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.wire import ApiCall, page

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


def _filter(call: ApiCall) -> Callable[[Row], bool]:
    """Return the test of the call's filter: terms that must all hold. Raise ApiError for another kind of filter."""
    text = call.query.get("filter", "")
    terms = list(_TERM.finditer(text))
    if _TERM.sub("", text).replace("AND", "").strip(" ()"):
        raise wire.refuse(3, "Invalid value for field 'filter': Invalid list filter expression.")  # UNVERIFIED
    tests = [(term["path"].split("."), _TESTS[term["how"].strip()], term["value"].strip("\"'")) for term in terms]
    return lambda row: all(fits(_text_at(row, path), value) for path, fits, value in tests)


def listed(call: ApiCall, kind: str, items: Sequence[Row]) -> dict[str, Any]:
    """Return a page of the items that fit the filter of the call; Compute Engine leaves out an empty `items`."""
    fitting = list(filter(_filter(call), items))
    body = page(call, "items", fitting, dict, most=_MOST, usual=_MOST)
    return {"kind": kind, **(body if fitting else {})}


def aggregated(
    cloud: Cloud, call: ApiCall, kind: str, key: str, rows: Sequence[tuple[str, Row]], *, scope: str = "zones"
) -> dict[str, Any]:
    """Return a page of those that fit the filter, over all zones. `rows` are pairs of zone and resource.

    With the scope `regions`, they are pairs of region and resource.

    A zone that does not answer fails the whole call, unless the call takes a partial answer. Which of two forms then
    names the zone is UNVERIFIED: a draw decides.
    """
    answers = _answers_by_place(cloud, call, in_regions=scope == "regions")
    if not all(answers.values()) and not call.flag("returnPartialSuccess"):
        raise wire.refuse(14, "The service is currently unavailable.")  # UNVERIFIED
    body = _page_of_rows(call, [(place, resource) for place, resource in rows if answers.get(place)])
    resources: dict[str, list[Row]] = {place: [] for place in answers}
    for each in body.pop("rows"):
        place, resource = each["row"]
        resources[place].append(resource)
    is_named = {place: cloud.scenario.draw("unreachable", place) < 1 / 2 for place in answers if not answers[place]}
    unreachable = [f"projects/{call.project}/{scope}/{place}" for place, is_in_list in is_named.items() if is_in_list]
    items: dict[str, Any] = {}
    for place, some in resources.items():
        name = f"{scope}/{place}"
        if some:
            items[name] = {key: some}
        elif not is_named.get(place):
            items[name] = _empty(name, is_silent=not answers[place])
    return {"kind": kind, "items": items, **body, **({"unreachables": unreachable} if unreachable else {})}


def _page_of_rows(call: ApiCall, rows: Sequence[tuple[str, Row]]) -> dict[str, Any]:
    """Return a page of the rows whose resource fits the filter of the call."""
    fits = _filter(call)
    fitting = [(place, resource) for place, resource in rows if fits(resource)]
    return page(call, "rows", fitting, lambda row: {"row": row}, most=_MOST, usual=_MOST)


def _answers_by_place(cloud: Cloud, call: ApiCall, *, in_regions: bool) -> dict[str, bool]:
    """Return for each zone, or each region, whether it answers: a region does while one of its zones does."""
    silent = listings.silent_zones(cloud, call)
    answers: dict[str, bool] = {}
    for zone in listings.zones(cloud):
        place = zone.rpartition("-")[0] if in_regions else zone
        answers[place] = answers.get(place, False) or zone not in silent
    return answers


def _empty(scope: str, *, is_silent: bool) -> dict[str, Any]:
    """Return the entry of a list for a scope without a resource."""
    if is_silent:
        return _warning(scope, "UNREACHABLE", f"{scope} is unreachable.")
    return _warning(scope, "NO_RESULTS_ON_PAGE", f"There are no results for scope '{scope}' on this page.")


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
