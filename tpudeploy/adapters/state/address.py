"""What `--backend` names: a bucket and a prefix in it, or a folder."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tpudeploy.domain.errors import ConfigError

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<rest>/.*)?", re.DOTALL)
# https://cloud.google.com/storage/docs/buckets#naming; dots make it a domain name.
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_ODD = re.compile(r"[\x00-\x1f\x7f#*?\[\]]")  # refused by the service, or advised against
_LONGEST = 512  # bytes, of the 1024 that an object's name may have


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """`prefix` is empty, or ends in a slash."""

    name: str
    prefix: str


def parse(backend: str) -> Bucket | None:
    """None for a folder. Raise `errors.ConfigError` for another scheme, or what cannot be a bucket."""
    scheme = _SCHEME.fullmatch(backend)
    if scheme is None:
        return None
    if scheme["scheme"] != "gs" or not (scheme["rest"] or "").startswith("//"):
        raise ConfigError(
            f"The backend `{backend}` is none that we know.", hint="Write gs://BUCKET/PREFIX, or name a folder."
        )
    name, _, written = scheme["rest"].removeprefix("//").partition("/")
    prefix = written.strip("/")
    if not _BUCKET.fullmatch(name):
        raise ConfigError(
            f"The backend `{backend}` names no bucket: `{name}` cannot be one.",
            hint="Write gs://BUCKET/PREFIX; a bucket's name has 3 characters or more: a-z, 0-9, `-`, `_`, `.`.",
        )
    if _ODD.search(prefix) or "//" in prefix or len(prefix.encode()) > _LONGEST:
        raise ConfigError(
            f"The backend `{backend}` has a prefix that is no good name for objects.",
            hint=f"Leave out `#*?[]` and empty parts, and keep it below {_LONGEST} bytes.",
        )
    return Bucket(name=name, prefix=f"{prefix}/" if prefix else "")
