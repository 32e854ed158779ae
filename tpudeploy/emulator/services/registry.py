"""A container registry: whether it has a manifest, and of which digest. It asks nobody who he is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tpudeploy.emulator import wire
from tpudeploy.emulator.call import Call
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.digests import digest
from tpudeploy.emulator.server import Reply

_HUB = "registry-1.docker.io"
_HEADER = "Docker-Content-Digest"


def head(cloud: Cloud, call: Call) -> dict[str, Any]:
    """Raise Refusal for an image that is not there. The scenario names images as a profile does."""
    host, repository, reference = (call.query[key] for key in ("host", "repository", "reference"))
    place = "" if host == _HUB else f"{host}/"
    is_digest = reference.startswith("sha256:")
    name = f"{place}{repository}{'@' if is_digest else ':'}{reference}"
    known = cloud.scenario.project.images
    if known is not None and name not in known:
        raise wire.refuse(5, f"manifest unknown: {name}")
    return {_HEADER: reference if is_digest else digest(name, cloud.pushed(name))}


def dressed(reply: Reply) -> Reply:
    """The digest stands in a header: a HEAD has no body."""
    body = reply.body if isinstance(reply.body, dict) else {}
    return replace(reply, headers={_HEADER: body[_HEADER]}) if _HEADER in body else reply
