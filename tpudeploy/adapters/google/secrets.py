"""Secret Manager, for the one secret that we ourselves read: the API key of an endpoint that wants one."""

from __future__ import annotations

import base64

from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.translate import Absent, Precondition, translated
from tpudeploy.domain import errors


def read(connection: Connection, project: str, secret: str) -> str:
    """The secret's value, as the machine's shell reads it: without line ends after it.

    Raise `errors.Denied` where it is absent, not ours to read, or cannot be sent; `errors.Fault` on a fault.
    """
    name = version_name(project, secret)
    calls = connection.collection("secretmanager", "v1", "projects", "secrets", "versions")
    try:
        with translated(f"read the secret {secret}"):
            answer = calls.access(name=name).execute(num_retries=0)
    except (Absent, Precondition, errors.Refused) as cause:
        raise errors.Denied(
            f"Could not read the secret {secret}: {cause}",
            hint="Create it, or grant yourself roles/secretmanager.secretAccessor.",
        ) from cause
    value = base64.b64decode(answer["payload"]["data"]).decode(errors="replace").rstrip("\n")
    if not (value.isascii() and value.isprintable()):
        # Said here, without the value: whoever builds the header would quote it in an error.
        raise errors.Denied(
            f"The secret {secret} holds a character that no HTTP header takes.",
            hint="Add a version that is one line of printable ASCII.",
        )
    return value


def version_name(project: str, secret: str) -> str:
    """The full name of the version that a profile means by an id, or by a resource name with or without version."""
    name = secret if secret.startswith("projects/") else f"projects/{project}/secrets/{secret}"
    return name if "/versions/" in name else f"{name}/versions/latest"
