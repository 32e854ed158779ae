"""Logs as machines write them: the cause that is named is right, or honestly unknown, whatever stands around it."""

from __future__ import annotations

import random

import pytest
from boot_log.compose import Log, cut, logs
from boot_log.pieces import DEATHS, Death

from tpudeploy.boot_log.read import read

LOGS = list(logs())


@pytest.mark.parametrize("death", DEATHS, ids=[f"{n}-{death.signature}" for n, death in enumerate(DEATHS)])
def test_each_death_has_its_cause_its_line_and_what_to_do(death: Death) -> None:
    cause = read("\n".join(death.lines)).cause
    assert cause is not None
    assert cause.signature == death.signature
    assert death.says in cause.remedy
    assert not death.never or death.never not in cause.remedy
    line = cause.line.text.rpartition(": ")[2] or cause.line.text
    assert line in death.lines[cause.line.number - 1]


def test_there_are_more_than_sixty_composed_logs() -> None:
    assert len(LOGS) > 60


@pytest.mark.parametrize("log", LOGS, ids=[log.name for log in LOGS])
def test_whatever_stands_around_it_the_cause_is_the_same(log: Log) -> None:
    cause = read(log.text).cause
    assert (None if cause is None else cause.signature) in log.expected, cause
    if log.death is not None and cause is not None:
        assert log.death.says in cause.remedy


def test_of_a_log_that_lost_its_head_and_tail_no_wrong_cause_is_named() -> None:
    wrong = []
    for number, log in enumerate(log for log in LOGS if not log.name.endswith("in_several_boots")):
        part = cut(log, random.Random(number))
        cause = read(part.text).cause
        if (None if cause is None else cause.signature) not in part.expected:
            wrong.append((part.name, cause))
    assert not wrong


def test_a_line_of_code_is_no_message_where_the_log_begins_within_it() -> None:
    assert read(' raise ValueError("No available memory for the cache blocks")  # only quoted').cause is None


def test_a_server_that_died_while_it_served_shows_the_engines_own_words() -> None:
    (log,) = [log for log in LOGS if log.name == "died-while-serving"]
    reading = read(log.text)
    assert reading.cause is not None
    assert reading.cause.line.text == "XlaRuntimeError: INTERNAL: Something unheard of"
    assert not reading.is_serving


def test_a_server_without_a_chat_template_serves_and_its_requests_are_explained() -> None:
    (log,) = [log for log in LOGS if log.name == "no-chat-template"]
    reading = read(log.text)
    assert reading.is_serving
    assert reading.cause is not None
