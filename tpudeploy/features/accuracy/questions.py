"""Questions with their right answers: from a file of the user, in the form of GSM8K, or built in; and their grading."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from tpudeploy.domain.errors import UsageError

_QUESTION = ("question", "prompt")
_ANSWER = ("answer", "expected", "target")
# GSM8K ends a worked solution with its answer after this mark.
_MARK = "####"
ARITHMETIC = "arithmetic"  # the name of the built-in questions
ARITHMETIC_QUESTIONS = 400
_FORM = 'Each line is {"question": "...", "answer": "..."}.'
_MINUS = "\N{MINUS SIGN}"  # models write it, and Python does not parse it
_NUMBER = re.compile(rf"[-{_MINUS}]?\d[\d,]*(?:\.\d+)?")
_ANSWER_LINE = re.compile(r"answer\s*(?:is)?\s*[:=]\s*(?P<said>.+)", re.IGNORECASE)
_MARKUP = re.compile(r"[*_`$\s.]+|\\boxed\{|\}")
INSTRUCTION = "Think as long as you need, then end with one line: `Answer: ` and the answer alone."


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question. `answer` is a number or a few words."""

    id: str
    text: str
    answer: str

    @property
    def prompt(self) -> str:
        """The text to send, the same for every server."""
        return f"{self.text}\n\n{INSTRUCTION}"


@dataclass(frozen=True, slots=True, kw_only=True)
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
    lines = enumerate(text.split("\n"), 1)
    questions = tuple(_question(name, number, line) for number, line in lines if line.strip())
    if not questions:
        raise UsageError(f"{name} has no question.", hint=_FORM)
    ids = [question.id for question in questions]
    duplicate = next((id_ for id_ in ids if ids.count(id_) > 1), None) if len(set(ids)) < len(ids) else None
    if duplicate is not None:
        raise UsageError(f"{name} has two questions with the id `{duplicate}`.", hint="Leave `id` out to number them.")
    return QuestionSet(name=name, questions=questions)


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


def arithmetic(count: int = ARITHMETIC_QUESTIONS) -> QuestionSet:
    """Return the built-in questions: arithmetic of several steps. They detect defects and do not rank models."""
    return QuestionSet(name=ARITHMETIC, questions=tuple(_generate(count)))


def _generate(count: int) -> Iterator[Question]:
    """Yield easy and harder questions in turn, because a set that every model passes could not show a fall."""
    for number in range(count):
        forms = _forms(
            a=_number(number, 0, 100, 999),
            b=_number(number, 1, 100, 999),
            c=_number(number, 2, 12, 99),
            d=_number(number, 3, 3, 49),
        )
        text, answer = forms[number % len(forms)]
        yield Question(id=str(number + 1), text=text, answer=str(answer))


def _forms(*, a: int, b: int, c: int, d: int) -> tuple[tuple[str, int], ...]:
    return (
        (f"What is {a} + {b}?", a + b),
        (f"What is {a} - {b}?", a - b),
        (f"What is {c} * {d}?", c * d),
        (f"What is {c} * {d} + {a}?", c * d + a),
        (f"What is ({a} + {b}) * {d} - {c}?", (a + b) * d - c),
        (f"A shop has {a} boxes, gets {b} more, and sells {c}. How many boxes are left?", a + b - c),
        (f"{c} shelves hold {d} books each, and {d} books in all are lent. How many books are left?", c * d - d),
    )


def _number(question: int, place: int, least: int, most: int) -> int:
    """Return a pseudo-random number that is the same in every version of Python."""
    return least + zlib.crc32(f"{question}.{place}".encode()) % (most - least + 1)


def is_right(text: str, answer: str) -> bool:
    """Return whether the answer in `text` is right: the same number, or the same words without markup and case."""
    expected = _value(answer)
    line = _answer_line(text)
    if expected is None:
        return _plain(line) == _plain(answer)
    numbers = _NUMBER.findall(line) or _NUMBER.findall(text)
    return bool(numbers) and _value(numbers[-1]) == expected


def _answer_line(text: str) -> str:
    """Return the text after the last `Answer:`, or the last line that is not empty."""
    marked_answers = _ANSWER_LINE.findall(text)
    if marked_answers:
        return str(marked_answers[-1])
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _value(text: str) -> Decimal | None:
    stripped = text.strip().lstrip("$").rstrip(".%").replace(",", "").replace(_MINUS, "-")
    try:
        value = Decimal(stripped)
    except InvalidOperation:
        return None
    return value if value.is_finite() else None


def _plain(text: str) -> str:
    return _MARKUP.sub(" ", text).strip(" ()\"'").casefold()
