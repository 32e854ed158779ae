"""Classification of Google's refusals: the text is matched against the table in refusals/, one row per cause."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tpudeploy.adapters.google.codes import TRANSIENT
from tpudeploy.adapters.google.refusals import UNKNOWN, VERDICTS
from tpudeploy.adapters.google.refusals.row import Verdict
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.slices import Refusal, Remedy, Scope

_EID = re.compile(r"\s*\[EID: 0x[0-9a-f]+\]", re.IGNORECASE)
_API = re.compile(r"apis/api/([a-z.-]+)/overview")
_BY_CODE: Mapping[int, Verdict] = {row.code: row for row in VERDICTS if row.by_code and row.code is not None}

# `Limit: 0 in region R.`, `Limit 16 in zone Z`, and both at once: `Limit: 0,64 in region R,zone Z.`
_LIMITS = re.compile(
    r"limit:? (?P<limits>\d+(?:\.\d+)?(?:,\d+(?:\.\d+)?)*)"
    r" in (?P<places>(?:region|zone) [\w-]+(?:, ?(?:region|zone) [\w-]+)*)",
    re.IGNORECASE,
)
_PLACES = {"region": Scope.REGION_QUOTA, "zone": Scope.ZONE_QUOTA}
_WIDEST_FIRST = (Scope.REGION_QUOTA, Scope.ZONE_QUOTA)


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
    )


def matching_row(text: str, code: int, provisioning: Provisioning | None = None) -> Verdict:
    """Return the first row that matches the text, else the row of the code, else UNKNOWN."""
    for row in VERDICTS:
        if row.only in {None, provisioning} and row.says(text):
            return row
    return _BY_CODE.get(code, UNKNOWN)


def is_certain_refusal(text: str, code: int, provisioning: Provisioning | None = None) -> bool:
    """Return whether a text refuses the request in its place, whatever the status of the reply.

    A status such as 503 alone leaves open whether the request was carried out.
    """
    row = matching_row(text, code, provisioning)
    refuses_place = row.remedy in {Remedy.NEXT_ZONE, Remedy.DROP_ZONE}
    return refuses_place and row is not UNKNOWN and row.code not in TRANSIENT


def hint_for(kind: str, message: str = "") -> str:
    """Return the remedy for a person. If `message` names a disabled API, the remedy names it too."""
    hint = next((row.hint for row in (*VERDICTS, UNKNOWN) if row.kind == kind), "")
    api = disabled_api(message)
    if "'compute.instances." in message:
        hint = hint.replace("roles/tpu.admin", "roles/compute.instanceAdmin.v1")
    return hint.replace("tpu.googleapis.com", api) if api else hint


def disabled_api(message: str) -> str:
    """Return the API that the message says is disabled, or ""."""
    match = _API.search(message)
    return "" if match is None else match[1]


def _quota_pool(message: str) -> tuple[Scope, int | None]:
    """Return the scope of the quota that a text names, and its limit in chips.

    If the text names two, return the one whose limit is 0, else the wider one.
    """
    match = _LIMITS.search(message)
    if match is None:
        return (Scope.REGION_QUOTA if "PerRegion" in message else Scope.ZONE_QUOTA), None
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
