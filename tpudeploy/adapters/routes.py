"""The network routes to a machine, and the URL of a route while it is open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tpudeploy.adapters.iap import tunnel
from tpudeploy.domain.deployment import Deployment, Via
from tpudeploy.domain.slices import Slice

# The routes of each setting, in the order in which they are tried.
ROUTES = {
    Via.AUTO: (Via.EXTERNAL, Via.INTERNAL, Via.IAP, Via.NODE),
    Via.EXTERNAL: (Via.EXTERNAL,),
    Via.INTERNAL: (Via.INTERNAL,),
    Via.IAP: (Via.IAP,),
    Via.NODE: (Via.NODE,),
}


@contextmanager
def open_route(route: Via, deployment: Deployment, slice_: Slice) -> Iterator[str | None]:
    """Yield the URL of the machine by this route, or None where the machine has no such route."""
    port = slice_.port or deployment.container.port
    if route is Via.IAP:
        with tunnel(deployment.project or "", slice_, port) as local:
            yield None if local is None else f"http://127.0.0.1:{local}"
        return
    address = slice_.external_ip if route is Via.EXTERNAL else slice_.internal_ip
    yield None if address is None else f"http://{address}:{port}"
