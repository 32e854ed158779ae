"""The pipeline that runs us: what it says of itself in its environment, and the files that it reads when we are done.

GitHub's variables and files, as its documentation of workflows has them. Elsewhere all of it is empty, and nothing is
written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tpudeploy.adapters.state.holder import run_url
from tpudeploy.domain.errors import OutputFailed, UsageError
from tpudeploy.domain.forge import Pipeline


def pipeline(environment: Mapping[str, str]) -> Pipeline:
    """Raise `errors.UsageError` where the file of the event cannot be read."""
    event = _event(environment.get("GITHUB_EVENT_PATH", ""))
    pull = event.get("pull_request") or {}
    head = pull.get("head") or {}
    repository = environment.get("GITHUB_REPOSITORY", "")
    theirs = (head.get("repo") or {}).get("full_name")  # null once a fork is deleted
    return Pipeline(
        repository=repository,
        commit=str(head.get("sha") or environment.get("GITHUB_SHA", "")),
        event=environment.get("GITHUB_EVENT_NAME", ""),
        pull=pull.get("number"),
        is_fork=bool(pull) and theirs != repository,
        run_url=run_url(environment),
    )


def summarize(text: str) -> None:
    """Below the run, on its page."""
    _append("GITHUB_STEP_SUMMARY", f"{text}\n")


def outputs(of: Mapping[str, str]) -> None:
    """For the steps that follow. A value takes one line."""
    _append("GITHUB_OUTPUT", "".join(f"{name}={' '.join(value.split())}\n" for name, value in of.items()))


def keep(folder: Path, texts: Mapping[str, str]) -> None:
    """Files for whoever reads them later, by their names. Raise `errors.OutputFailed`."""
    with _told(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(f"{text}\n", encoding="utf-8")


def _append(variable: str, text: str) -> None:
    path = os.environ.get(variable)
    if path:
        with _told(Path(path)), Path(path).open("a", encoding="utf-8") as file:
            file.write(text)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as cause:
        raise OutputFailed(f"{path} cannot be written: {cause.strerror or cause}.") from cause


def _event(path: str) -> Mapping[str, Any]:
    if not path:
        return {}
    try:
        tree = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as cause:
        raise UsageError(f"GITHUB_EVENT_PATH cannot be read: {cause}.") from cause
    return tree if isinstance(tree, Mapping) else {}
