"""Everything around a deployment in its project, read at once: one fact that cannot be read hides no other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tpudeploy.adapters.google import access, network
from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.told import Asking, told
from tpudeploy.adapters.registry import Registry
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.surroundings import Image, Surroundings

_WIDE = 16
_PARTS = 3


def read(connection: Connection, of: Deployment, *, lacking: Unknown | None) -> Surroundings:
    """`lacking` says why Google cannot be asked at all. Never raises."""
    # Two pools: a part waits for readings of its own, which must not wait for a thread that it holds.
    with ThreadPoolExecutor(_PARTS) as parts, ThreadPoolExecutor(_WIDE) as pool:
        ask = Asking(pool, lacking)
        who = parts.submit(access.read, connection, of, ask)
        wiring = parts.submit(network.read, connection, of, ask)
        image = parts.submit(_image, connection, of.container.image)
        return Surroundings(access=who.result(), wiring=wiring.result(), image=image.result())


def _image(connection: Connection, reference: str) -> Image | Unknown:
    registry = Registry(connection.registry, connection.token, timeout=connection.timeout)
    return told(f"look up {reference}", lambda: registry.image(reference))
