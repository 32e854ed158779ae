"""The end of a deployment as its machines read it in their metadata: when, and what to delete (boot/end.sh)."""

from __future__ import annotations

from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Deployment, Place
from tpudeploy.domain.ending import End

END_KEY = "tpudeploy-end"
NO_END = "never"


def end_value(deployment: Deployment, name: str, place: Place, since: float | None) -> str:
    """Return `WHEN URL TEXT` for the slice of this name, or `never`.

    WHEN is in seconds since the epoch; before the deployment has served (`since` is None), `+SECONDS` after the machine
    first serves. TEXT is the key of the profile.
    """
    end = deployment.lifecycle.end
    if end is None or not deletes_itself(deployment, place.backend):
        return NO_END
    project = deployment.project or ""
    url = BACKENDS[place.backend].deletion.format(project=project, zone=place.zone, name=name)
    return f"{_when(end, since)} {url} {end.text}"


def deletes_itself(deployment: Deployment, backend: Backend) -> bool:
    """Return whether a machine of the deployment can delete its own request: a group of machines is several."""
    return deployment.accelerator.hosts == 1 or not BACKENDS[backend].has_groups


def end_in(value: str) -> str | None:
    """Return the key of the profile in what the metadata have, or None for no end."""
    parts = value.split(" ", 2)
    return parts[2] if len(parts) == 3 else None  # noqa: PLR2004 - when, where, and the text


def _when(end: End, since: float | None) -> str:
    if end.at is not None:
        return f"{end.at:.0f}"
    seconds = end.after_seconds or 0.0
    return f"+{seconds:.0f}" if since is None else f"{since + seconds:.0f}"
