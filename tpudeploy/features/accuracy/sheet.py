"""Sheet: the answers of one server, and their JSON format `tpudeploy.answers/1` with a hash of the content."""

from __future__ import annotations

from dataclasses import dataclass

from tpudeploy.domain.errors import RunUnreadable
from tpudeploy.serialization import sealed

FORMAT = "tpudeploy.answers/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedAnswer:
    """One answer. `said` is the whole text. `problem` is why the server gave none; such an answer is not right.

    `is_cut`: it ended at the maximum of tokens, not by itself.
    """

    question: str
    said: str
    is_right: bool
    is_cut: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The conditions of a test. Only sheets with the same terms can be compared.

    Temperature and seed are always 0. `digest` is that of the questions. `tool` is the program that asked and graded.
    """

    questions: str
    digest: str
    max_tokens: int
    tool: str = "tpudeploy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The answers of one server. `server` is its command line if it is a deployment of ours.

    `at` is in seconds since the epoch. `concurrency` is the number of parallel questions, or 0 if unknown.
    """

    id: str
    at: float
    url: str
    model: str
    terms: Terms
    concurrency: int
    answers: tuple[GradedAnswer, ...]
    deployment: str = ""
    image: str = ""
    server: tuple[str, ...] = ()

    @property
    def right(self) -> int:
        return sum(answer.is_right for answer in self.answers)

    @property
    def unanswered(self) -> int:
        return sum(bool(answer.problem) for answer in self.answers)

    @property
    def cut(self) -> int:
        return sum(answer.is_cut for answer in self.answers)

    @property
    def share(self) -> float:
        return self.right / len(self.answers)


def dumps(answers: Sheet) -> str:
    return sealed.dumps(answers, FORMAT)


def is_sheet(text: str) -> bool:
    """Return whether a text claims to be a sheet, of any version."""
    return '"format": "tpudeploy.answers/' in text[:100]


def loads(text: str, *, source: str) -> Sheet:
    """Return the sheet in a text. Raise `errors.RunUnreadable`; `source` names the file."""
    try:
        sheet = sealed.loads(Sheet, text, FORMAT)
    except ValueError as cause:
        raise _unreadable(source, str(cause)) from cause
    if not sheet.answers:
        raise _unreadable(source, "it has no answers")
    return sheet


def _unreadable(source: str, why: str) -> RunUnreadable:
    return RunUnreadable(f"{source} has no answers: {why}.", hint="`tpudeploy verify --accuracy` writes them.")
