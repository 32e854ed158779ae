"""What a forge holds of ours: comments on pull requests, issues, verdicts on commits. And the pipeline that runs us."""

from __future__ import annotations

from enum import StrEnum

from tpudeploy.domain.frozen import frozen


@frozen
class Pipeline:
    """The run that we are part of; all empty where there is none.

    `commit` is what a verdict belongs to: of a pull request its own last commit, not the merge that was checked out.
    `is_fork`: the pull request comes from another repository, and has no credentials.
    """

    repository: str = ""
    commit: str = ""
    event: str = ""
    pull: int | None = None
    is_fork: bool = False
    run_url: str = ""

    @property
    def is_annotated(self) -> bool:
        """Whether lines of the log become annotations."""
        return bool(self.repository)


@frozen
class Comment:
    id: int
    author: str
    body: str
    url: str


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
