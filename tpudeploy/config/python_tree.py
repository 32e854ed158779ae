"""Make the tree of a profile that is written in Python. Its values have no lines: their place is the call itself."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from tpudeploy.config.diagnose import as_yaml
from tpudeploy.config.nodes import Entry, ListNode, MapNode, Node, ScalarNode, SourcePlace
from tpudeploy.config.source import Source

_PLACE = SourcePlace(Source("Profile(...)", "", first_line=0), 0, 0)


def tree_of(values: Mapping[str, object] | BaseModel) -> MapNode:
    """Return the tree of a mapping, or of what a section sets."""
    if isinstance(values, BaseModel):
        values = {name: getattr(values, name) for name in type(values).model_fields if name in values.model_fields_set}
    return MapNode(_PLACE, {str(key): Entry(_PLACE, _node(value)) for key, value in values.items()})


def _node(value: object) -> Node:
    if isinstance(value, Mapping | BaseModel):
        return tree_of(value)
    if isinstance(value, list | tuple):
        return ListNode(_PLACE, tuple(map(_node, value)))
    # A path is text; a quantity has its source text; an enumeration is text.
    text = str(value) if hasattr(value, "__fspath__") else getattr(value, "text", value)
    scalar = str(text) if isinstance(text, str) else text
    return ScalarNode(_PLACE, scalar, as_yaml(scalar), plain=True)  # type: ignore[arg-type]  # another type is refused
