"""The startup script as a text: clean, the same every time, small enough, and without what must not be in it."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from jinja2 import UndefinedError
from real_time import DEADLINE

from node.containers import HF_TOKEN, container, deployment
from tpudeploy.adapters import assets
from tpudeploy.domain import errors
from tpudeploy.domain.deployment import Container
from tpudeploy.node import render

TEMPLATES = assets.templates()

NASTY = (
    "it's", '"', "$HOME `id` $(id)", "a\nb\n", "a\r\nb", "\u201cquoted\u201d", "\u2018\u2019", "\xa0", "\ufeff", "\u200b",
    "# shellcheck disable=all", "{{ spec }} {% raw %} {# #}", "<<EOF", "\\", "a\\", "\x01\x1b[31m", "", "-n", "~/x", "*.yaml", "мир", "a)",
)  # fmt: skip


def script(container_: Container, prompt: str = "Say hello.") -> str:
    return render.startup_script(deployment(container_, prompt=prompt), TEMPLATES, "abc123")


def complaints(text: str) -> str:
    return subprocess.run(
        ["shellcheck", "-"], input=text, capture_output=True, text=True, timeout=DEADLINE, check=False
    ).stdout


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck (Debian: apt-get install shellcheck)")
@pytest.mark.parametrize(
    "bent",
    [
        container(),
        container(secrets=(HF_TOKEN,), setup=("pip install x",), shm_size=None, volumes=(), environment={}),
        container(serve=("vllm", "serve", *NASTY), setup=NASTY),
        container(environment={f"V{index}": value for index, value in enumerate(NASTY)}, volumes=(("/a b/$x", "/c"),)),
    ],
    ids=["plain", "bare", "nasty words", "nasty variables"],
)
def test_shellcheck_has_nothing_to_say(bent: Container) -> None:
    assert complaints(script(bent, prompt="\n".join(NASTY))) == ""


def test_the_same_deployment_gives_the_same_script() -> None:
    assert script(container()) == script(container())


def test_no_text_of_the_profile_is_a_template() -> None:
    assert "'{{ spec }}'" in script(container(serve=("vllm", "serve", "{{ spec }}")))


def test_a_template_that_asks_for_what_is_not_there_is_refused() -> None:
    with pytest.raises(UndefinedError):
        render.startup_script(deployment(), {**TEMPLATES, "startup.sh.j2": "{{ no_such_thing }}"}, "abc123")


def test_a_script_that_google_would_refuse_names_what_to_shorten() -> None:
    steps = ("x" * 100_000, "short", "y" * 120_000)
    bent = container(setup=steps, environment={"LONG": "z" * 90_000})
    with pytest.raises(errors.ConfigError) as caught:
        script(bent)
    assert "262,144" in caught.value.message
    assert caught.value.hint.index("serving.setup[2]") < caught.value.hint.index("serving.setup[0]")
    assert "`serving.env.LONG` (90,005 bytes)" in caught.value.hint


@pytest.mark.parametrize(
    ("bent", "reason"),
    [
        (container(serve=("vllm", "serve", "m", "--chat-template", "é" * 70_000)), "serving.args.chat_template"),
        (container(environment={"A": "x" * 131_072}), "serving.env.A"),
        (container(setup=("x" * 131_072,)), "serving.setup[0]"),
    ],
)
def test_a_word_that_linux_would_refuse_is_named(bent: Container, reason: str) -> None:
    with pytest.raises(errors.ConfigError, match="131,071") as caught:
        script(bent)
    assert f"`{reason}`" in caught.value.message


def test_sizes_are_counted_as_google_counts_them() -> None:
    room = render.MAX_SCRIPT_BYTES - len(script(container(setup=("", ""))).encode())
    half = room // 2 // 2
    fits = container(setup=("é" * half, "é" * (half - 10)))
    assert len(script(fits).encode()) <= render.MAX_SCRIPT_BYTES
    with pytest.raises(errors.ConfigError):
        script(container(setup=("é" * half, "é" * (half + 10))))
