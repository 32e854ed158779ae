"""Question and QuestionSet: questions with their right answers, from a file of the user or in the form of GSM8K."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.frozen import frozen

_QUESTION = ("question", "prompt")
_ANSWER = ("answer", "expected", "target")
# GSM8K ends a worked solution with its answer after this mark.
_MARK = "####"
INSTRUCTION = "Think as long as you need, then end with one line: `Answer: ` and the answer alone."


@frozen
class Question:
    """One question. `answer` is a number or a few words."""

    id: str
    text: str
    answer: str

    @property
    def prompt(self) -> str:
        """The text to send, the same for every server."""
        return f"{self.text}\n\n{INSTRUCTION}"


@frozen
class QuestionSet:
    name: str
    questions: tuple[Question, ...]

    @property
    def digest(self) -> str:
        """The digest of all that decides which answers are right. Equal digests mean the same questions."""
        text = json.dumps([(q.id, q.prompt, q.answer) for q in self.questions], ensure_ascii=False)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def parsed(text: str, *, name: str) -> QuestionSet:
    """Parse one JSON object per line, with `question` and `answer`; other keys are ignored.

    Raise `errors.UsageError`, which names the line.
    """
    questions = tuple(_question(name, number, line) for number, line in _lines(text))
    if not questions:
        raise UsageError(f"{name} has no question.", hint=_FORM)
    ids = [question.id for question in questions]
    duplicate = next((id_ for id_ in ids if ids.count(id_) > 1), None) if len(set(ids)) < len(ids) else None
    if duplicate is not None:
        raise UsageError(f"{name} has two questions with the id `{duplicate}`.", hint="Leave `id` out to number them.")
    return QuestionSet(name=name, questions=questions)


_FORM = 'Each line is {"question": "...", "answer": "..."}.'


def _lines(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())


def _question(name: str, number: int, line: str) -> Question:
    try:
        tree = json.loads(line)
    except (ValueError, RecursionError) as cause:
        raise UsageError(f"{name}:{number} is not JSON: {cause}.", hint=_FORM) from cause
    if not isinstance(tree, dict):
        raise UsageError(f"{name}:{number} is not a JSON object.", hint=_FORM)
    text, answer = _first(tree, _QUESTION), _first(tree, _ANSWER)
    if text is None or answer is None:
        lacks = "question" if text is None else "answer"
        raise UsageError(f"{name}:{number} has no `{lacks}`.", hint=_FORM)
    return Question(id=str(tree.get("id", number)), text=text, answer=answer.rpartition(_MARK)[2].strip())


def _first(tree: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first of these values that is a number or a text that is not empty."""
    values = (tree.get(name) for name in names)
    texts = (str(v) for v in values if isinstance(v, str | int | float) and not isinstance(v, bool))
    return next((text for text in texts if text.strip()), None)
