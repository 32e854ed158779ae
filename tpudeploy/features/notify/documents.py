"""The JSON Schema of a notification."""

from __future__ import annotations

from tpudeploy.features.notify.notice import EVENTS
from tpudeploy.schemas.documents import formatted
from tpudeploy.schemas.schema_of import TEXT

DOCUMENTS = {
    "notification": formatted(
        "notification",
        {
            "id": TEXT,
            "event": {"enum": list(EVENTS)},
            "at": float,
            "deployment": TEXT,
            "address": TEXT,
            "why": TEXT,
            "text": TEXT,
        },
    ),
}
