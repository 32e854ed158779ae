"""The built-in set: generated arithmetic of several steps, the same everywhere. It detects defects, not model rank."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from tpudeploy.accuracy.questions import Question, QuestionSet

NAME = "arithmetic"
QUESTIONS = 400


def questions(count: int = QUESTIONS) -> QuestionSet:
    return QuestionSet(name=NAME, questions=tuple(_generate(count)))


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
