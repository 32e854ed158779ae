"""A right answer is right however a model dresses it, and a wrong one is not made right by what stands around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tpudeploy.domain.errors import UsageError
from tpudeploy.features.accuracy import questions
from tpudeploy.features.accuracy.questions import is_right, parsed
from tpudeploy.features.accuracy.sheet import FORMAT, Sheet
from tpudeploy.serialization import sealed

GSM8K = '{"question": "Natalia sold 48 clips, then half as many. How many?", "answer": "48/2 = 24\\n48+24 = 72\\n#### 72"}\n'


@pytest.mark.parametrize(
    "message",
    [
        "72",
        "48 / 2 = 24, and 48 + 24 = 72.\nAnswer: 72",
        "**Answer:** 72",
        "Answer: **72**",
        "answer: $72.00",
        "The answer is: 72 clips",
        "Answer: \\boxed{72}",
        "She sold 24 more, 72 in all.",
        "Answer: 70\nNo, wait.\nAnswer: 72",
    ],
)
def test_a_number_is_found(message: str) -> None:
    assert is_right(message, "72")


@pytest.mark.parametrize(
    "message", ["", "Answer: 24", "72 is wrong.\nAnswer: 24", "Answer: 172", "Answer: -72", "I cannot"]
)
def test_another_number_is_not_it(message: str) -> None:
    assert not is_right(message, "72")


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("Answer: 1,234", "1234"),
        ("Answer: 1234", "1,234"),
        ("Answer: \N{MINUS SIGN}5", "-5"),
        ("Answer: 2.50", "2.5"),
        ("It is Paris.\nAnswer: **Paris**.", "paris"),
        ("Answer: (B)", "B"),
        ("yes", "Yes"),
    ],
)
def test_the_same_is_the_same_in_other_dress(message: str, answer: str) -> None:
    assert is_right(message, answer)


def test_words_have_to_be_the_whole_answer() -> None:
    assert not is_right("Answer: not Paris", "Paris")


def test_questions_of_gsm8k_are_read_as_they_are_published() -> None:
    (question,) = parsed(GSM8K, name="test.jsonl").questions
    assert question.answer == "72"
    assert question.prompt.startswith("Natalia sold 48 clips")
    assert "Answer:" in question.prompt


def test_the_digest_is_of_all_that_decides() -> None:
    one = parsed(GSM8K, name="a.jsonl").digest
    assert parsed(GSM8K + "\n", name="b.jsonl").digest == one
    assert parsed(GSM8K.replace("#### 72", "#### 73"), name="a.jsonl").digest != one
    assert parsed(GSM8K.replace("Natalia", "Anna"), name="a.jsonl").digest != one


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no question"),
        ("\n \n", "has no question"),
        ("nonsense", "a.jsonl:1 is not JSON"),
        (f"{GSM8K}[1, 2]", "a.jsonl:2 is not a JSON object"),
        ('{"answer": "1"}', "a.jsonl:1 has no `question`"),
        ('{"question": "?", "answer": null}', "a.jsonl:1 has no `answer`"),
        ('{"question": "?", "answer": true}', "a.jsonl:1 has no `answer`"),
        ('{"id": 1, "question": "?", "answer": 1}\n{"id": 1, "question": "?", "answer": 1}', "the id `1`"),
    ],
)
def test_what_is_no_question_is_named_by_its_line(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("[", r"\[")):
        parsed(text, name="a.jsonl")


def test_the_built_in_questions_are_the_same_everywhere_and_their_answers_are_right() -> None:
    requests = questions.arithmetic()
    assert len({question.text for question in requests.questions}) == len(requests.questions) == 400
    assert requests.digest == "sha256:b6065f21616f4ab24ed59e2d7563f0b58923327fb79057fb5b04288abfefb766"
    for question in requests.questions:
        if question.text.startswith("What is "):
            formula = question.text.removeprefix("What is ").removesuffix("?")
            assert str(eval(formula)) == question.answer
    assert requests.questions[:50] == questions.arithmetic(50).questions


def test_a_sheet_of_an_earlier_version_is_read_and_written_again_without_a_change() -> None:
    text = (Path(__file__).parent / "data" / "answers.json").read_text(encoding="utf-8")
    assert sealed.dumps(sealed.loads(Sheet, text, FORMAT), FORMAT) == text
