"""A workflow on GitHub, as a story needs one: its variables, its files, and the API that it talks to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from desk import Desk
from github_api import BOT, REPOSITORY, TOKEN, GitHubApi

from tpudeploy.core import approval

PULL, HEAD, MERGED = 7, "a" * 40, "b" * 40


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
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_EVENT_PATH": str(folder / "event"),
        }.items():
            patch.setenv(name, value)
        patch.setenv("NO_PROXY", "127.0.0.1")
        self.on_pull_request()

    def on_pull_request(
        self, *, repository: str = REPOSITORY, event: str = "pull_request", head: str = HEAD, number: int = PULL
    ) -> None:
        tree = {"pull_request": {"number": number, "head": {"sha": head, "repo": {"full_name": repository}}}}
        self._event(event, tree, sha="c" * 40)

    def on_push(self, commit: str = MERGED, *, merged: bool = True, number: int = PULL) -> None:
        if merged:
            self.api.merges(number, commit)
        self._event("push", {}, sha=commit)

    def on_schedule(self) -> None:
        self._event("schedule", {}, sha=MERGED)

    def _event(self, name: str, tree: Any, *, sha: str) -> None:
        (self._folder / "event").write_text(json.dumps(tree), encoding="utf-8")
        self._patch.setenv("GITHUB_EVENT_NAME", name)
        self._patch.setenv("GITHUB_SHA", sha)

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
        (found,) = (b for b in self.api.by(BOT, PULL) if (m := approval.loads(b)) and m.about == "plan")
        return found

    def statuses(self, commit: str) -> list[tuple[str, str]]:
        return [(s["context"], s["state"]) for s in self.api.statuses.get(commit, [])]


Both = tuple[Desk, Pipeline]
