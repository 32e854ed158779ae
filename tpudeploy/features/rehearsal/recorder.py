"""Record what is said to Google's APIs, as fixtures without secrets: one file for each exchange."""

from __future__ import annotations

import json
import threading
from typing import Any

from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.state import disk
from tpudeploy.features.rehearsal.redaction import Exchange, Redaction

_UNSAFE = str.maketrans(dict.fromkeys("/:?&=%$.,;", "-"))
_MOST_LETTERS = 60


class Recorder:
    """Writes each exchange of a connection into `folder`, redacted, and keeps the last few as they were."""

    def __init__(self, connection: CloudConnection, folder: disk.Folder, redaction: Redaction) -> None:
        self._folder = folder
        self._redaction = redaction
        self._lock = threading.Lock()
        self._count = len(folder.files(".json"))
        self._creates: dict[str, Exchange] = {}
        connection.on_exchange = self._record

    def last_create(self, kind: str) -> Exchange | None:
        """Return the last request that created a resource of this kind (`queuedResources`, `instances`)."""
        return self._creates.get(kind)

    def _record(self, method: str, url: str, body: Any, status: int, content: bytes) -> None:
        exchange = Exchange(method=method, url=url, body=_parse(body), status=status, reply=_parse(content))
        path = url.partition("://")[2].partition("/")[2].partition("?")[0]
        with self._lock:
            self._count += 1
            if method == "POST":
                self._creates[path.rpartition("/")[2]] = exchange
            safe_path = self._redaction.text(path).translate(_UNSAFE)[-_MOST_LETTERS:].strip("-")
            name = f"{self._count:04d}-{method}-{safe_path}.json"
        text = json.dumps(self._redaction.redact(exchange), indent=1, ensure_ascii=False)
        self._folder.replace(name, f"{text}\n")


def _parse(body: Any) -> Any:
    """Return a body as JSON, or as text where it is not JSON; None for none."""
    if not body:
        return None
    text = body.decode(errors="replace") if isinstance(body, bytes) else str(body)
    try:
        return json.loads(text)
    except ValueError:
        return text
