"""The labels, tags and metadata of a running node: what it was given, and how what it shows differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tpudeploy.domain.deployment import Json
from tpudeploy.domain.ending import EndCause
from tpudeploy.domain.names import SliceName
from tpudeploy.domain.orphans import is_label_of_ours, labels_of
from tpudeploy.domain.plan import Drifted
from tpudeploy.domain.slices import NodeUpdate, Slice
from tpudeploy.domain.state import Attempt
from tpudeploy.node.fingerprint import live_attributes, text_print
from tpudeploy.node.own_end import END_KEY, NO_END, ends_in

SPEC_KEY = "tpudeploy-spec"
# A new value for each change that a running node must pick up, even for a restart of the same server.
CHANGE_KEY = "tpudeploy-change"
AS_REQUESTED = "0"
SCRIPT_KEY = "startup-script"
LABELS = "placement.labels."
TAGS = "placement.network.tags"
_METADATA = "metadata."
# The prefix of Google's own labels on other resources. That nodes get any is unverified.
_GOOGLES = f"{LABELS}goog-"


def next_change(metadata: Mapping[str, str], last_change: str, now: float) -> str:
    """Return a name that no change in the node's metadata or the state had before: the time, or one more than both."""
    earlier = [int(name) for name in (metadata.get(CHANGE_KEY, ""), last_change) if name.isdecimal()]
    return str(max(int(now), *(name + 1 for name in earlier), 1))


def node_update(metadata: Mapping[str, str], live: Mapping[str, Json], name: SliceName) -> NodeUpdate:
    """Return the update of a node. `live` are its labels and tags as attributes, without tpudeploy's own labels."""
    own = {path.removeprefix(LABELS): str(value) for path, value in live.items() if path.startswith(LABELS)}
    tags = live.get(TAGS)
    return NodeUpdate(
        metadata=metadata,
        labels={**own, **labels_of(name)},
        tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
    )


def differing(attempt: Attempt, current: Slice) -> Iterator[Drifted]:
    """Yield each label, tag and metadata value that differs from what the node was last given."""
    applied = live_attributes(attempt.spec)
    live = _live_attributes(current, applied)
    for path in sorted(p for p in {*applied, *live} if not p.startswith(_GOOGLES)):
        if _sorted(applied.get(path)) != _sorted(live.get(path)):
            yield Drifted(path=path, applied=applied.get(path), live=live.get(path))
    server = attempt.metadata_server
    if server and current.metadata.get(SPEC_KEY, "") != server:
        yield Drifted(path=f"{_METADATA}{SPEC_KEY}", applied=server, live=current.metadata.get(SPEC_KEY))
    script = current.script or text_print("")
    if attempt.script and script != attempt.script:
        yield Drifted(path=f"{_METADATA}{SCRIPT_KEY}", applied=attempt.script, live=script)


def _live_attributes(current: Slice, applied: Mapping[str, Json]) -> dict[str, Json]:
    live: dict[str, Json] = {f"{LABELS}{k}": v for k, v in current.labels.items() if not is_label_of_ours(k)}
    ends = ends_in(current.metadata.get(END_KEY, NO_END))
    # A machine that cannot delete itself is not told the end, and one without that key is of an earlier version.
    if not ends:
        live |= {key: applied[key] for key in EndCause if key in applied}
    live |= ends
    if current.tags:
        live[TAGS] = list(current.tags)
    # The tags were not read, so nothing is known to differ.
    elif current.tags is None and TAGS in applied:
        live[TAGS] = applied[TAGS]
    return live


def _sorted(value: Json) -> Json:
    """Return a list in a canonical order: the order of tags means nothing."""
    return sorted(value, key=str) if isinstance(value, list) else value
