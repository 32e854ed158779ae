"""Ask a server questions with known answers, and compare it with another server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from tpudeploy import loading
from tpudeploy.config.profile import Profile
from tpudeploy.domain import exits
from tpudeploy.domain.errors import UsageError
from tpudeploy.features.accuracy import view
from tpudeploy.features.accuracy.judgement import Judgement, SheetComparison
from tpudeploy.features.accuracy.questions import ARITHMETIC
from tpudeploy.features.accuracy.service import AccuracyTests, QuestionRequest, read_answers
from tpudeploy.features.accuracy.sheet import Sheet
from tpudeploy.features.accuracy.verdict import LEAST_BASELINE, verdict
from tpudeploy.operations.arguments import AProfile, Arg, Count
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.results import Result, document, part, result
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace

_EXIT_CODES = {
    Judgement.HELD: exits.SUCCESS,
    Judgement.FELL: exits.CHECK_FAILED,
    Judgement.CANNOT_TELL: exits.ERROR,
}


@result
class Accuracy(Result):
    """The answers of a server; with another server or its answers, whether quality fell."""

    FORMAT = "accuracy"
    after: Sheet
    before: Sheet | None = None
    verdict: SheetComparison | None = None

    @property
    def exit_code(self) -> int:
        return exits.SUCCESS if self.verdict is None else _EXIT_CODES[self.verdict.judgement]

    def values(self) -> dict[str, Any]:
        """Return the scores, without the answers, which are in the files that `id` names."""
        keys: dict[str, Any] = {"after": _scores(self.after)}
        if self.before is not None and self.verdict is not None:
            keys |= {"before": _scores(self.before), "verdict": self.verdict.to_dict()}
        return keys

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        counts = ("asked", "right", "unanswered", "cut", "concurrency", "max_tokens")
        texts = ("id", "deployment", "url", "model", "questions")
        sheet = part({**dict.fromkeys(texts, str), **dict.fromkeys(counts, int)})
        keys = {"after": sheet, "before": sheet, "verdict": SheetComparison}
        return document("accuracy", keys, optional=("before", "verdict"))

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        if self.before is None or self.verdict is None:
            return view.sheet(self.after)
        return view.verdict(self.verdict, self.before, self.after, paint)

    def messages(self, paint: Paint) -> str:
        if self.before is not None:
            return ""
        lines = [f"To compare another server with these answers: --against {self.after.id}"]
        if self.after.share < LEAST_BASELINE:
            lines.insert(
                0, f"Warning: below {LEAST_BASELINE:.0%} these questions cannot show a regression. Check the answers."
            )
        return "\n".join(lines)


def accuracy(
    workspace: Workspace,
    profile: AProfile,
    questions: Annotated[
        str | None,
        Arg(
            "Ask questions with known answers instead: a JSONL file, `arithmetic`, or `lm_eval:TASK`.",
            name="accuracy",
            metavar="QUESTIONS",
        ),
    ] = None,
    *,
    against: Annotated[
        str | None,
        Arg(
            "Compare with this server or these saved answers; exit with 13 if quality fell.",
            metavar="URL | ANSWERS",
        ),
    ] = None,
    count: Annotated[Count | None, Arg("Ask only the first N questions (default: all).", name="questions")] = None,
    concurrency: Annotated[
        Count | None,
        Arg(
            "Ask N questions at the same time (default: as for ANSWERS, or max_num_seqs).",
            variable="verify-concurrency",
        ),
    ] = None,
    max_tokens: Annotated[Count | None, Arg("The most tokens in an answer (default 512).")] = None,
    api_key: str | None = None,
    folder: str | Path = ".",
    on_message: Callable[[str], None] | None = None,
) -> Accuracy:
    """Ask a deployment questions with known answers, store the answers, and compare them with those of another server.

    `questions` are `arithmetic` (the default), `lm_eval:TASK`, or a JSONL file in `folder`, of which the first `count`
    are asked; a file of answers is compared without asking. `against` is a server's address, whose key is `api_key`, or
    answers: a file, or the id of an earlier result. `concurrency` questions are asked at the same time, and an answer
    has at most `max_tokens`; None is as the other server was asked, or the default. `on_message` gets a line before the
    first question.

    Raise `errors.QueryFailed` where a server does not answer, `errors.UsageError` where it is not the one that the
    profile declares and for a file that cannot be read, `errors.RunUnreadable`.
    """
    tests, loaded, say = AccuracyTests(workspace), loading.profile(profile), on_message or _ignore
    questions = questions or ARITHMETIC
    request = QuestionRequest(
        source=questions, folder=Path(folder), count=count, concurrency=concurrency, max_tokens=max_tokens
    )
    before = None if against is None else _before(tests, loaded, request, against, api_key=api_key, say=say)
    answers = request.folder / questions
    after = read_answers(answers) if answers.is_file() else None
    if after is None:
        server = tests.deployment(loaded)
        after = tests.ask_as(server, request, at_once=server.at_once, before=before, on_message=say)
    return Accuracy(after=after, before=before, verdict=None if before is None else verdict(before, after))


def _before(
    tests: AccuracyTests,
    profile: Profile,
    request: QuestionRequest,
    against: str,
    *,
    api_key: str | None,
    say: Callable[[str], None],
) -> Sheet:
    """Return the answers to compare with: those of a server, which is asked, or saved ones."""
    if "://" in against:
        server, at_once = tests.address(against, api_key=api_key), tests.deployment(profile).at_once
        return tests.ask_as(server, request, at_once=at_once, before=None, on_message=say)
    path = tests.sheets.path(against, request.folder)
    answers = read_answers(path)
    if answers is None:
        raise UsageError(
            f"{path} does not hold answers.", hint="`tpudeploy verify --accuracy QUESTIONS PROFILE` writes them."
        )
    return answers


def _ignore(_text: str) -> None:
    pass


def _scores(sheet: Sheet) -> dict[str, Any]:
    return {
        "id": sheet.id,
        "deployment": sheet.deployment,
        "url": sheet.url,
        "model": sheet.model,
        "questions": sheet.terms.questions,
        "asked": len(sheet.answers),
        "right": sheet.right,
        "unanswered": sheet.unanswered,
        "cut": sheet.cut,
        "concurrency": sheet.concurrency,
        "max_tokens": sheet.terms.max_tokens,
    }


# How many of the questions are asked, wherever they are.
OPERATION = Operation(
    run=accuracy,
    results=(Accuracy,),
    access=Access.LOAD,
)
