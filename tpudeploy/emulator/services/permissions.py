"""testIamPermissions, which every service answers in the same form: of what was asked, what the caller may do."""

from __future__ import annotations

from typing import Any

from tpudeploy.emulator import discovery, wire
from tpudeploy.emulator.call import Call
from tpudeploy.emulator.cloud import Cloud


def held(cloud: Cloud, call: Call, document: str) -> dict[str, Any]:
    """Raise Refusal for a body that is none, or a permission with a wildcard. None held: the field is left out."""
    schema = "TestIamPermissionsRequest"
    body = discovery.accept(call.body or {}, schema, document, at="test_iam_permissions_request")
    asked: list[str] = body.get("permissions", [])
    for permission in asked:
        if permission.count(".") != 2 or "*" in permission:  # noqa: PLR2004  service.resource.verb
            raise wire.refuse(3, f"Permission {permission} is not valid.")
    left = [p for p in asked if p not in cloud.scenario.project.denied_permissions]
    return {"permissions": left} if left else {}
