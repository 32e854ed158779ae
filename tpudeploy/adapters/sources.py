"""The sources of images and models: a registry resolves a tag to a digest, the hub a revision to a commit."""

from __future__ import annotations

import re

from tpudeploy.adapters.hub import Hub
from tpudeploy.adapters.registry import Registry, parts
from tpudeploy.domain.errors import CloudError
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.pins import Kind, Name

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Origins:
    """See `ports.Sources`."""

    def __init__(self, registry: Registry, hub: Hub) -> None:
        self._registry = registry
        self._hub = hub

    def look_up(self, name: Name) -> str | Unknown:
        return self._digest(name.text) if name.kind is Kind.IMAGE else self._hub.commit(*name.model)

    def _digest(self, image: str) -> str | Unknown:
        host = parts(image)[0]
        try:
            answer = self._registry.image(image)
        except CloudError as cause:  # no credentials for a registry of Google's
            return Unknown(because=cause.message, hint=cause.hint)
        if isinstance(answer, Unknown):
            return answer
        if not answer.is_there:
            return Unknown(because=f"{host} does not have this image, or hides it from anonymous callers.")
        if not _DIGEST.fullmatch(answer.digest):
            return Unknown(because=f"{host} names no digest.")
        return answer.digest
