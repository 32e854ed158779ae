"""The doors of a machine, and the URL behind one for as long as it stands open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tpudeploy.adapters.iap import tunnel
from tpudeploy.domain.deployment import Deployment, Via
from tpudeploy.domain.slices import Slice

# In the order in which they are tried.
DOORS = {
    Via.AUTO: (Via.EXTERNAL, Via.INTERNAL, Via.IAP, Via.NODE),
    Via.EXTERNAL: (Via.EXTERNAL,),
    Via.INTERNAL: (Via.INTERNAL,),
    Via.IAP: (Via.IAP,),
    Via.NODE: (Via.NODE,),
}


@contextmanager
def opened(door: Via, deployment: Deployment, found: Slice) -> Iterator[str | None]:
    """The URL behind a door for as long as it stands open, None where there is no such door."""
    port = found.port or deployment.container.port
    if door is Via.IAP:
        with tunnel(deployment.project or "", found, port) as local:
            yield None if local is None else f"http://127.0.0.1:{local}"
        return
    address = found.external_ip if door is Via.EXTERNAL else found.internal_ip
    yield None if address is None else f"http://{address}:{port}"
