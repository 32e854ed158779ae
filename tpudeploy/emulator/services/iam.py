"""Cloud Resource Manager and IAM: the project, its service accounts, and what the caller may do with either."""

from __future__ import annotations

from typing import Any

from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.emulator import discovery, wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.services.service_usage import NUMBER
from tpudeploy.emulator.wire import ApiCall

_END = "tpudeployEnd"


def get_project(cloud: Cloud, call: ApiCall) -> dict[str, Any]:  # noqa: ARG001  every method takes the cloud
    return {"name": f"projects/{NUMBER}", "projectId": call.project, "state": "ACTIVE"}


def get_project_policy(cloud: Cloud, call: ApiCall) -> dict[str, Any]:  # noqa: ARG001  every method takes the cloud
    """Return the owner and a role by which machines end themselves: the policy of a secret says who may read it."""
    discovery.accept(call.body or {}, "GetIamPolicyRequest", "cloudresourcemanager.v3", at="get_iam_policy_request")
    end = {"role": f"projects/{call.project}/roles/{_END}", "members": ["allAuthenticatedUsers"]}
    return {"version": 1, "bindings": [{"role": "roles/owner", "members": ["user:owner@example.com"]}, end]}


def get_role(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Return the custom role of the machines, without what the scenario denies them."""
    if call.query["role"] != _END:
        raise wire.refuse(5, f"The role named {call.query['role']} was not found.")  # UNVERIFIED
    denied = cloud.scenario.project.denied_machine_permissions
    permissions = [each for row in BACKENDS.values() for each in row.deletion_permissions if each not in denied]
    return {"name": f"projects/{call.project}/roles/{_END}", "includedPermissions": permissions, "stage": "GA"}


def test_project(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    return test_permissions(cloud, call, "cloudresourcemanager.v3")


def get_account(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    email = _existing_email(cloud, call)
    name = f"projects/{call.project}/serviceAccounts/{email}"
    return {"name": name, "projectId": call.project, "email": email, "uniqueId": "1"}


def test_account(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    _existing_email(cloud, call)
    return test_permissions(cloud, call, "iam.v1")


def test_permissions(cloud: Cloud, call: ApiCall, document: str) -> dict[str, Any]:
    """Return those of the permissions in question that the caller has; where it has none, the field is left out.

    Every service answers testIamPermissions in this form. Raise ApiError for an invalid body or permission.
    """
    schema = "TestIamPermissionsRequest"
    body = discovery.accept(call.body or {}, schema, document, at="test_iam_permissions_request")
    permissions: list[str] = body.get("permissions", [])
    for permission in permissions:
        if permission.count(".") != 2 or "*" in permission:  # noqa: PLR2004  service.resource.verb
            raise wire.refuse(3, f"Permission {permission} is not valid.")
    granted = [p for p in permissions if p not in cloud.scenario.project.denied_permissions]
    return {"permissions": granted} if granted else {}


def _existing_email(cloud: Cloud, call: ApiCall) -> str:
    email, existing = call.query["email"], cloud.scenario.project.service_accounts
    if existing is not None and email not in existing:
        raise wire.refuse(5, f"Unknown service account: {email}")  # UNVERIFIED
    return email
