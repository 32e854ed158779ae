"""Classification of Google's refusals: the text is matched against the table in refusals/, one row per cause."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tpudeploy.adapters.google.codes import TRANSIENT, Code
from tpudeploy.adapters.google.refusals import UNKNOWN, VERDICTS
from tpudeploy.adapters.google.refusals.row import RefusalRow
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.names import ZONE, Zone
from tpudeploy.domain.slices import Refusal, RefusalScope, Remedy

_EID = re.compile(r"\s*\[EID: 0x[0-9a-f]+\]", re.IGNORECASE)
_API = re.compile(r"apis/api/([a-z.-]+)/overview|\b((?!console\b|www\b)[a-z]+\.googleapis\.com)\b")
# Compute Engine's localized text of a full zone: `Consider trying your request in the Z, Y zone(s), which currently …`.
_HAS_CAPACITY = re.compile(r"trying your request in the (?P<zones>[a-z0-9, -]{1,400}?) zone\(s\)")
_ABSENT, _API_OFF = "not-found", "api-off"
_BY_CODE: Mapping[int, RefusalRow] = {row.code: row for row in VERDICTS if row.by_code and row.code is not None}

# `Limit: 0 in region R.`, `Limit 16 in zone Z`, and both at once: `Limit: 0,64 in region R,zone Z.`
_LIMITS = re.compile(
    r"limit:? (?P<limits>\d+(?:\.\d+)?(?:,\d+(?:\.\d+)?)*)"
    r" in (?P<places>(?:region|zone) [\w-]+(?:, ?(?:region|zone) [\w-]+)*)",
    re.IGNORECASE,
)
_PLACES = {"region": RefusalScope.REGION_QUOTA, "zone": RefusalScope.ZONE_QUOTA}
_WIDEST_FIRST = (RefusalScope.REGION_QUOTA, RefusalScope.ZONE_QUOTA)


def classify(text: str, code: int, provisioning: Provisioning | None = None) -> Refusal:
    """Return the meaning of a refusal.

    `code` is the canonical (gRPC) code; `provisioning` is the model of the request, if there was one. The random
    `[EID: …]` is removed from the text.
    """
    message = _EID.sub("", text).strip()
    row = matching_row(message, code, provisioning)
    scope, limit = (row.scope, None) if row.scope is not None else _quota_pool(message)
    return Refusal(
        kind=row.kind,
        message=message,
        remedy=row.remedy,
        scope=scope,
        holds_seconds=row.holds,
        limit=limit,
        is_known=row is not UNKNOWN,
        zones_available=tuple(_zones_with_capacity(message)),
    )


def classify_request(text: str, code: int, provisioning: Provisioning | None = None) -> Refusal:
    """Return the meaning of a refusal that ended a request for a slice, so that another place is tried.

    A passing error is waited out where the call can be repeated. Here the call is over and has failed. What does not
    exist is then something that the request names, because the slice itself is new: if no row knows it, waiting helps
    no more than after an unknown text.
    """
    refusal = classify(text, code, provisioning)
    if refusal.remedy is not Remedy.LOOK_AGAIN:
        return refusal
    return replace(refusal, scope=RefusalScope.PAIR, is_known=refusal.is_known and refusal.kind != _ABSENT)


def error_text(error: Mapping[str, Any]) -> str:
    """Return the text of an error, with what its details say besides.

    These are a localized text, and what is violated: fields, preconditions, quotas (google.rpc.error_details).
    """
    text = str(error.get("message") or "")
    for detail in (*error.get("details", ()), *error.get("errorDetails", ())):
        for sentence in _sentences(detail):
            if sentence not in text:
                text = f"{text} {sentence}".strip()
    return text


def _sentences(detail: Mapping[str, Any]) -> Iterator[str]:
    if "localizedMessage" in detail or str(detail.get("@type", "")).endswith("LocalizedMessage"):
        yield str(detail.get("localizedMessage", detail).get("message") or "")
    for violation in (*detail.get("fieldViolations", ()), *detail.get("violations", ())):
        description = str(violation.get("description") or "")
        field = str(violation.get("field") or "")
        if description:
            yield description if not field or field in description else f"{field}: {description}"


def matching_row(text: str, code: int, provisioning: Provisioning | None = None) -> RefusalRow:
    """Return the first row that matches the text, else the row of the code, else UNKNOWN."""
    for row in VERDICTS:
        if row.only in {None, provisioning} and row.says(text):
            return row
    return _BY_CODE.get(code, UNKNOWN)


def is_certain_refusal(text: str, code: int, provisioning: Provisioning | None = None) -> bool:
    """Return whether a text refuses the request, in its place or everywhere, whatever the status of the reply.

    A status such as 503 alone leaves open whether the request was carried out.
    """
    row = matching_row(text, code, provisioning)
    # A replica that fails may say "permission" too: only a status of its own makes that a missing role.
    is_refusal = row.remedy is not Remedy.LOOK_AGAIN and row.kind != "permission"
    return is_refusal and row is not UNKNOWN and row.code not in TRANSIENT


def hint_for(kind: str, message: str = "") -> str:
    """Return the remedy for a person. If `message` names a disabled API, the remedy names it too."""
    hint = next((row.hint_for(message) for row in (*VERDICTS, UNKNOWN) if row.kind == kind), "")
    api = disabled_api(message)
    return hint.replace("tpu.googleapis.com", api) if api else hint


def disabled_api(message: str) -> str:
    """Return the API that the message says is disabled, or ""."""
    match = _API.search(message) if matching_row(message, Code.UNKNOWN).kind == _API_OFF else None
    return "" if match is None else match[1] or match[2]


def _zones_with_capacity(message: str) -> Iterator[Zone]:
    match = _HAS_CAPACITY.search(message)
    names = match["zones"].split(",") if match is not None else ()
    yield from (Zone(name) for name in map(str.strip, names) if ZONE.fullmatch(name))


def _quota_pool(message: str) -> tuple[RefusalScope, int | None]:
    """Return the scope of the quota that a text names, and its limit in chips.

    If the text names two, return the one whose limit is 0, else the wider one.
    """
    match = _LIMITS.search(message)
    if match is None:
        return (RefusalScope.REGION_QUOTA if "PerRegion" in message else RefusalScope.ZONE_QUOTA), None
    units = _units_per_chip(message)
    numbers = [int(float(number)) // units for number in match["limits"].split(",")]
    places = [_PLACES[place.split()[0].lower()] for place in match["places"].split(",")]
    if len(numbers) != len(places):
        return min(places, key=_WIDEST_FIRST.index), None
    closed = [row for row in zip(places, numbers, strict=True) if row[1] == 0]
    return min(closed or zip(places, numbers, strict=True), key=lambda row: _WIDEST_FIRST.index(row[0]))


def _units_per_chip(message: str) -> int:
    """Return how many units of the quota in a text a chip takes. The id of `tpu-v5p` begins with TPUV5P."""
    for generation in GENERATIONS:
        tpu_api = generation.tpu_api
        if tpu_api is not None and tpu_api.quota and f"'{tpu_api.quota.replace('-', '')}" in message.lower():
            return tpu_api.quota_units_per_chip
    return 1
