"""Where images and models come from: a registry tells a tag's digest, the hub a revision's commit."""

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
            found = self._registry.image(image)
        except CloudError as cause:  # no credentials for a registry of Google's
            return Unknown(because=cause.message, hint=cause.hint)
        if isinstance(found, Unknown):
            return found
        if not found.is_there:
            return Unknown(because=f"{host} has no such image, or shows it to nobody without an account.")
        if not _DIGEST.fullmatch(found.digest):
            return Unknown(because=f"{host} names no digest.")
        return found.digest
