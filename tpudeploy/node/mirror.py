"""A mirror of the weights: where the machine puts what it fetches from the bucket, and where the container finds it."""

from __future__ import annotations

import hashlib

from tpudeploy.config.schema import ProfileSpec
from tpudeploy.domain.deployment import BucketFolder, Mirror

# The same for every mirror, so that a change of bucket changes no argument of the server.
INSIDE = "/tpudeploy/weights"
_ON_MACHINE = "/var/lib/tpudeploy/weights"
_NAME = 12  # hexadecimal digits of the folder's name: of each mirror its own, so that two never mix


def mirror(spec: ProfileSpec) -> Mirror | None:
    """None where the weights come from where `model.id` says."""
    url = spec.model.mirror
    if url is None:
        return None
    bucket = BucketFolder.parse(url)
    name = hashlib.sha256(f"{bucket.name}/{bucket.prefix}".encode()).hexdigest()[:_NAME]
    return Mirror(bucket=bucket, folder=f"{_ON_MACHINE}/{name}")
