"""What a refusal of Google's means: its text held against the table in refusals/, one row a cause."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tpudeploy.adapters.google.refusals import UNKNOWN, VERDICTS
from tpudeploy.adapters.google.refusals.row import Verdict
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.slices import Refusal, Scope

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


def verdict(text: str, code: int, asked: Provisioning | None = None) -> Refusal:
    """What a refusal means. `code` is the canonical (gRPC) one; `asked` the request's model, where one was made.

    The random `[EID: …]` is dropped from the text.
    """
    message = _EID.sub("", text).strip()
    row = row_of(message, code, asked)
    scope, limit = (row.scope, None) if row.scope is not None else _named_pool(message)
    return Refusal(
        kind=row.kind,
        message=message,
        remedy=row.remedy,
        scope=scope,
        holds_seconds=row.holds,
        limit=limit,
        is_known=row is not UNKNOWN,
    )


def row_of(text: str, code: int, asked: Provisioning | None = None) -> Verdict:
    """The row that a text falls to, else the one that its code names, else UNKNOWN."""
    found = next((row for row in VERDICTS if row.only in {None, asked} and row.says(text)), None)
    return found if found is not None else _BY_CODE.get(code, UNKNOWN)


def hint_for(kind: str, message: str = "") -> str:
    """What a person can do; where `message` names the API that is off, for that one."""
    hint = next((row.hint for row in (*VERDICTS, UNKNOWN) if row.kind == kind), "")
    named = api_named(message)
    return hint.replace("tpu.googleapis.com", named) if named else hint


def api_named(message: str) -> str:
    """The API of which Google says that it is off, or "" ."""
    named = _API.search(message)
    return "" if named is None else named[1]


def _named_pool(message: str) -> tuple[Scope, int | None]:
    """Whose limit a quota text names, and that limit, in chips. Of two, the place where it is 0, else the wider."""
    found = _LIMITS.search(message)
    if found is None:
        return (Scope.REGION_QUOTA if "PerRegion" in message else Scope.ZONE_QUOTA), None
    numbers = [int(float(number)) for number in found["limits"].split(",")]
    places = [_PLACES[place.split()[0].lower()] for place in found["places"].split(",")]
    if len(numbers) != len(places):
        return min(places, key=_WIDEST_FIRST.index), None
    closed = [row for row in zip(places, numbers, strict=True) if row[1] == 0]
    return min(closed or zip(places, numbers, strict=True), key=lambda row: _WIDEST_FIRST.index(row[0]))
