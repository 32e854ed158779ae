"""Format the page of a refusal by Google: its text, where it surfaces, what tpudeploy does, what clears it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tpudeploy.domain.slices import Remedy, Scope
from tpudeploy.text.words import duration, plain

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
_SCOPES: Mapping[Scope, str] = {
    Scope.PAIR: "in the zone under this provisioning model",
    Scope.ZONE: "in the zone",
    Scope.ZONE_QUOTA: "in the zone under a model that draws from this quota",
    Scope.REGION: "in the region",
    Scope.REGION_QUOTA: "in the region under a model that draws from this quota",
    Scope.REGION_RESOURCES: "in the region, unless a slice of yours there is deleted",
    Scope.PROJECT: "anywhere in the project",
}
_NAMED_BY_TEXT = "in the zone or region that the text names under a model that draws from this quota"


def page(row: Verdict, text: str = "", scope: Scope | None = None) -> str:
    """Return the page of a refusal. `text` is an actual message, `scope` what it is about; else it shows examples."""
    surfaces = "\n".join(f"  {layer}  {_SURFACES[layer]}" for layer in row.layers)
    paragraphs = (
        row.what,
        f"{_heading(row, text)}\n{_quote(row, text)}",
        f"It surfaces as\n{surfaces}",
        f"tpudeploy {_reaction(row, scope or row.scope)}.",
        f"What clears it: {row.hint}",
    )
    return "\n\n".join(paragraphs)


def _heading(row: Verdict, text: str) -> str:
    if text:
        return "Google said"
    code = f" ({row.code.name})" if row.code is not None else ""
    return f"Google says{code}{'' if row.is_recorded else ', in a text that is not published, such as'}"


def _quote(row: Verdict, text: str) -> str:
    texts = (text,) if text else row.examples
    lines = [line for text in texts for line in plain(text).splitlines()]
    return "\n".join(f"  {line}" for line in lines) or "  any text that no other entry matches"


def _reaction(row: Verdict, scope: Scope | None) -> str:
    speaks_of = _SCOPES[scope] if scope is not None else _NAMED_BY_TEXT
    match row.remedy:
        case Remedy.STOP:
            return "stops, because no other place would help; the next `tpudeploy apply` asks again"
        case Remedy.LOOK_AGAIN:
            return "observes again, at growing intervals, before it makes another request"
        case Remedy.NEXT_ZONE if not row.holds:
            return "deletes the remains and asks again, in the same place first"
        case Remedy.NEXT_ZONE | Remedy.DROP_ZONE:
            return f"asks the next place, and for {duration(row.holds)} does not ask again {speaks_of}"
