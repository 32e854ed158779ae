"""Data of a forge: comments on pull requests, issues, statuses of commits; and of the pipeline that runs us."""

from __future__ import annotations

from enum import StrEnum

from tpudeploy.domain.frozen import frozen


class Host(StrEnum):
    """Whose pipeline it is."""

    GITHUB = "github"
    GITLAB = "gitlab"


@frozen
class PullRequest:
    """What decides which merge a plan is for. The head commit is the last one of the pull request's own branch."""

    number: int
    base_branch: str
    head_commit: str


@frozen
class Pipeline:
    """The run that we are part of; all empty where there is none.

    `commit` is what a verdict belongs to: of a pull request its own last commit, not the merge that was checked out.
    `branch` is the branch that was pushed, or that the pull request would be merged into. `pull` is the number of the
    pull request. `is_fork`: the pull request comes from another repository, and has no credentials.
    """

    host: Host | None = None
    repository: str = ""
    commit: str = ""
    branch: str = ""
    event: str = ""
    pull: int | None = None
    is_fork: bool = False
    run_url: str = ""


@frozen
class Comment:
    """`updated_at` is the time of its last edit, as the forge writes it; that of its creation where there was none."""

    id: int
    author: str
    body: str
    url: str
    updated_at: str = ""


@frozen
class Issue:
    number: int
    author: str
    title: str
    body: str


class Verdict(StrEnum):
    """What a commit status says, in GitHub's words."""

    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"
    PENDING = "pending"


@frozen
class Status:
    """`context` names who says it. `summary` is one line."""

    context: str
    verdict: Verdict
    summary: str
    url: str = ""


@frozen
class SignedPlan:
    """The files that a `ci plan` handed on: the one with its signature, and the plan as it was shown."""

    signed: str
    summary: str
