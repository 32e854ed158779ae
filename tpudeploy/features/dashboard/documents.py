"""The JSON Schema of the document of the dashboard."""

from __future__ import annotations

from tpudeploy.schemas.documents import formatted
from tpudeploy.schemas.schema_of import TEXT

DOCUMENTS = {"dashboard": formatted("dashboard", {"url": TEXT})}
