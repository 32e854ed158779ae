"""A way to a slice without an address: an ssh tunnel through IAP, by gcloud. Unverified against a real project."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tpudeploy.domain.slices import Slice

_PATIENCE = 30.0
_STEP = 0.5


@contextmanager
def tunnel(project: str, found: Slice, port: int) -> Iterator[int | None]:
    """The local port of a tunnel to `port` of the slice, or None where gcloud is missing or does not get through."""
    gcloud = shutil.which("gcloud")
    if gcloud is None:
        yield None
        return
    local = _free_port()
    command = [gcloud, "alpha", "compute", "tpus", "queued-resources", "ssh", found.name, f"--project={project}"]
    command += [f"--zone={found.zone}", "--node=all", "--worker=0", "--tunnel-through-iap", "--quiet"]
    command += ["--", "-N", "-L", f"{local}:127.0.0.1:{port}"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet) as process:
        try:
            yield local if _opens(process, local) else None
        finally:
            process.terminate()


def _opens(process: subprocess.Popen[bytes], port: int) -> bool:
    """Real time on purpose: another process is waited for, not the world."""
    for _ in range(int(_PATIENCE / _STEP)):
        if process.poll() is not None:
            return False
        with socket.socket() as knock:
            if knock.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(_STEP)
    return False


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
