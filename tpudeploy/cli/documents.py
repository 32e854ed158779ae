"""Build the documents that `--json` prints and that agent tools return."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.orphans import Orphans
from tpudeploy.domain.report import RunReport

Document = dict[str, object]


def text(document: Mapping[str, object]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)


def gc(garbage: Orphans, report: RunReport | None, error: TpudeployError | None) -> Document:
    """Return the orphans, the report of their removal, and the error that stopped it; either may be null."""
    report_document = None if report is None else report.to_dict()
    return {**garbage.to_dict(), "report": report_document, "error": None if error is None else error.to_dict()}


def completion(shell: str, script: str) -> Document:
    return {"format": "tpudeploy.completion/1", "shell": shell, "script": script}


def shipped_profiles(names: Iterable[str]) -> Document:
    return {"format": "tpudeploy.profiles/1", "profiles": list(names)}


def emulator(environment: Mapping[str, str]) -> Document:
    """Return the variables that send every Google call to the emulator."""
    return {"format": "tpudeploy.emulator/1", "environment": dict(environment)}


def router(name: str, restarts: int) -> Document:
    """Return how often the router was started again, once it has ended."""
    return {"format": "tpudeploy.router/1", "name": name, "restarts": restarts}
