"""Cloud Resource Manager: the project's number, its policy, what the caller may do in it."""

from __future__ import annotations

from typing import Any

from tpudeploy.emulator import discovery
from tpudeploy.emulator.call import Call
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.services import permissions
from tpudeploy.emulator.services.service_usage import NUMBER


def get(cloud: Cloud, call: Call) -> dict[str, Any]:  # noqa: ARG001  every deed takes the cloud
    return {"name": f"projects/{NUMBER}", "projectId": call.project, "state": "ACTIVE"}


def policy(cloud: Cloud, call: Call) -> dict[str, Any]:  # noqa: ARG001  every deed takes the cloud
    """Who may read a secret is said by the secret's own policy."""
    discovery.accept(call.body or {}, "GetIamPolicyRequest", "cloudresourcemanager.v3", at="get_iam_policy_request")
    return {"version": 1, "bindings": [{"role": "roles/owner", "members": ["user:owner@example.com"]}]}


def test_permissions(cloud: Cloud, call: Call) -> dict[str, Any]:
    return permissions.held(cloud, call, "cloudresourcemanager.v3")
