"""The output of a machine's startup script, read from Cloud Logging."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.safe_read import pages
from tpudeploy.adapters.google.translate import Absent, Exists, PreconditionFailed, translate_read_errors
from tpudeploy.domain import errors
from tpudeploy.domain.slices import SliceRef

_PAGE = 1_000  # the maximum that Logging returns in one page
# The fields in which Google's guest agent on Compute Engine puts the text of a startup script's message. Any prefix
# of the text is kept as it is (UNVERIFIED on TPU VMs).
_FIELDS = ("textPayload", "message", "MESSAGE")


class CloudLogging:
    """See `ports.Logs`. Discovery v2."""

    def __init__(self, connection: CloudConnection) -> None:
        self._connection = connection

    def lines(self, ref: SliceRef) -> tuple[str, ...]:
        calls = self._connection.collection("logging", "v2", "entries")
        body = {
            "resourceNames": [f"projects/{ref.project}"],
            "filter": _filter(ref),
            "orderBy": "timestamp asc",
            "pageSize": _PAGE,
        }
        texts_by_worker: dict[int, list[str]] = {}
        try:
            with translate_read_errors(f"read the log of {ref.name}"):
                for page in pages(calls, calls.list(body=body)):
                    for entry in page.get("entries", ()):
                        texts_by_worker.setdefault(_worker(entry), []).append(_text(entry))
        except (Absent, Exists, PreconditionFailed) as cause:
            raise errors.CloudError(f"Could not read the log of {ref.name}: {cause}") from cause
        return _in_order(texts_by_worker)


def _in_order(texts_by_worker: Mapping[int, Sequence[str]]) -> tuple[str, ...]:
    """Return the lines of all workers. Those of worker 0, which starts the server, come last and as they are.

    A boot log is read from its last start on, and times of several hosts would mix in it.
    """
    others = (
        f"worker {worker}: {text}" for worker in sorted(texts_by_worker) if worker for text in texts_by_worker[worker]
    )
    return (*others, *texts_by_worker.get(0, ()))


def _worker(entry: Mapping[str, Any]) -> int:
    """Return the number of the host that wrote an entry; 0 for an entry that does not say so."""
    number = str(entry.get("resource", {}).get("labels", {}).get("worker_id", ""))
    return int(number) if number.isdecimal() else 0


def _filter(ref: SliceRef) -> str:
    """Return the filter for the log entries of a slice. Its node has the same name as its queued resource.

    Published filters use the type, the zone and `node_id`. That this label holds the node's name rather than its
    number is UNVERIFIED, so `node_name` is matched too.
    """
    name_filter = f'(resource.labels.node_id="{ref.name}" OR labels.node_name="{ref.name}")'
    return f'resource.type="tpu_worker" AND resource.labels.zone="{ref.zone}" AND {name_filter}'


def _text(entry: Mapping[str, Any]) -> str:
    fields = {**entry.get("jsonPayload", {}), **entry}
    return next((str(fields[field]).rstrip("\n") for field in _FIELDS if field in fields), "")
