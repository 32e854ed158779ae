"""Digests of images that were never built: unlike real ones, and with the release of the tag in them."""

from __future__ import annotations

import re
from hashlib import sha256

from tpudeploy.domain.pins import EMULATED

_RELEASE_TAG = re.compile(r":v(\d{1,2})\.(\d{1,2})\.(\d{1,2})$")
_EMULATED_DIGEST = re.compile(rf"@sha256:{EMULATED}(\d\d)(\d\d)(\d\d)[0-9a-f]+$")
_NO_RELEASE = "ffffff"


def image_digest(image: str, version: str) -> str:
    """Return the digest of an image with a tag; `version` changes each time that the tag is pushed again."""
    match = _RELEASE_TAG.search(image)
    release = _NO_RELEASE if match is None else "".join(part.zfill(2) for part in match.groups())
    head = f"{EMULATED}{release}"
    return f"sha256:{head}{sha256(version.encode()).hexdigest()[len(head) :]}"


def release_of(image: str) -> str | None:
    """Return the release that a tag (v0.32.0), or one of our digests, names; None for anything else."""
    match = _RELEASE_TAG.search(image) or _EMULATED_DIGEST.search(image)
    return None if match is None else ".".join(str(int(part)) for part in match.groups())
