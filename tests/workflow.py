"""A workflow on GitHub, as a story needs one: its variables, its files, and the API that it talks to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from github_api import BOT, MAIN, REPOSITORY, TOKEN, GitHubApi

PULL, HEAD, MERGED = 7, "a" * 40, "b" * 40
APPROVAL_KEY = "0123456789abcdef" * 4


class Pipeline:
    """A workflow on GitHub: its variables and files, on a pull request or after its merge."""

    def __init__(self, api: GitHubApi, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self.api, self._patch, self._folder = api, patch, folder
        folder.mkdir()
        for name, value in {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": api.url,
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_RUN_ID": "42",
            "GITHUB_TOKEN": TOKEN,
            "TPUDEPLOY_APPROVAL_KEY": APPROVAL_KEY,
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_EVENT_PATH": str(folder / "event"),
        }.items():
            patch.setenv(name, value)
        patch.setenv("NO_PROXY", "127.0.0.1")
        self.on_pull_request()

    def on_pull_request(
        self,
        *,
        repository: str = REPOSITORY,
        event: str = "pull_request",
        head: str = HEAD,
        number: int = PULL,
        base: str = MAIN,
    ) -> None:
        """Open it, or push to it, and start the workflow of that."""
        self.api.opens(number, head, base=base, repository=repository)
        tree = {"pull_request": {key: self.api.pulls[number][key] for key in ("number", "head", "base")}}
        self._event(event, tree, sha="c" * 40, reference=f"refs/pull/{number}/merge")

    def on_push(self, commit: str = MERGED, *, merged: bool = True, number: int = PULL, branch: str = MAIN) -> None:
        if merged:
            self.api.merges(number, commit)
        self._event("push", {}, sha=commit, reference=f"refs/heads/{branch}")

    def on_schedule(self) -> None:
        self._event("schedule", {}, sha=MERGED, reference=f"refs/heads/{MAIN}")

    def as_another_workflow(self, key: str = "") -> None:
        """The same repository, token and author; but a job of no protected environment has no key but its own."""
        self._patch.setenv("TPUDEPLOY_APPROVAL_KEY", key)

    def as_ourselves(self) -> None:
        self._patch.setenv("TPUDEPLOY_APPROVAL_KEY", APPROVAL_KEY)

    def _event(self, name: str, tree: Any, *, sha: str, reference: str) -> None:
        (self._folder / "event").write_text(json.dumps(tree), encoding="utf-8")
        self._patch.setenv("GITHUB_EVENT_NAME", name)
        self._patch.setenv("GITHUB_SHA", sha)
        self._patch.setenv("GITHUB_REF", reference)

    @property
    def summary(self) -> str:
        return (self._folder / "summary").read_text(encoding="utf-8")

    @property
    def outputs(self) -> dict[str, str]:
        """The last word on each."""
        lines = (self._folder / "output").read_text(encoding="utf-8").splitlines()
        return {name: value for name, _, value in (line.partition("=") for line in lines)}

    def comment(self) -> str:
        """The one and only of ours that is a plan."""
        from tpudeploy.features.gitops import approval  # the kernel's tests run without it

        (comment,) = (b for b in self.api.by(BOT, PULL) if (m := approval.loads(b)) and m.about == "plan")
        return comment

    def statuses(self, commit: str) -> list[tuple[str, str]]:
        """What was said of the commit; signatures of plans are no verdict on it."""
        statuses = self.api.statuses.get(commit, [])
        return [(s["context"], s["state"]) for s in statuses if not s["context"].startswith("tpudeploy/approval")]

    def signatures(self, commit: str = HEAD) -> list[tuple[str, str]]:
        statuses = self.api.statuses.get(commit, [])
        return [(s["state"], s["description"]) for s in statuses if s["context"].startswith("tpudeploy/approval")]


Both = tuple[CommandLine, Pipeline]


class GitLab:
    """A pipeline on GitLab: the variables that it predefines, and the key where the job is one of a protected branch."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self._set(
            GITLAB_CI="true", CI_PROJECT_PATH=REPOSITORY, CI_PROJECT_ID="1", CI_JOB_URL="https://gitlab.example/1"
        )

    def on_merge_request(self, *, source_project: str = "1", is_protected: bool = False) -> None:
        self._set(
            CI_PIPELINE_SOURCE="merge_request_event",
            CI_MERGE_REQUEST_IID=str(PULL),
            CI_MERGE_REQUEST_SOURCE_PROJECT_ID=source_project,
            CI_MERGE_REQUEST_TARGET_BRANCH_NAME=MAIN,
            CI_COMMIT_SHA=HEAD,
        )
        self._patch.delenv("CI_COMMIT_BRANCH", raising=False)
        self._key(is_protected=is_protected)

    def on_push(self, commit: str = MERGED, *, branch: str = MAIN, is_protected: bool = True) -> None:
        for name in ("IID", "SOURCE_PROJECT_ID", "TARGET_BRANCH_NAME"):
            self._patch.delenv(f"CI_MERGE_REQUEST_{name}", raising=False)
        self._set(CI_PIPELINE_SOURCE="push", CI_COMMIT_SHA=commit, CI_COMMIT_BRANCH=branch)
        self._key(is_protected=is_protected)

    def _key(self, *, is_protected: bool) -> None:
        if is_protected:
            self._set(TPUDEPLOY_APPROVAL_KEY=APPROVAL_KEY)
        else:
            self._patch.delenv("TPUDEPLOY_APPROVAL_KEY", raising=False)

    def _set(self, **variables: str) -> None:
        for name, value in variables.items():
            self._patch.setenv(name, value)
