"""Who holds a lock: what this run writes into one, and what is read out of another's."""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tpudeploy.domain.lock import LockInfo
from tpudeploy.version import VERSION

# Where a pipeline says which page shows this run; ours first, for those that say it nowhere.
_RUN_URLS = ("TPUDEPLOY_RUN_URL", "CI_JOB_URL", "BUILDKITE_BUILD_URL", "CIRCLE_BUILD_URL")
_GITHUB = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")


def who() -> str:
    """user@host, for locks and goals."""
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def this_run(who: str, operation: str, now: float) -> LockInfo:
    """A lock's content, with an id of its own."""
    return LockInfo(
        id=uuid.uuid4().hex,
        operation=operation,
        who=who,
        host=socket.gethostname(),
        pid=os.getpid(),
        created=now,
        heartbeat=now,
        version=VERSION,
        run_url=run_url(os.environ),
    )


def run_url(environment: Mapping[str, str]) -> str:
    """The page of this run; empty outside a pipeline."""
    if all(environment.get(name) for name in _GITHUB):
        server, repository, run = (environment[name] for name in _GITHUB)
        return environment.get("TPUDEPLOY_RUN_URL") or f"{server}/{repository}/actions/runs/{run}"
    return next((environment[name] for name in _RUN_URLS if environment.get(name)), "")


def dumps(info: LockInfo) -> str:
    return json.dumps(asdict(info))


def loads(text: str | bytes) -> LockInfo | None:
    """None for what is no lock of ours: empty, or not written yet."""
    try:
        tree: Mapping[str, Any] = json.loads(text)
        return LockInfo(
            id=str(tree["id"]),
            operation=str(tree["operation"]),
            who=str(tree["who"]),
            pid=int(tree["pid"]),
            created=float(tree["created"]),
            version=str(tree["version"]),
            run_url=str(tree.get("run_url", "")),
            host=str(tree.get("host", "")),
            heartbeat=float(tree.get("heartbeat", tree["created"])),
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None


def told(info: LockInfo | None) -> str:
    """The holder in a sentence."""
    if info is None:
        return "another run"
    page = f", {info.run_url}" if info.run_url else ""
    return f"{info.who} (process {info.pid}, `{info.operation}`{page})"
