"""A container registry: whether it has a manifest. It asks nobody who he is."""

from __future__ import annotations

from typing import Any

from tpudeploy.emulator import wire
from tpudeploy.emulator.call import Call
from tpudeploy.emulator.cloud import Cloud

_HUB = "registry-1.docker.io"


def head(cloud: Cloud, call: Call) -> dict[str, Any]:
    """Raise Refusal for an image that is not there. The scenario names images as a profile does."""
    host, repository, reference = (call.query[key] for key in ("host", "repository", "reference"))
    place = "" if host == _HUB else f"{host}/"
    mark = "@" if reference.startswith("sha256:") else ":"
    known = cloud.scenario.project.images
    if known is not None and f"{place}{repository}{mark}{reference}" not in known:
        raise wire.refuse(5, f"manifest unknown: {repository}{mark}{reference}")
    return {}
