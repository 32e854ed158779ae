"""An ssh tunnel through IAP by gcloud, for slices without an address. Unverified against a real project."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tpudeploy.adapters.child import child
from tpudeploy.domain.slices import Slice

_PATIENCE = 30.0
_STEP = 0.5
_GRACE = 2.0  # seconds that gcloud and its ssh have to close the tunnel


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
    with child(command, grace_seconds=_GRACE, stdin=quiet, stdout=quiet, stderr=quiet) as process:
        yield local_port if _opens(process, local_port) else None


def _opens(process: subprocess.Popen[bytes], port: int) -> bool:
    # This waits in real time, because it waits for another process and not for the cloud.
    for _ in range(int(_PATIENCE / _STEP)):
        if process.poll() is not None:
            return False
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(_STEP)
    return False


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
