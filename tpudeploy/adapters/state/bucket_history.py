"""The zone log in a bucket: one object per finished request, never rewritten, and read with one list.

Objects cannot be appended to, and one object that many runs rewrite takes about one write per second. So each finished
request is an object of its own, with its line in the metadata too, which a list shows. Keys count down, so that a list
begins with the latest.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

from tpudeploy.adapters.google.objects import Moved, Objects
from tpudeploy.domain import errors
from tpudeploy.domain.history import HistoryEntry
from tpudeploy.serialization import zonelog

_LINE = "tried"
_MAX_READ = 1000  # the latest ones; one page of a list
_MAX_LINE_BYTES = 6000  # all metadata of an object may have 8 KiB
_MAX_TEXT = 400  # characters, of at most 12 bytes each
_LATEST_TIME = 9_999_999_999_999  # milliseconds since the epoch: keys count down from here


def add(objects: Objects, folder: str, tried: HistoryEntry) -> None:
    """Add one finished request to the log. Raise `errors.StateError`."""
    line = zonelog.line(tried)
    if len(line) > _MAX_LINE_BYTES:
        line = zonelog.line(replace(tried, text=tried.text[:_MAX_TEXT]))
    key = f"{folder}{max(0, _LATEST_TIME - round(tried.at * 1000)):013d}-{uuid.uuid4().hex[:12]}.json"
    try:
        objects.write(key, line.encode(), over=0, metadata={_LINE: line.strip()})
    except (errors.CloudError, Moved) as cause:
        raise errors.StateError(f"{objects.name(key)} cannot be written: {cause}") from cause


def read(objects: Objects, folder: str) -> tuple[HistoryEntry, ...]:
    """Return the latest finished requests. Raise `errors.StateUnreadable`."""
    try:
        objects_found = objects.list_under(folder, limit=_MAX_READ)
    except errors.CloudError as cause:
        raise errors.StateUnreadable(f"{objects.name(folder)} cannot be read: {cause}") from cause
    return zonelog.read("\n".join(one.metadata.get(_LINE, "") for one in objects_found))
