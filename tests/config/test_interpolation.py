"""`${env:NAME}` is filled in from the environment, in values and nowhere else."""

from __future__ import annotations

import pytest
from config.sources import SMALL, load, place, problems

_ENVIRONMENT = {"NAME": "world", "EMPTY": "", "PORT": "8001", "VERSION": "1.10", "NONE": "null", "NAN": ".nan"}


def prompt(text: str) -> str:
    return load(SMALL + f"health: {{prompt: {text}}}\n", environment=_ENVIRONMENT).health.prompt


@pytest.mark.parametrize(
    ("text", "read"),
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
def test_a_value_is_filled_in(text: str, read: str) -> None:
    assert prompt(text) == read


def test_an_unquoted_variable_is_read_as_if_its_text_stood_there() -> None:
    assert load(SMALL + "replicas: ${env:N}\n", environment={"N": "3"}).replicas == 3
    assert load(
        SMALL + "lifecycle:\n  prevent_destroy: ${env:B}\n", environment={"B": "true"}
    ).lifecycle.prevent_destroy


def test_a_variable_never_deletes_a_key() -> None:
    (diagnostic,) = problems(SMALL + "replicas: ${env:NONE}\n", environment=_ENVIRONMENT)
    assert place(diagnostic) == "TPU1203 6:11+11"


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
    (diagnostic,) = problems(SMALL + line, environment=_ENVIRONMENT)
    assert place(diagnostic) == expected
    assert hint in diagnostic.hint


@pytest.mark.parametrize("value", ["a\0b", "a\udcffb"])
def test_a_variable_that_holds_no_text_is_refused(value: str) -> None:
    (diagnostic,) = problems(SMALL + 'health: {prompt: "${env:V}"}\n', environment={"V": value})
    assert place(diagnostic) == "TPU1013 6:18+10"


def test_a_number_filled_in_where_text_is_needed_says_how_to_quote() -> None:
    (diagnostic,) = problems(
        SMALL.replace("v6e-4}", "v6e-4}\nhealth:\n  prompt: ${env:VERSION}"), environment=_ENVIRONMENT
    )
    assert diagnostic.code == "TPU1203"
    assert diagnostic.hint == 'quote it: "${env:VERSION}"'


def test_the_place_of_a_filled_in_value_is_where_it_is_written() -> None:
    origins = load(SMALL + "replicas: ${env:N}\n", environment={"N": "3"}).origins
    assert origins["replicas"].text == "replicas: ${env:N}"


def test_extends_may_be_filled_in() -> None:
    text = SMALL + 'extends: "${env:BASE}.yaml"\n'
    assert load(text, others={"b.yaml": "replicas: 9\n"}, environment={"BASE": "b"}).replicas == 9


def test_a_variable_of_an_overridden_value_need_not_be_set() -> None:
    assert load(SMALL + "replicas: ${env:UNSET}\n", sets=["replicas=2"]).replicas == 2


_SERVING = 'serving:\n  image: "vllm/vllm-tpu:v0.32.0"\n'
_RESERVED = "placement:\n  zones: [us-east5-a]\n  provisioning: [reserved]\n  reservation: ${env:V}\n"
_ZONE = 'placement: {zones: ["${env:V}"], provisioning: [spot]}\n'


@pytest.mark.parametrize(
    ("section", "value", "code"),
    [
        (_SERVING + "  tensor_parallel_size: 2\n  data_parallel_size: ${env:V}\n", "31", "TPU1302"),
        (_SERVING + "  port: ${env:V}\n", "7777777", "TPU1205"),
        (_SERVING + "  port: ${env:V}\n", "7.5", "TPU1203"),
        (_SERVING + "  hbm_utilization: ${env:V}\n", "TRUE", "TPU1203"),
        (_SERVING + '  args: {max_log_len: "${env:V}"}\n', "hunter2", "TPU1311"),
        (_SERVING + '  volumes: {/a: "${env:V}", /b: "${env:V}"}\n', "/hunter2", "TPU1331"),
        (_SERVING + "  shm_size: ${env:V}\n", "hunter2" * 20, "TPU1206"),
        (_RESERVED, "projects/my-project/locations/hunter-west2-a/reservations/r", "TPU1323"),
        (_ZONE, "nowhere-hunter2", "TPU1206"),
        (_ZONE, "hunter-west2-a", "TPU1325"),
        ('lifecycle: {ignore_changes: ["${env:V}"]}\n', "hunter2", "TPU1332"),
    ],
)
def test_what_is_said_of_a_value_does_not_quote_it_wherever_the_problem_is(section: str, value: str, code: str) -> None:
    """Cut, converted, or beside another value: none of the words that depend on it are said."""
    base = "".join(line for line in SMALL.splitlines(keepends=True) if not section.startswith(line.partition(":")[0]))
    diagnostics = problems(base + section, environment={"V": value})
    assert code in {d.code for d in diagnostics}
    assert value[:12] not in repr(diagnostics)
    assert "hunter" not in repr(diagnostics)
