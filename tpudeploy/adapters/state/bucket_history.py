"""The zone log in a bucket: an object for each end, never written again, and read with one list.

Objects cannot be added to, and one that many runs rewrite takes about one write a second. So each end is an object of
its own, with its line in the metadata too, where a list shows it; keys count down, so that a list begins with the
latest.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

from tpudeploy.adapters.google.objects import Moved, Objects
from tpudeploy.core import zonelog
from tpudeploy.domain import errors
from tpudeploy.domain.history import Tried

_LINE = "tried"
_READ = 1000  # the latest; one page of a list
_LONGEST_LINE = 6000  # bytes; all metadata of an object may have 8 KiB
_LONGEST_TEXT = 400  # characters, each of which is 12 bytes at most
_LAST = 9_999_999_999_999  # milliseconds since the epoch: keys count down from here


def add(objects: Objects, folder: str, tried: Tried) -> None:
    """Raise `errors.StateError`."""
    line = zonelog.line(tried)
    if len(line) > _LONGEST_LINE:
        line = zonelog.line(replace(tried, text=tried.text[:_LONGEST_TEXT]))
    key = f"{folder}{max(0, _LAST - round(tried.at * 1000)):013d}-{uuid.uuid4().hex[:12]}.json"
    try:
        objects.put(key, line.encode(), over=0, metadata={_LINE: line.strip()})
    except (errors.CloudError, Moved) as cause:
        raise errors.StateError(f"{objects.name(key)} cannot be written: {cause}") from cause


def read(objects: Objects, folder: str) -> tuple[Tried, ...]:
    """Raise `errors.StateUnreadable`."""
    try:
        found = objects.list_under(folder, limit=_READ)
    except errors.CloudError as cause:
        raise errors.StateUnreadable(f"{objects.name(folder)} cannot be read: {cause}") from cause
    return zonelog.read("\n".join(one.metadata.get(_LINE, "") for one in found))
