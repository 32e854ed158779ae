"""What a machine's startup script printed, from Cloud Logging."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.told import pages
from tpudeploy.adapters.google.translate import Absent, Exists, Precondition, looking
from tpudeploy.domain import errors
from tpudeploy.domain.slices import SliceRef

_PAGE = 1_000  # the most that Logging gives in one
# As messages of a startup script are named by Google's guest agent on Compute Engine; a prefix that is another, or
# none, is left as it is (UNVERIFIED on TPU VMs).
_FIELDS = ("textPayload", "message", "MESSAGE")


class CloudLogging:
    """See `ports.Logs`. Discovery v2."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def lines(self, ref: SliceRef) -> tuple[str, ...]:
        calls = self._connection.collection("logging", "v2", "entries")
        body = {
            "resourceNames": [f"projects/{ref.project}"],
            "filter": _filter(ref),
            "orderBy": "timestamp asc",
            "pageSize": _PAGE,
        }
        found: list[str] = []
        try:
            with looking(f"read the log of {ref.name}"):
                for page in pages(calls, calls.list(body=body)):
                    found += [_text(entry) for entry in page.get("entries", ())]
        except (Absent, Exists, Precondition) as cause:
            raise errors.CloudError(f"Could not read the log of {ref.name}: {cause}") from cause
        return tuple(found)


def _filter(ref: SliceRef) -> str:
    """The node is named as its queued resource is. Published filters name the type, the zone and `node_id`; that the
    label holds the node's name rather than its number is UNVERIFIED, hence the log's own words are searched too.
    """
    named = f'(resource.labels.node_id="{ref.name}" OR labels.node_name="{ref.name}")'
    return f'resource.type="tpu_worker" AND resource.labels.zone="{ref.zone}" AND {named}'


def _text(entry: Mapping[str, Any]) -> str:
    told = {**entry.get("jsonPayload", {}), **entry}
    return next((str(told[field]).rstrip("\n") for field in _FIELDS if field in told), "")
