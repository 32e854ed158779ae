"""Secret Manager beside `versions.access`: whether a version is there, and who may read it."""

from __future__ import annotations

from typing import Any

from tpudeploy.emulator import secrets, wire
from tpudeploy.emulator.call import Call
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.services import permissions

_ACCESSOR = "roles/secretmanager.secretAccessor"


def get_version(cloud: Cloud, call: Call) -> dict[str, Any]:
    secret, version = call.query["secret"], call.query["version"]
    _check(cloud, call, secret)
    number = "1" if version == "latest" else version
    return {"name": f"projects/{call.project}/secrets/{secret}/versions/{number}", "state": "ENABLED"}


def policy(cloud: Cloud, call: Call) -> dict[str, Any]:
    """Without a list of readers, whoever has a Google account is one."""
    _check(cloud, call, call.query["secret"])
    readers = cloud.scenario.project.secret_readers
    members = ["allAuthenticatedUsers"] if readers is None else [f"serviceAccount:{email}" for email in readers]
    return {"version": 1, "bindings": [{"role": _ACCESSOR, "members": members}]} if members else {"version": 1}


def test_permissions(cloud: Cloud, call: Call) -> dict[str, Any]:
    if call.query["secret"] in cloud.scenario.denied_secrets:
        return {}
    return permissions.held(cloud, call, "secretmanager.v1")


def _check(cloud: Cloud, call: Call, secret: str) -> None:
    """Raise Refusal for a secret that is absent; that it may not be read does not hide it."""
    name = f"projects/{call.project}/secrets/{secret}/versions/latest"
    http, text = secrets.access(cloud.scenario, name)
    if http == 404:  # noqa: PLR2004  HTTP
        raise wire.refuse(5, text)
