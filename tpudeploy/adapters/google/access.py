"""Access in a project: enabled APIs, permissions, the machine's service account, secrets and their readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.safe_read import SafeReader, results, safe_read
from tpudeploy.adapters.google.secrets import version_name
from tpudeploy.catalog.access import (
    ACT_AS,
    APIS,
    READ_SECRET,
    ROLES_THAT_END,
    SECRET_READERS,
    end_permissions,
    needed_permissions,
)
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.project_facts import Account, ProjectAccess, Secret

_VIEWER_OF_POLICIES = "roles/iam.securityReviewer"
_VIEWER_OF_SECRETS = "roles/secretmanager.viewer"
_VIEWER_OF_ACCOUNTS = "roles/iam.serviceAccountViewer"
_VIEWER_OF_APIS = "roles/serviceusage.serviceUsageViewer"


def read(connection: CloudConnection, deployment: Deployment, reader: SafeReader) -> ProjectAccess:
    """Return all access facts of the deployment's project, read in parallel. Never raises."""
    project = deployment.project or ""
    identity = reader.read("use the credentials", connection.identity)
    enabled_apis = reader.read("see which APIs are on", partial(apis, connection, project, APIS), role=_VIEWER_OF_APIS)
    needed = [name for uses in needed_permissions(deployment).values() for name in uses]
    granted = reader.read("see what you may do", partial(permissions, connection, project, needed))
    runs_as = reader.read_optional(
        "look up its service account",
        partial(account, connection, project, deployment.service_account),
        role=_VIEWER_OF_ACCOUNTS,
    )
    members = (
        None
        if not end_permissions(deployment)
        else reader.read(
            "see what its service account may do",
            partial(_permissions_of_members, connection, project),
            role=_VIEWER_OF_POLICIES,
        )
    )
    secrets = {
        s.variable: reader.read_optional(
            f"look up {s.secret}", partial(secret, connection, project, s.secret), role=_VIEWER_OF_SECRETS
        )
        for s in deployment.container.secrets
    }
    return ProjectAccess(
        identity=identity.result(),
        apis=enabled_apis.result(),
        permissions=granted.result(),
        account=runs_as.result(),
        secrets=results(secrets),
        permissions_of_members={} if members is None else members.result(),
    )


def apis(connection: CloudConnection, project: str, names: Sequence[str]) -> Mapping[str, bool]:
    """Return for each API whether it is enabled.

    Raises Google's errors, as does every function of this module that does not say otherwise.
    """
    calls = connection.collection("serviceusage", "v1", "services")
    full_names = [f"projects/{project}/services/{name}" for name in names]
    answer = calls.batchGet(parent=f"projects/{project}", names=full_names).execute(num_retries=0)
    # The names in the answer hold the project's number, so each is matched by its last part.
    states = {str(s["name"]).rpartition("/")[2]: s.get("state") == "ENABLED" for s in answer.get("services", ())}
    return {name: states.get(name, False) for name in names}


def permissions(connection: CloudConnection, project: str, names: Sequence[str]) -> frozenset[str]:
    """Return those of the named permissions that the caller has in the project."""
    calls = connection.collection("cloudresourcemanager", "v3", "projects")
    return _granted(calls, f"projects/{project}", names)


def account(connection: CloudConnection, project: str, email: str | None) -> Account:
    """Return the named service account, or the project's default compute account. A 404 means that it is absent."""
    calls = connection.collection("iam", "v1", "projects", "serviceAccounts")
    address = email if email is not None else f"{_number(connection, project)}-compute@developer.gserviceaccount.com"
    name = f"projects/{project if email is None else '-'}/serviceAccounts/{address}"
    response = calls.get(name=name).execute(num_retries=0)
    may = safe_read(
        "check whether you may run a machine as it",
        lambda: ACT_AS in _granted(calls, name, [ACT_AS]),
    )
    return Account(
        email=str(response.get("email", address)), is_disabled=bool(response.get("disabled")), may_be_attached=may
    )


def secret(connection: CloudConnection, project: str, reference: str) -> Secret:
    """Return the state and the readers of a secret, not its value. A 404 means that the version does not exist."""
    calls = connection.collection("secretmanager", "v1", "projects", "secrets")
    versions = connection.collection("secretmanager", "v1", "projects", "secrets", "versions")
    version = version_name(project, reference)
    name, _, _ = version.partition("/versions/")
    answer = versions.get(name=version).execute(num_retries=0)
    is_readable = safe_read(
        "see whether you may read it",
        lambda: READ_SECRET in _granted(calls, name, [READ_SECRET]),
    )
    readers = safe_read("read its policy", lambda: _readers(connection, name), role=_VIEWER_OF_POLICIES)
    return Secret(state=str(answer.get("state", "")), is_ours_to_read=is_readable, readers=readers)


def _readers(connection: CloudConnection, secret: str) -> frozenset[str]:
    """Return the members that may read the secret by its own policy or its project's.

    A policy of a folder or an organisation can add to them; those are not read.
    """
    calls = connection.collection("secretmanager", "v1", "projects", "secrets")
    projects = connection.collection("cloudresourcemanager", "v3", "projects")
    own = calls.getIamPolicy(resource=secret).execute(num_retries=0)
    project = "/".join(secret.split("/")[:2])
    above = projects.getIamPolicy(resource=project, body={}).execute(num_retries=0)
    return frozenset(member for policy in (own, above) for member in _members(policy))


def _permissions_of_members(connection: CloudConnection, project: str) -> Mapping[str, frozenset[str]]:
    """Return which permissions to end a machine each member of the project's policy has, in the form of policies.

    A policy of a folder or an organisation can add to them; those are not read.
    """
    projects = connection.collection("cloudresourcemanager", "v3", "projects")
    roles = connection.collection("iam", "v1", "projects", "roles")
    policy = projects.getIamPolicy(resource=f"projects/{project}", body={}).execute(num_retries=0)
    granted: dict[str, frozenset[str]] = {}
    for binding in policy.get("bindings", ()):
        role = str(binding.get("role"))
        permissions = ROLES_THAT_END.get(role, frozenset())
        if role.startswith("projects/"):
            answer = roles.get(name=role).execute(num_retries=0)
            permissions = frozenset(map(str, answer.get("includedPermissions", ())))
        for member in binding.get("members", ()) if "condition" not in binding else ():
            granted[str(member)] = granted.get(str(member), frozenset()) | permissions
    return granted


def _members(policy: Mapping[str, Any]) -> Iterator[str]:
    for binding in policy.get("bindings", ()):
        if binding.get("role") in SECRET_READERS and "condition" not in binding:
            yield from map(str, binding.get("members", ()))


def _granted(calls: Any, resource: str, names: Sequence[str]) -> frozenset[str]:
    """Return those of the named permissions that the caller has on a resource of the collection `calls`."""
    request = calls.testIamPermissions(resource=resource, body={"permissions": list(names)})
    return frozenset(request.execute(num_retries=0).get("permissions", ()))


def _number(connection: CloudConnection, project: str) -> str:
    calls = connection.collection("cloudresourcemanager", "v3", "projects")
    answer = calls.get(name=f"projects/{project}").execute(num_retries=0)
    return str(answer["name"]).rpartition("/")[2]
