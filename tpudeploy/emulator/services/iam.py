"""IAM: whether a service account exists, and whether the caller may let a machine run as it."""

from __future__ import annotations

from typing import Any

from tpudeploy.emulator import wire
from tpudeploy.emulator.call import Call
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.services import permissions


def get(cloud: Cloud, call: Call) -> dict[str, Any]:
    email = _existing(cloud, call)
    name = f"projects/{call.project}/serviceAccounts/{email}"
    return {"name": name, "projectId": call.project, "email": email, "uniqueId": "1"}


def test_permissions(cloud: Cloud, call: Call) -> dict[str, Any]:
    _existing(cloud, call)
    return permissions.held(cloud, call, "iam.v1")


def _existing(cloud: Cloud, call: Call) -> str:
    email, known = call.query["email"], cloud.scenario.project.service_accounts
    if known is not None and email not in known:
        raise wire.refuse(5, f"Unknown service account: {email}")  # UNVERIFIED
    return email
