"""Addresses of machines in a text that is no log: a state or a status has them between quotes and colons."""

from __future__ import annotations

import re

_IPV4 = re.compile(r"(?<![\w.])(?!127\.|0\.0\.0\.0)(?:\d{1,3}\.){3}\d{1,3}(?![\w.])")
_BUCKET = re.compile(r"gs://[^\s\"',)]+")


def without_addresses(text: str) -> str:
    """Return a text without addresses of machines and names of buckets."""
    return _BUCKET.sub("gs://BUCKET", _IPV4.sub("ADDRESS", text))
