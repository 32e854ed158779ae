"""Secret Manager: a version's value, for clients and for machines; whether a version exists, and who may read it."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

from tpudeploy.emulator import wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.scenario import Scenario
from tpudeploy.emulator.services import iam
from tpudeploy.emulator.wire import ApiCall

_VERSION = re.compile(r"projects/(?P<project>[^/]+)/secrets/(?P<id>[^/]+)/versions/(?P<version>[^/:]+)")
_MADE_UP = "made-up-by-the-tpudeploy-emulator"
_ACCESSOR = "roles/secretmanager.secretAccessor"


def access(scenario: Scenario, resource: str) -> dict[str, Any]:
    """Return the reply body of `versions.access` for `projects/P/secrets/S/versions/V`. Raise ApiError."""
    value = read_value(scenario, resource)
    name = resource.replace("/versions/latest", "/versions/1")
    return {"name": name, "payload": {"data": b64encode(value.encode()).decode()}}


def read_value(scenario: Scenario, resource: str) -> str:
    """Return the value of a version. Raise ApiError with Google's error."""
    match = _VERSION.fullmatch(resource)
    if match is None:
        raise wire.refuse(3, f"Invalid resource name `{resource}`")
    if match["id"] in scenario.denied_secrets:
        permission = "secretmanager.versions.access"
        raise wire.refuse(7, f"Permission '{permission}' denied for resource '{resource}' (or it may not exist).")
    _check_exists(scenario, match["project"], match["id"])
    return _MADE_UP if scenario.secrets is None else scenario.secrets[match["id"]]


def get_version(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Return whether a version exists: the right to read it is another matter."""
    secret, version = call.query["secret"], call.query["version"]
    _check_not_absent(cloud, call)
    number = "1" if version == "latest" else version
    return {"name": f"projects/{call.project}/secrets/{secret}/versions/{number}", "state": "ENABLED"}


def policy(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Return who may read a secret: everybody with a Google account, unless the scenario lists readers."""
    _check_not_absent(cloud, call)
    readers = cloud.scenario.project.secret_readers
    members = ["allAuthenticatedUsers"] if readers is None else [f"serviceAccount:{email}" for email in readers]
    return {"version": 1, "bindings": [{"role": _ACCESSOR, "members": members}]} if members else {"version": 1}


def test_permissions(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    if call.query["secret"] in cloud.scenario.denied_secrets:
        return {}
    return iam.test_permissions(cloud, call, "secretmanager.v1")


def _check_not_absent(cloud: Cloud, call: ApiCall) -> None:
    """Raise ApiError for a secret that does not exist. One that may not be read is not hidden."""
    if call.query["secret"] not in cloud.scenario.denied_secrets:
        _check_exists(cloud.scenario, call.project, call.query["secret"])


def _check_exists(scenario: Scenario, project: str, secret: str) -> None:
    if scenario.secrets is not None and secret not in scenario.secrets:
        raise wire.refuse(5, f"Secret [projects/{project}/secrets/{secret}] not found or has no versions.")
