"""Read `tpu.generation` with `tpu.topology` as the `tpu.type` that they name, which is all that later code knows."""

from __future__ import annotations

from tpudeploy import catalog
from tpudeploy.config.nodes import Entry, MapNode, ScalarNode, with_entries

KEYS = ("generation", "topology")


def with_type(root: MapNode) -> MapNode:
    """Return the tree with the type instead of the two keys; the tree itself where they do not name one type.

    Where the type is written too, it has to be the same. `rules/chips.py` reports what remains.
    """
    section = root.entries.get("tpu")
    if section is None or not isinstance(section.value, MapNode):
        return root
    tpu = section.value
    generation, topology = (_text(tpu, key) for key in KEYS)
    if generation is None or topology is None:
        return root
    slice_type = catalog.type_of_topology(str(generation.value), str(topology.value))
    type_node = _text(tpu, "type")
    if slice_type is None or (type_node is not None and catalog.accelerator_type(str(type_node.value)) != slice_type):
        return root
    name = slice_type.name
    reference = topology.reference or generation.reference
    value = ScalarNode(topology.place, name, name, plain=True, reference=reference)
    entries = {key: entry for key, entry in tpu.entries.items() if key not in KEYS}
    entries.setdefault("type", Entry(tpu.entries["topology"].key_place, value))
    entry = Entry(section.key_place, with_entries(tpu, entries))
    return with_entries(root, {**root.entries, "tpu": entry})


def _text(section: MapNode, key: str) -> ScalarNode | None:
    entry = section.entries.get(key)
    node = None if entry is None else entry.value
    return node if isinstance(node, ScalarNode) and isinstance(node.value, str) else None
