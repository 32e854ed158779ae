"""The address in `--backend`: a bucket and a prefix in it, or a folder."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tpudeploy.domain.errors import ConfigError

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<rest>/.*)?", re.DOTALL)
# Source: https://cloud.google.com/storage/docs/buckets#naming. A name with dots is a domain name.
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_BAD_CHARACTERS = re.compile(r"[\x00-\x1f\x7f#*?\[\]]")  # the service refuses these or advises against them
_MAX_PREFIX_BYTES = 512  # an object's name may have 1024 bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A bucket and a prefix, which is empty or ends in a slash."""

    name: str
    prefix: str


def parse(backend: str) -> Bucket | None:
    """Return the bucket that a backend names, or None for a folder.

    Raise `errors.ConfigError` for another scheme or an invalid bucket name.
    """
    scheme = _SCHEME.fullmatch(backend)
    if scheme is None:
        return None
    if scheme["scheme"] != "gs" or not (scheme["rest"] or "").startswith("//"):
        raise ConfigError(
            f"The backend `{backend}` is not supported.", hint="Write gs://BUCKET/PREFIX, or name a folder."
        )
    name, _, path = scheme["rest"].removeprefix("//").partition("/")
    prefix = path.strip("/")
    if not _BUCKET.fullmatch(name):
        raise ConfigError(
            f"The backend `{backend}` names no bucket: `{name}` is not a valid bucket name.",
            hint="Write gs://BUCKET/PREFIX. A bucket's name has at least 3 characters: a-z, 0-9, `-`, `_`, `.`.",
        )
    if _BAD_CHARACTERS.search(prefix) or "//" in prefix or len(prefix.encode()) > _MAX_PREFIX_BYTES:
        raise ConfigError(
            f"The backend `{backend}` has a prefix that is not a valid name for objects.",
            hint=f"Leave out `#*?[]` and empty parts, and keep it below {_MAX_PREFIX_BYTES} bytes.",
        )
    return Bucket(name=name, prefix=f"{prefix}/" if prefix else "")
