"""Digests of images that nobody built: told apart from real ones, and the release of a tag can be read in them."""

from __future__ import annotations

import re
from hashlib import sha256

from tpudeploy.domain.pins import EMULATED

_RELEASE = re.compile(r":v(\d{1,2})\.(\d{1,2})\.(\d{1,2})$")
_WRITTEN = re.compile(rf"@sha256:{EMULATED}(\d\d)(\d\d)(\d\d)[0-9a-f]+$")
_NO_RELEASE = "ffffff"


def digest(image: str, pushed: str) -> str:
    """Of an image with a tag; `pushed` is another text each time that the tag is something newer."""
    found = _RELEASE.search(image)
    release = _NO_RELEASE if found is None else "".join(part.zfill(2) for part in found.groups())
    head = f"{EMULATED}{release}"
    return f"sha256:{head}{sha256(pushed.encode()).hexdigest()[len(head) :]}"


def release(image: str) -> str | None:
    """What a tag (v0.32.0), or one of our digests, names; None for anything else."""
    found = _RELEASE.search(image) or _WRITTEN.search(image)
    return None if found is None else ".".join(str(int(part)) for part in found.groups())
