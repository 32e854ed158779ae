"""Open the network routes to a machine. The tunnel through IAP is unverified against a real project."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tpudeploy.adapters.child import child
from tpudeploy.domain.deployment import Via
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
def open_route(route: Via, slice_: Slice, *, project: str | None, port: int) -> Iterator[str | None]:
    """Yield the URL of this port of the machine by this route, or None where the machine has no such route."""
    port = slice_.port or port
    if route is Via.IAP:
        with tunnel(project or "", slice_, port) as local:
            yield None if local is None else f"http://127.0.0.1:{local}"
        return
    address = slice_.external_ip if route is Via.EXTERNAL else slice_.internal_ip
    yield None if address is None else f"http://{address}:{port}"


_TUNNEL_PATIENCE = 30.0
_TUNNEL_STEP = 0.5
_TUNNEL_GRACE = 2.0  # seconds that gcloud and its ssh have to close the tunnel


@contextmanager
def tunnel(project: str, slice_: Slice, port: int) -> Iterator[int | None]:
    """Yield the local port of a tunnel to `port` of the slice, or None where gcloud is missing or cannot connect."""
    gcloud = shutil.which("gcloud")
    if gcloud is None:
        yield None
        return
    local_port = _free_port()
    command = [gcloud, "alpha", "compute", "tpus", "queued-resources", "ssh", slice_.name, f"--project={project}"]
    command += [f"--zone={slice_.zone}", "--node=all", "--worker=0", "--tunnel-through-iap", "--quiet"]
    command += ["--", "-N", "-L", f"{local_port}:127.0.0.1:{port}"]
    quiet = subprocess.DEVNULL
    with child(command, grace_seconds=_TUNNEL_GRACE, stdin=quiet, stdout=quiet, stderr=quiet) as process:
        yield local_port if _opens(process, local_port) else None


def _opens(process: subprocess.Popen[bytes], port: int) -> bool:
    # This waits in real time, because it waits for another process and not for the cloud.
    for _ in range(int(_TUNNEL_PATIENCE / _TUNNEL_STEP)):
        if process.poll() is not None:
            return False
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(_TUNNEL_STEP)
    return False


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
