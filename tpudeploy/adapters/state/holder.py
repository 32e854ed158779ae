"""The holder of a lock: the content that this run writes, and the parsed content of another run's lock."""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any

from tpudeploy.domain.lock import LockInfo
from tpudeploy.version import VERSION

# The variables in which pipelines give the URL of this run; ours comes first, for pipelines that have none.
_RUN_URLS = ("TPUDEPLOY_RUN_URL", "CI_JOB_URL", "BUILDKITE_BUILD_URL", "CIRCLE_BUILD_URL")
_GITHUB = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")


def who() -> str:
    """Return user@host, for locks and approvals."""
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def this_run(who: str, operation: str, now: float) -> LockInfo:
    """Return the content of a new lock, with its own id."""
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
    """Return the URL of this run's page, or "" outside a pipeline."""
    if all(environment.get(name) for name in _GITHUB):
        server, repository, run = (environment[name] for name in _GITHUB)
        return environment.get("TPUDEPLOY_RUN_URL") or f"{server}/{repository}/actions/runs/{run}"
    return next((environment[name] for name in _RUN_URLS if environment.get(name)), "")


def dumps(info: LockInfo) -> str:
    return json.dumps({field.name: getattr(info, field.name) for field in fields(info)})


def loads(text: str | bytes) -> LockInfo | None:
    """Return the holder in a lock's content, or None if the content is empty or malformed."""
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


def describe(info: LockInfo | None) -> str:
    """Return the holder as part of a sentence."""
    if info is None:
        return "another run"
    page = f", {info.run_url}" if info.run_url else ""
    return f"{info.who} (process {info.pid}, `{info.operation}`{page})"


def age(since: float, now: float) -> str:
    """Return how long ago that was, as 0:01:05."""
    return str(timedelta(seconds=round(max(0.0, now - since))))
