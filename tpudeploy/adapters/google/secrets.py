"""Secret Manager, for the one secret that we read ourselves: the API key of an endpoint that requires one."""

from __future__ import annotations

import base64

from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.translate import Absent, PreconditionFailed, translate_errors
from tpudeploy.domain import errors


def read(connection: CloudConnection, project: str, secret: str) -> str:
    """Return the secret's value without trailing line ends, as the machine's shell reads it.

    Raise `errors.Denied` where it is absent, unreadable, or cannot be sent in a header; `errors.Fault` on a fault.
    """
    name = version_name(project, secret)
    calls = connection.collection("secretmanager", "v1", "projects", "secrets", "versions")
    try:
        with translate_errors(f"read the secret {secret}"):
            answer = calls.access(name=name).execute(num_retries=0)
    except (Absent, PreconditionFailed, errors.Refused) as cause:
        reason = cause.message if isinstance(cause, errors.Refused) else cause
        raise errors.Denied(
            f"Could not read the secret {secret}: {reason}",
            hint="Create it, or grant yourself roles/secretmanager.secretAccessor.",
        ) from cause
    value = base64.b64decode(answer["payload"]["data"]).decode(errors="replace").rstrip("\n")
    if not (value.isascii() and value.isprintable()):
        # Raised here, without the value, because the code that builds the header would quote it in its error.
        raise errors.Denied(
            f"The secret {secret} contains a character that is not allowed in an HTTP header.",
            hint="Add a version that is one line of printable ASCII.",
        )
    return value


def version_name(project: str, secret: str) -> str:
    """Return the full name of a secret's version, given an id or a resource name with or without a version."""
    name = secret if secret.startswith("projects/") else f"projects/{project}/secrets/{secret}"
    return name if "/versions/" in name else f"{name}/versions/latest"
