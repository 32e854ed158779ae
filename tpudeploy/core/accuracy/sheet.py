"""Sheet: what one server answered, ↔ JSON: the format `tpudeploy.answers/1`, with a hash of its content."""

from __future__ import annotations

from tpudeploy.core import sealed
from tpudeploy.domain.errors import RunUnreadable
from tpudeploy.domain.frozen import frozen

FORMAT = "tpudeploy.answers/1"


@frozen
class Answer:
    """`said` is the whole text. `problem` says why there is none, where the server gave none: then nobody was right.

    `is_cut`: it ended with the tokens it was allowed, not by itself.
    """

    question: str
    said: str
    is_right: bool
    is_cut: bool = False
    problem: str = ""


@frozen
class Terms:
    """On which two servers are compared: sheets with other terms are not of the same test.

    Temperature is 0 and the seed 0 always. `digest` is that of the questions. `tool` is who asked and judged.
    """

    questions: str
    digest: str
    max_tokens: int
    tool: str = "tpudeploy"


@frozen
class Sheet:
    """`server` is the command line that serves, where a deployment of ours was asked. `at` is in seconds of the epoch.

    `concurrency` is how many questions were asked at once, 0 where nobody knows.
    """

    id: str
    at: float
    url: str
    model: str
    terms: Terms
    concurrency: int
    answers: tuple[Answer, ...]
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


def dumps(of: Sheet) -> str:
    return sealed.dumps(of, FORMAT)


def is_sheet(text: str) -> bool:
    """Whether it means to be one, of whatever version."""
    return '"format": "tpudeploy.answers/' in text[:100]


def loads(text: str, *, source: str) -> Sheet:
    """Raise `errors.RunUnreadable`; `source` names the file."""
    try:
        sheet = sealed.loads(Sheet, text, FORMAT)
    except ValueError as cause:
        raise _unreadable(source, str(cause)) from cause
    if not sheet.answers:
        raise _unreadable(source, "it has no answers")
    return sheet


def _unreadable(source: str, why: str) -> RunUnreadable:
    return RunUnreadable(f"{source} holds no answers: {why}.", hint="`tpudeploy verify --accuracy` writes them.")
