"""The pipeline that runs us: what it says of itself in its environment, and the files that it reads when we are done.

GitHub's variables and files, and GitLab's variables, as their documentation has them. Elsewhere all of it is empty, and
nothing is written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tpudeploy.adapters.state.holder import run_url
from tpudeploy.core.approval import MIN_KEY_LENGTH
from tpudeploy.domain.errors import OutputFailed, UsageError
from tpudeploy.domain.forge import Host, Pipeline, SignedPlan

KEY = "TPUDEPLOY_APPROVAL_KEY"
_BRANCH = "refs/heads/"


def pipeline(environment: Mapping[str, str]) -> Pipeline:
    """Raise `errors.UsageError` where the file of the event cannot be read."""
    if environment.get("GITHUB_REPOSITORY"):
        return _github(environment)
    if environment.get("GITLAB_CI") and environment.get("CI_PROJECT_PATH"):
        return _gitlab(environment)
    return Pipeline(event=environment.get("GITHUB_EVENT_NAME", ""), run_url=run_url(environment))


@contextmanager
def approval_key() -> Iterator[str]:
    """The secret that approvals are signed with, or "". Meanwhile it is not in the environment.

    Profiles of a pull request are read meanwhile, and programs started: neither has any business with it. Raise
    `errors.UsageError` for a key that could be guessed.
    """
    variable = os.environ.pop(KEY, None)
    key = (variable or "").strip()
    try:
        if key and len(key) < MIN_KEY_LENGTH:
            raise UsageError(
                f"{KEY} has fewer than {MIN_KEY_LENGTH} characters, so a signature made with it could be forged.",
                hint="Make a key with `openssl rand -hex 32`, and store it as a secret of the protected environments.",
            )
        yield key
    finally:
        if variable is not None:
            os.environ[KEY] = variable


def _github(environment: Mapping[str, str]) -> Pipeline:
    event = _event(environment.get("GITHUB_EVENT_PATH", ""))
    pull = event.get("pull_request") or {}
    head, base = pull.get("head") or {}, pull.get("base") or {}
    repository = environment["GITHUB_REPOSITORY"]
    theirs = (head.get("repo") or {}).get("full_name")  # null once a fork is deleted
    reference = environment.get("GITHUB_REF", "")
    pushed = reference.removeprefix(_BRANCH) if reference.startswith(_BRANCH) else ""
    return Pipeline(
        host=Host.GITHUB,
        repository=repository,
        commit=str(head.get("sha") or environment.get("GITHUB_SHA", "")),
        branch=str(base.get("ref") or "") if pull else pushed,
        event=environment.get("GITHUB_EVENT_NAME", ""),
        pull=pull.get("number"),
        is_fork=bool(pull) and theirs != repository,
        run_url=run_url(environment),
    )


def _gitlab(environment: Mapping[str, str]) -> Pipeline:
    """By the variables that GitLab predefines. `CI_COMMIT_BRANCH` is absent from pipelines of merge requests and tags.

    A member can run a fork's merge request with the project's own variables: its profiles are a stranger's even then.
    """
    number = environment.get("CI_MERGE_REQUEST_IID", "")
    source = environment.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID")
    return Pipeline(
        host=Host.GITLAB,
        repository=environment["CI_PROJECT_PATH"],
        commit=environment.get("CI_COMMIT_SHA", ""),
        branch=environment.get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME") or environment.get("CI_COMMIT_BRANCH", ""),
        event=environment.get("CI_PIPELINE_SOURCE", ""),
        pull=int(number) if number.isdecimal() else None,
        is_fork=bool(number) and source != environment.get("CI_PROJECT_ID"),
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


def signed_plan(folder: Path) -> SignedPlan:
    """The files that a `ci plan` wrote there, and that may have gone through other jobs since.

    Raise `errors.UsageError` where they cannot be read; a plan that was not signed has an empty signature.
    """
    try:
        summary = (folder / "plan.md").read_text(encoding="utf-8")
        signed = folder / "approval"
        return SignedPlan(signed=signed.read_text(encoding="utf-8") if signed.exists() else "", summary=summary)
    except (OSError, ValueError) as cause:
        raise UsageError(
            f"The plan in {folder} cannot be read: {cause}.", hint="Pass the folder that `ci plan -artifacts` wrote."
        ) from cause


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
