"""The host of pull requests, as a port."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tpudeploy.features.gitops.forge import Comment, CommitStatus, Issue, PullRequest


class Forge(Protocol):
    """The host of pull requests. Every method may raise `errors.ForgeError`, and can be repeated.

    `is_it` recognises one of our texts; it is only called with texts that we wrote.
    """

    def merged_pulls(self, commit: str) -> tuple[PullRequest, ...]:
        """Return the pull requests of this repository whose merge made this commit, into any branch.

        There are none for a commit that was pushed without one.
        """
        ...

    def statuses(self, commit: str, context: str) -> tuple[CommitStatus, ...]:
        """Return all statuses of the commit with this context, by all authors, the latest first."""
        ...

    def history(self, commit: str) -> tuple[str, ...]:
        """Return the commit and a few dozen before it, the latest first."""
        ...

    def comment(self, pull: int, is_it: Callable[[str], bool]) -> Comment | None:
        """Return our comment on a pull request; the oldest if there are several."""
        ...

    def tell(self, pull: int, is_it: Callable[[str], bool], body: str) -> Comment:
        """Write a comment, or replace the existing one; return it as it was read back, with `body`.

        Raise `errors.ForgeError` if its text differs, because someone is editing it.
        """
        ...

    def issues(self, label: str) -> tuple[Issue, ...]:
        """Return our open issues with this label."""
        ...

    def report(self, is_it: Callable[[str], bool], label: str, title: str, body: str) -> Issue:
        """Open an issue, or replace `title` and `body` of the open one."""
        ...

    def settle(self, issue: Issue, because: str) -> None:
        """Close an issue with a comment. A closed issue is success."""
        ...

    def classify(self, commit: str, status: CommitStatus) -> None:
        """Set a commit's status. The last one of a context counts."""
        ...

    def note(self, commit: str, status: CommitStatus) -> None:
        """Add a neutral check to a commit."""
        ...
