"""More requests at once than this version makes."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.core.finding import warning
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic

CODE = "TPU2002"
MEANING = """One request at a time

placement.max_parallel_requests is the most requests that may wait at once for one replica. This version makes one: it
asks in one place, waits where it is put in a queue, and moves on where it is refused. The limit is kept, and not used
up."""
_PATH = "placement.max_parallel_requests"


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    most = deployment.attributes.get(_PATH)
    if isinstance(most, int) and most > 1:
        message = f"{_PATH} allows {most} requests at once; this version makes one at a time."
        yield warning(deployment, CODE, message, path=_PATH, hint="Nothing needs to change.")
