"""`${env:NAME}` is filled in from the environment, in values and nowhere else."""

from __future__ import annotations

import pytest
from config.sources import SMALL, load, place, problems

_ENVIRONMENT = {"NAME": "world", "EMPTY": "", "PORT": "8001", "VERSION": "1.10", "NONE": "null", "NAN": ".nan"}


def prompt(written: str) -> str:
    return load(SMALL + f"health: {{prompt: {written}}}\n", environment=_ENVIRONMENT).spec.health.prompt


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('"Hello ${env:NAME}!"', "Hello world!"),
        ('"${env:NAME}${env:NAME}"', "worldworld"),
        ('"${env:UNSET:-nobody}"', "nobody"),
        ('"x${env:UNSET:-}"', "x"),
        ('"${env:EMPTY:-fallback}"', "fallback"),
        ('"x${env:EMPTY}"', "x"),
        ('"$${env:NAME}"', "${env:NAME}"),
        ('"$$$$"', "$$"),
        ('"$HOME costs $5"', "$HOME costs $5"),
        ('"${env:PORT}"', "8001"),
        ("'${env:NONE}'", "null"),
    ],
)
def test_a_value_is_filled_in(written: str, read: str) -> None:
    assert prompt(written) == read


def test_an_unquoted_variable_is_read_as_if_its_text_stood_there() -> None:
    assert load(SMALL + "replicas: ${env:N}\n", environment={"N": "3"}).spec.replicas == 3
    assert load(
        SMALL + "lifecycle:\n  prevent_destroy: ${env:B}\n", environment={"B": "true"}
    ).spec.lifecycle.prevent_destroy


def test_a_variable_never_deletes_a_key() -> None:
    (found,) = problems(SMALL + "replicas: ${env:NONE}\n", environment=_ENVIRONMENT)
    assert place(found) == "TPU1203 6:11+11"


@pytest.mark.parametrize(
    ("line", "expected", "hint"),
    [
        ("replicas: ${env:NOT_SET}\n", "TPU1110 6:11+14", "NOT_SET"),
        ("replicas: ${env:NAM}\n", "TPU1110 6:11+10", 'did you mean "NAME"?'),
        ("replicas: ${NAME}\n", "TPU1111 6:11+7", "${env:NAME}"),
        ("replicas: ${var:NAME}\n", "TPU1111 6:11+11", "${env:NAME}"),
        ('health: {prompt: "${env:NAME"}\n', "TPU1111 6:18+12", "${env:NAME}"),
        ("replicas: ${env:NAN}\n", "TPU1025 6:11+10", "quote"),
        ('"${env:NAME}": 1\n', "TPU1112 6:1+13", "keys may not"),
        ("placement: {project: ${env:NAME}}\n", "TPU1017 6:23+1", "quote values"),
        ('serving: {env: {A: "${env:BAD}"}}\n', "TPU1021 6:1+7", ""),
    ],
)
def test_what_cannot_be_filled_in_is_one_problem_at_its_place(line: str, expected: str, hint: str) -> None:
    (found,) = problems(SMALL + line, environment=_ENVIRONMENT)
    assert place(found) == expected
    assert hint in found.hint


@pytest.mark.parametrize("value", ["a\0b", "a\udcffb"])
def test_a_variable_that_holds_no_text_is_refused(value: str) -> None:
    (found,) = problems(SMALL + 'health: {prompt: "${env:V}"}\n', environment={"V": value})
    assert place(found) == "TPU1013 6:18+10"


def test_a_number_filled_in_where_text_is_needed_says_how_to_quote() -> None:
    (found,) = problems(SMALL.replace("v6e-4}", "v6e-4}\nhealth:\n  prompt: ${env:VERSION}"), environment=_ENVIRONMENT)
    assert found.code == "TPU1203"
    assert found.hint == 'quote it: "${env:VERSION}"'


def test_the_place_of_a_filled_in_value_is_where_it_is_written() -> None:
    origins = load(SMALL + "replicas: ${env:N}\n", environment={"N": "3"}).origins
    assert origins["replicas"].text == "replicas: ${env:N}"


def test_extends_may_be_filled_in() -> None:
    text = SMALL + 'extends: "${env:BASE}.yaml"\n'
    assert load(text, others={"b.yaml": "replicas: 9\n"}, environment={"BASE": "b"}).spec.replicas == 9


def test_a_variable_of_an_overridden_value_need_not_be_set() -> None:
    assert load(SMALL + "replicas: ${env:UNSET}\n", sets=["replicas=2"]).spec.replicas == 2
