"""The CI pipeline that runs us: its environment variables, and the files that it reads from us afterwards.

It reads GitHub's variables and files and GitLab's variables, as documented. Elsewhere, all values are empty and
nothing is written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tpudeploy.adapters.files import read_file
from tpudeploy.adapters.state import disk
from tpudeploy.adapters.state.holder import run_url
from tpudeploy.domain.errors import OutputFailed, StateError, UsageError
from tpudeploy.features.gitops.approval import MIN_KEY_LENGTH
from tpudeploy.features.gitops.forge import Host, Pipeline, SignedPlan

KEY = "TPUDEPLOY_APPROVAL_KEY"
_BRANCH = "refs/heads/"
_MOST_BYTES = 64 * 2**20  # of an event, and of a plan as Markdown


def pipeline(environment: Mapping[str, str]) -> Pipeline:
    """Return the pipeline that this process runs in. Raise `errors.UsageError` where its event file cannot be read."""
    if environment.get("GITHUB_REPOSITORY"):
        return _github(environment)
    if environment.get("GITLAB_CI") and environment.get("CI_PROJECT_PATH"):
        return _gitlab(environment)
    return Pipeline(event=environment.get("GITHUB_EVENT_NAME", ""), run_url=run_url(environment))


@contextmanager
def approval_key() -> Iterator[str]:
    """Yield the secret that signs approvals, or "". It is removed from the environment for as long as this is open.

    In that time, profiles of a pull request are read and programs are started, and neither must see the secret. Raise
    `errors.UsageError` for a key that is too short.
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
    pull = _object(_event(environment.get("GITHUB_EVENT_PATH", "")), "pull_request")
    head, base, number = _object(pull, "head"), _object(pull, "base"), pull.get("number")
    if pull and (not isinstance(number, int) or isinstance(number, bool)):
        raise UsageError(
            "GITHUB_EVENT_PATH does not name an event of GitHub: the number of its pull request is no number."
        )
    repository = environment["GITHUB_REPOSITORY"]
    head_repository = _object(head, "repo").get("full_name")  # `repo` is null after a fork is deleted
    reference = environment.get("GITHUB_REF", "")
    pushed_branch = reference.removeprefix(_BRANCH) if reference.startswith(_BRANCH) else ""
    return Pipeline(
        host=Host.GITHUB,
        repository=repository,
        commit=str(head.get("sha") or environment.get("GITHUB_SHA", "")),
        branch=str(base.get("ref") or "") if pull else pushed_branch,
        event=environment.get("GITHUB_EVENT_NAME", ""),
        pull=number,
        is_fork=bool(pull) and head_repository != repository,
        run_url=run_url(environment),
    )


def _gitlab(environment: Mapping[str, str]) -> Pipeline:
    """Read GitLab's predefined variables. `CI_COMMIT_BRANCH` is absent from pipelines of merge requests and tags.

    A member can run a fork's merge request with the project's variables; its profiles are untrusted even then.
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
    """Append Markdown to the summary on the run's page."""
    _append("GITHUB_STEP_SUMMARY", f"{text}\n")


def outputs(values: Mapping[str, str]) -> None:
    """Set the outputs that later steps can read. Each value is reduced to one line."""
    _append("GITHUB_OUTPUT", "".join(f"{name}={' '.join(value.split())}\n" for name, value in values.items()))


def keep(folder: Path, texts: Mapping[str, str]) -> None:
    """Write files for later jobs, by name. Raise `errors.OutputFailed`."""
    try:
        files = disk.Folder.for_file(folder / "plan.json")
        for name, text in texts.items():
            files.replace(name, f"{text}\n")
    except StateError as cause:
        raise OutputFailed(cause.message) from cause


def signed_plan(folder: Path) -> SignedPlan:
    """Read the files that `ci plan` wrote to a folder. Other jobs may have changed them since.

    Raise `errors.UsageError` where they cannot be read. A plan without a signature has an empty one.
    """
    try:
        summary = _text(folder / "plan.md")
        signed = folder / "approval"
        return SignedPlan(signed=_text(signed) if signed.exists() else "", summary=summary)
    except (OSError, ValueError) as cause:
        raise UsageError(
            f"The plan in {folder} cannot be read: {cause}.", hint="Pass the folder that `ci plan -artifacts` wrote."
        ) from cause


def _text(path: Path) -> str:
    return read_file(path, _MOST_BYTES).decode("utf-8")


def _append(variable: str, text: str) -> None:
    path = os.environ.get(variable)
    if path:
        with _output_errors(Path(path)), Path(path).open("a", encoding="utf-8") as file:
            file.write(text)


@contextmanager
def _output_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as cause:
        raise OutputFailed(f"{path} cannot be written: {cause.strerror or cause}.") from cause


def _object(tree: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return an object of the event, which is empty for null or none. Raise `errors.UsageError` for another type."""
    value = tree.get(key) or {}
    if not isinstance(value, Mapping):
        raise UsageError(f"GITHUB_EVENT_PATH does not name an event of GitHub: its `{key}` is no object.")
    return value


def _event(path: str) -> Mapping[str, Any]:
    if not path:
        return {}
    try:
        tree = json.loads(_text(Path(path)))
    except (OSError, ValueError, RecursionError) as cause:
        raise UsageError(f"GITHUB_EVENT_PATH cannot be read: {cause}.") from cause
    return tree if isinstance(tree, Mapping) else {}
