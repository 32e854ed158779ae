"""The slice of Secret Manager that machines and a client's pre-flight use: reading one version."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

from tpudeploy.emulator import wire
from tpudeploy.emulator.scenario import Scenario

_VERSION = re.compile(r"projects/(?P<project>[^/]+)/secrets/(?P<id>[^/]+)/versions/(?P<version>[^/:]+)")
_MADE_UP = "made-up-by-the-tpudeploy-emulator"


def access(scenario: Scenario, resource: str) -> tuple[int, str]:
    """HTTP status, and the secret's text or the reason why not. `resource` is `projects/P/secrets/S/versions/V`."""
    match = _VERSION.fullmatch(resource)
    if match is None:
        return 400, f"Invalid resource name `{resource}`"
    if match["id"] in scenario.denied_secrets:
        permission = "secretmanager.versions.access"
        return 403, f"Permission '{permission}' denied for resource '{resource}' (or it may not exist)."
    if scenario.secrets is None:
        return 200, _MADE_UP
    if match["id"] not in scenario.secrets:
        return 404, f"Secret [projects/{match['project']}/secrets/{match['id']}] not found or has no versions."
    return 200, scenario.secrets[match["id"]]


def answer(scenario: Scenario, resource: str) -> dict[str, Any]:
    """The reply body of `versions.access`. Raise Refusal with Google's error."""
    http, text = access(scenario, resource)
    if http != 200:  # noqa: PLR2004  HTTP
        raise wire.refuse({400: 3, 403: 7, 404: 5}[http], text)
    return {
        "name": resource.replace("/versions/latest", "/versions/1"),
        "payload": {"data": b64encode(text.encode()).decode()},
    }
