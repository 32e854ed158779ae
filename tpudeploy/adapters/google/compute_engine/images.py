"""The images of Compute Engine's machines: which image a family names today."""

from __future__ import annotations

from typing import Any

from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.translate import Absent, Exists, PreconditionFailed, translate_read_errors
from tpudeploy.domain.accelerator import IMAGE_PROJECT
from tpudeploy.domain.errors import CloudError
from tpudeploy.domain.facts import Unknown


def image_of_family(connection: CloudConnection, family: str) -> dict[str, Any]:
    """Return the newest image of a family, as Compute Engine shows it. Raise the errors of Google's client."""
    calls = connection.collection("compute", "v1", "images")
    image: dict[str, Any] = calls.getFromFamily(project=IMAGE_PROJECT, family=family).execute(num_retries=0)
    return image


def newest_image(connection: CloudConnection, family: str) -> str | Unknown:
    """Return the name of the newest image of a family, or `Unknown` with the reason. Never raises."""
    try:
        with translate_read_errors(f"look up the image family {family}"):
            image = image_of_family(connection, family)
    except (Absent, Exists, PreconditionFailed) as cause:
        return Unknown(because=f"{IMAGE_PROJECT} shows no image of this family: {cause}")
    except CloudError as error:
        return Unknown(because=error.message, hint=error.hint)
    return str(image["name"])
