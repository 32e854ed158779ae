"""A simulated node that is told to reckon has a known share of the built-in questions right, by the product's own judge."""

from __future__ import annotations

import pytest

from tpudeploy.emulator.stand_in import answer_sum
from tpudeploy.features.accuracy import questions
from tpudeploy.features.accuracy.questions import is_right

ASKED = questions.arithmetic(200).questions


@pytest.mark.parametrize("share", [0.0, 0.8, 1.0])
def test_it_has_the_share_right_that_it_is_said_to_know(share: float) -> None:
    output = [answer_sum(question.prompt, share) for question in ASKED]
    assert all(output), "each is a sum"
    right = [is_right(text or "", question.answer) for text, question in zip(output, ASKED, strict=True)]
    assert sum(right) / len(right) == pytest.approx(share, abs=0.06)


@pytest.mark.parametrize("prompt", ["Say hello.", "What is (1 + ?", "What is 2 ** 9?", "What is ()?", "What is - ?"])
def test_what_is_no_sum_is_not_answer_sum(prompt: str) -> None:
    assert answer_sum(prompt, 1.0) is None
