"""Who may do what in a project: APIs, permissions, the machine's service account, secrets and their readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.secrets import version_name
from tpudeploy.adapters.google.told import Asking, results, told
from tpudeploy.catalog.access import ACT_AS, APIS, PERMISSIONS, READ_SECRET, SECRET_READERS
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.surroundings import Access, Account, Secret

_SEES_POLICIES = "roles/iam.securityReviewer"
_SEES_SECRETS = "roles/secretmanager.viewer"
_SEES_ACCOUNTS = "roles/iam.serviceAccountViewer"
_SEES_APIS = "roles/serviceusage.serviceUsageViewer"


def read(connection: Connection, of: Deployment, ask: Asking) -> Access:
    """Everything here, at once; never raises."""
    project = of.project or ""
    identity = ask.told("use the credentials", connection.identity)
    on = ask.told("see which APIs are on", partial(apis, connection, project, APIS), role=_SEES_APIS)
    held = ask.told("see what you may do", partial(permissions, connection, project, tuple(PERMISSIONS)))
    runs_as = ask.found(
        "look up its service account", partial(account, connection, project, of.service_account), role=_SEES_ACCOUNTS
    )
    secrets = {
        s.variable: ask.found(f"look up {s.secret}", partial(secret, connection, project, s.secret), role=_SEES_SECRETS)
        for s in of.container.secrets
    }
    return Access(
        identity=identity.result(),
        apis=on.result(),
        permissions=held.result(),
        account=runs_as.result(),
        secrets=results(secrets),
    )


def apis(connection: Connection, project: str, names: Sequence[str]) -> Mapping[str, bool]:
    """Whether each is enabled. Raises Google's errors, as all here that do not say otherwise."""
    calls = connection.collection("serviceusage", "v1", "services")
    asked = [f"projects/{project}/services/{name}" for name in names]
    answer = calls.batchGet(parent=f"projects/{project}", names=asked).execute(num_retries=0)
    # In the order of the names; the answer's own names hold the project's number.
    states = {str(s["name"]).rpartition("/")[2]: s.get("state") == "ENABLED" for s in answer.get("services", ())}
    return {name: states.get(name, False) for name in names}


def permissions(connection: Connection, project: str, names: Sequence[str]) -> frozenset[str]:
    """Which of these we have in the project."""
    calls = connection.collection("cloudresourcemanager", "v3", "projects")
    return _held(calls.testIamPermissions(resource=f"projects/{project}", body={"permissions": list(names)}))


def account(connection: Connection, project: str, email: str | None) -> Account:
    """The account, or the project's compute account where none is named. A 404: it does not exist."""
    calls = connection.collection("iam", "v1", "projects", "serviceAccounts")
    known = email if email is not None else f"{_number(connection, project)}-compute@developer.gserviceaccount.com"
    name = f"projects/{project if email is None else '-'}/serviceAccounts/{known}"
    found = calls.get(name=name).execute(num_retries=0)
    may = told(
        "see whether you may let a machine be it",
        lambda: ACT_AS in _held(calls.testIamPermissions(resource=name, body={"permissions": [ACT_AS]})),
    )
    return Account(email=str(found.get("email", known)), is_disabled=bool(found.get("disabled")), may_act=may)


def secret(connection: Connection, project: str, named: str) -> Secret:
    """What is known of a secret beside its value. A 404: the version that is meant does not exist."""
    calls = connection.collection("secretmanager", "v1", "projects", "secrets")
    versions = connection.collection("secretmanager", "v1", "projects", "secrets", "versions")
    version = version_name(project, named)
    name, _, _ = version.partition("/versions/")
    answer = versions.get(name=version).execute(num_retries=0)
    ours = told(
        "see whether you may read it",
        lambda: READ_SECRET in _held(calls.testIamPermissions(resource=name, body={"permissions": [READ_SECRET]})),
    )
    readers = told("read its policy", lambda: _readers(connection, name), role=_SEES_POLICIES)
    return Secret(state=str(answer.get("state", "")), is_ours_to_read=ours, readers=readers)


def _readers(connection: Connection, secret: str) -> frozenset[str]:
    """Of the secret's policy and its project's. A folder's or an organisation's may add to them."""
    calls = connection.collection("secretmanager", "v1", "projects", "secrets")
    projects = connection.collection("cloudresourcemanager", "v3", "projects")
    own = calls.getIamPolicy(resource=secret).execute(num_retries=0)
    project = "/".join(secret.split("/")[:2])
    above = projects.getIamPolicy(resource=project, body={}).execute(num_retries=0)
    return frozenset(member for policy in (own, above) for member in _members(policy))


def _members(policy: Mapping[str, Any]) -> Iterator[str]:
    for binding in policy.get("bindings", ()):
        if binding.get("role") in SECRET_READERS and "condition" not in binding:
            yield from map(str, binding.get("members", ()))


def _held(request: Any) -> frozenset[str]:
    return frozenset(request.execute(num_retries=0).get("permissions", ()))


def _number(connection: Connection, project: str) -> str:
    calls = connection.collection("cloudresourcemanager", "v3", "projects")
    answer = calls.get(name=f"projects/{project}").execute(num_retries=0)
    return str(answer["name"]).rpartition("/")[2]
