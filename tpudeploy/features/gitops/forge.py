"""Data of a forge (comments on pull requests, issues, statuses of commits) and of the pipeline that runs us."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Host(StrEnum):
    """The host of the pipeline."""

    GITHUB = "github"
    GITLAB = "gitlab"


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """The pull request that a plan is for. The head commit is the last commit of its own branch."""

    number: int
    base_branch: str
    head_commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The CI run that we are part of; all fields are empty outside of one.

    `commit` is the commit that gets the status: for a pull request, its own last commit and not the merge that was
    checked out. `branch` is the pushed branch, or the target branch of the pull request. `pull` is the number of the
    pull request. `is_fork`: the pull request comes from another repository and has no credentials.
    """

    host: Host | None = None
    repository: str = ""
    commit: str = ""
    branch: str = ""
    event: str = ""
    pull: int | None = None
    is_fork: bool = False
    run_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment. `updated_at` is the time of its last edit or its creation, as the forge writes it."""

    id: int
    author: str
    body: str
    url: str
    updated_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    number: int
    author: str
    title: str
    body: str


class CommitState(StrEnum):
    """The result in a commit status, in GitHub's terms."""

    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"
    PENDING = "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitStatus:
    """A commit status. `context` names its source. `summary` is one line."""

    context: str
    verdict: CommitState
    summary: str
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedPlan:
    """The files of a `ci plan`: the one with its signature, and the plan as displayed."""

    signed: str
    summary: str
