"""One refusal of Google's as a page for a person: its words, where it surfaces, what is done, what would clear it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tpudeploy.domain.slices import Remedy, Scope
from tpudeploy.views.words import duration, plain

if TYPE_CHECKING:
    from tpudeploy.adapters.google.refusals.row import Verdict

# By the value of refusals.row.Layer.
_SURFACES: Mapping[str, str] = {
    "L1": "the reply to a call",
    "L2": "the error of the create operation",
    "L3": "the error of the queued resource, which is then FAILED",
    "L4": "the state of the node",
    "L5": "the error of the delete operation",
}
_SPEAKS_OF: Mapping[Scope, str] = {
    Scope.PAIR: "in the zone under this provisioning model",
    Scope.ZONE: "in the zone",
    Scope.ZONE_QUOTA: "in the zone under a model that draws from this quota",
    Scope.REGION: "in the region",
    Scope.REGION_QUOTA: "in the region under a model that draws from this quota",
    Scope.PROJECT: "anywhere in the project",
}
_NAMED_BY_TEXT = "in the zone or region that the text names under a model that draws from this quota"


def page(row: Verdict, said: str = "", scope: Scope | None = None) -> str:
    """`said` is a text that came, and `scope` what it speaks of; without them the row's own examples stand there."""
    surfaces = "\n".join(f"  {layer}  {_SURFACES[layer]}" for layer in row.layers)
    paragraphs = (
        row.what,
        f"{_heading(row, said)}\n{_quoted(row, said)}",
        f"It surfaces as\n{surfaces}",
        f"tpudeploy {_deed(row, scope or row.scope)}.",
        f"What clears it: {row.hint}",
    )
    return "\n\n".join(paragraphs)


def _heading(row: Verdict, said: str) -> str:
    if said:
        return "Google said"
    code = f" ({row.code.name})" if row.code is not None else ""
    return f"Google says{code}{'' if row.is_recorded else ', in words that nobody has published, such as'}"


def _quoted(row: Verdict, said: str) -> str:
    texts = (said,) if said else row.examples
    lines = [line for text in texts for line in plain(text).splitlines()]
    return "\n".join(f"  {line}" for line in lines) or "  whatever no other entry knows"


def _deed(row: Verdict, scope: Scope | None) -> str:
    speaks_of = _SPEAKS_OF[scope] if scope is not None else _NAMED_BY_TEXT
    match row.remedy:
        case Remedy.STOP:
            return "stops, for no other place would do; the next `tpudeploy apply` asks anew"
        case Remedy.LOOK_AGAIN:
            return "looks again, at growing intervals, before it asks for anything again"
        case Remedy.NEXT_ZONE if not row.holds:
            return "deletes what is left of it and asks again, in the same place first"
        case Remedy.NEXT_ZONE | Remedy.DROP_ZONE:
            return f"asks the next place, and for {duration(row.holds)} does not ask again {speaks_of}"
