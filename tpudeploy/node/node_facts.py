"""What a running node carries: its labels, tags and metadata, as it was given them and as it shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tpudeploy.domain.deployment import Json
from tpudeploy.domain.names import SliceName
from tpudeploy.domain.orphans import is_label_of_ours, labels_of
from tpudeploy.domain.plan import Drifted
from tpudeploy.domain.slices import NodeUpdate, Slice
from tpudeploy.domain.state import Attempt
from tpudeploy.node.fingerprint import live_attributes, text_print

SPEC_KEY = "tpudeploy-spec"
# Another value for each change that a running node is to take over, even into the server that it runs already.
CHANGE_KEY = "tpudeploy-change"
AS_REQUESTED = "0"
SCRIPT_KEY = "startup-script"
LABELS = "placement.labels."
TAGS = "placement.network.tags"
_METADATA = "metadata."
# Google's own labels begin so on other resources; that nodes get any is unverified.
_GOOGLES = f"{LABELS}goog-"


def next_change(shown: Mapping[str, str], told: str, now: float) -> str:
    """A name that neither the node's metadata nor the state have given a change before: whole seconds, growing."""
    before = [int(name) for name in (shown.get(CHANGE_KEY, ""), told) if name.isdecimal()]
    return str(max(int(now), *(name + 1 for name in before), 1))


def node_update(metadata: Mapping[str, str], live: Mapping[str, Json], name: SliceName) -> NodeUpdate:
    """What it is given anew. `live` are its labels and tags as attributes, ours not among them."""
    own = {path.removeprefix(LABELS): str(value) for path, value in live.items() if path.startswith(LABELS)}
    tags = live.get(TAGS)
    return NodeUpdate(
        metadata=metadata,
        labels={**own, **labels_of(name)},
        tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
    )


def differing(attempt: Attempt, found: Slice) -> Iterator[Drifted]:
    """All in which it shows something else than it was last given."""
    applied = live_attributes(attempt.spec)
    live = _live_attributes(found, applied)
    for path in sorted(p for p in {*applied, *live} if not p.startswith(_GOOGLES)):
        if _sorted(applied.get(path)) != _sorted(live.get(path)):
            yield Drifted(path=path, applied=applied.get(path), live=live.get(path))
    told = attempt.metadata_server
    if told and found.metadata.get(SPEC_KEY, "") != told:
        yield Drifted(path=f"{_METADATA}{SPEC_KEY}", applied=told, live=found.metadata.get(SPEC_KEY))
    script = text_print(found.metadata.get(SCRIPT_KEY, ""))
    if attempt.script and script != attempt.script:
        yield Drifted(path=f"{_METADATA}{SCRIPT_KEY}", applied=attempt.script, live=script)


def _live_attributes(found: Slice, applied: Mapping[str, Json]) -> dict[str, Json]:
    live: dict[str, Json] = {f"{LABELS}{k}": v for k, v in found.labels.items() if not is_label_of_ours(k)}
    if found.tags:
        live[TAGS] = list(found.tags)
    elif found.tags is None and TAGS in applied:
        live[TAGS] = applied[TAGS]
    return live


def _sorted(value: Json) -> Json:
    """The order of tags says nothing."""
    return sorted(value, key=str) if isinstance(value, list) else value
