"""List Google's refusals, one row per cause. Add a new one to the file of its group."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.adapters.google.refusals import access, capacity, offers, passing, people, policies, quota
from tpudeploy.adapters.google.refusals.row import SECONDS, RefusalRow
from tpudeploy.domain.slices import RefusalScope, Remedy

# The first row whose pattern matches the text counts. For a text without a match, the row of its code counts, else
# UNKNOWN.
GROUPS: Mapping[str, tuple[RefusalRow, ...]] = {
    "organization policies": policies.ROWS,
    "capacity": capacity.ROWS,
    "quota": quota.ROWS,
    "who may": access.ROWS,
    "what is offered where": offers.ROWS,
    "what only a user can fix": people.ROWS,
    "what passes": passing.ROWS,
}
VERDICTS = tuple(row for rows in GROUPS.values() for row in rows)

# The row for unknown texts with an unspecific code. The text is always reported verbatim.
UNKNOWN = RefusalRow(
    kind="unknown",
    what="An unknown message, with a code that says nothing",
    remedy=Remedy.NEXT_ZONE,
    scope=RefusalScope.PAIR,
    holds=30 * SECONDS,
    hint="Read Google's own text. Please report it, so it can be added.",
)
