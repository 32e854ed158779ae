"""What an error suggests is accepted by the check that refused the word: a suggestion that is refused is worse than none."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from config.sources import problems
from hypothesis import given
from hypothesis import strategies as st

from tpudeploy import catalog
from tpudeploy.catalog import flags
from tpudeploy.cli.commands import COMMANDS
from tpudeploy.cli.main import parse, two_dashes
from tpudeploy.cli.usage import Usage
from tpudeploy.config import codes
from tpudeploy.config.keys import all_keys, fields_at
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.loading import accelerator_type

HEAD = "version: 1\nname: demo\nmodel: {id: google/gemma-4-E2B-it}\n"
IMAGE = 'image: "vllm/vllm-tpu:v0.32.0"'
MEANT = re.compile(r"[Dd]id you mean [\"`]([^\"`]+)[\"`]")
WRITE = re.compile(r"write `([a-z_.]+)` instead")
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-_"


@st.composite
def misspelt(draw: st.DrawFn, words: list[str]) -> str:
    """One of the words, with a letter or two lost, doubled, changed or moved."""
    word = draw(st.sampled_from(words))
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, max(len(word) - 1, 0)))
        letter = draw(st.sampled_from(LETTERS))
        word = draw(
            st.sampled_from(
                [
                    word[:at] + word[at + 1 :],
                    word[:at] + letter + word[at:],
                    word[:at] + letter + word[at + 1 :],
                    word[:at] + word[at : at + 2][::-1] + word[at + 2 :],
                ]
            )
        )
    return word


def _suggestion(diagnostics: tuple[Diagnostic, ...], code: str) -> str:
    return next((f"{d.hint} " for d in diagnostics if d.code == code), "")


def _types(word: str) -> str:
    return f'{HEAD}tpu: {{type: "{word}"}}\nserving: {{{IMAGE}}}\n'


def _args(word: str) -> str:
    return f'{HEAD}tpu: {{type: v6e-4}}\nserving: {{{IMAGE}, args: {{"{word}": 1}}}}\n'


def _key(word: str) -> str:
    return f'{HEAD}tpu: {{type: v6e-4}}\nserving: {{{IMAGE}, "{word}": 1}}\n'


def _zone(word: str) -> str:
    return f'{HEAD}tpu: {{type: v6e-4}}\nserving: {{{IMAGE}}}\nplacement: {{zones: ["{word}"]}}\n'


def _path(word: str) -> str:
    return f'{HEAD}tpu: {{type: v6e-4}}\nserving: {{{IMAGE}}}\nlifecycle: {{ignore_changes: ["{word}"]}}\n'


def _backend(word: str) -> str:
    return f'{HEAD}tpu: {{type: v6e-4}}\nserving: {{{IMAGE}}}\nplacement: {{backend: "{word}"}}\n'


def _model(word: str) -> str:
    return f'{HEAD}tpu: {{type: v6e-4}}\nserving: {{{IMAGE}, kv_cache_dtype: "{word}"}}\n'


TYPES = [t.name for t in catalog.accelerator_types()]
PROFILES: dict[str, tuple[Callable[[str], str], list[str], set[str]]] = {
    "type": (_types, [*TYPES, "v5e-4", "v6e-3", "trillium-8"], {codes.UNKNOWN_TYPE, codes.NOT_SUPPORTED}),
    "flag": (_args, list(flags.names()), {codes.UNKNOWN_FLAG, codes.FLAG_HAS_KEY, codes.FLAG_TWICE}),
    "key": (_key, list(fields_at(("serving",)) or ()), {codes.UNKNOWN_KEY, codes.DUPLICATE_KEY}),
    "zone": (_zone, list(catalog.generation("v6e").zones), {codes.ZONE_UNKNOWN}),
    "path": (_path, [".".join(map(str, key)) for key in all_keys()], {codes.UNKNOWN_PATH}),
    "backend": (_backend, ["queued-resource", "gce-instance", "auto"], {codes.NOT_A_CHOICE, codes.NOT_SUPPORTED}),
    "choice": (_model, ["auto", "fp8", "bfloat16", "fp8_e5m2"], {codes.NOT_A_CHOICE}),
}


@pytest.mark.parametrize("what", PROFILES)
@given(data=st.data())
def test_what_is_suggested_for_a_profile_is_accepted(what: str, data: st.DataObject) -> None:
    text, words, refusals = PROFILES[what]
    word = data.draw(misspelt(words))
    for hint in (d.hint for d in problems(text(word)) if d.code in refusals):
        for suggestion in MEANT.findall(hint):
            if "." in suggestion and what == "key":
                assert tuple(suggestion.split(".")) in set(all_keys())
            else:
                output = problems(text(suggestion))
                assert not refusals & {d.code for d in output}, (word, suggestion, output)
        for suggestion in WRITE.findall(hint):
            assert tuple(suggestion.split(".")) in set(all_keys())


@pytest.mark.parametrize(
    ("spelling", "nearest"),
    [
        ("v6e-3", "v6e-4"),
        ("v5e-3", "v5litepod-4"),
        ("v5lite-8", "v5litepod-8"),
        ("v6e-9", "v6e-8"),
        ("v6e-12", "v6e-16"),
        ("trillium-4", "v6e-4"),
        ("ct6e-standard-2t", "v6e-4"),
        ("V6E-4", "v6e-4"),
        ("v5p-4", "v5p-8"),
        ("v5p-6", "v5p-8"),
        ("ct5p-hightpu-8t", "v5p-16"),
        ("v5p:4", "v5p-8"),
        ("tpu-v6e-4", "v6e-4"),
        ("TPU-V6E-4", "v6e-4"),
        ("v6e-4:1", "v6e-4"),
        ("tpu_v6e:8", "v6e-8"),
        ("tpu-v5litepod-4", "v5litepod-4"),
        ("v5lite-4", "v5litepod-4"),
        ("ironwood-1", "tpu7x-1"),
        ("tpu7x-3", "tpu7x-4"),
        ("tpu7x-standard-8t", "tpu7x-2x2x2"),
    ],
)
def test_a_type_that_there_is_not_has_the_nearest_size_of_its_generation(spelling: str, nearest: str) -> None:
    assert f'did you mean "{nearest}"?' in _suggestion(problems(_types(spelling)), codes.UNKNOWN_TYPE)
    assert accelerator_type(nearest).name == nearest


@pytest.mark.parametrize(
    ("spelling", "code"),
    [
        ("a100", codes.UNKNOWN_TYPE),
        ("v3-8", codes.NOT_SUPPORTED),
        ("v4-8", codes.NOT_SUPPORTED),
        ("ct4p-hightpu-4t", codes.NOT_SUPPORTED),
        ("v8i-4", codes.NOT_SUPPORTED),
    ],
)
def test_another_generation_is_not_offered_instead_of_one_that_is_not_known(spelling: str, code: str) -> None:
    hint = _suggestion(problems(_types(spelling)), code)
    assert "did you mean" not in hint
    assert "v6e-4, v6e-8" in hint


@pytest.mark.parametrize(
    ("spelling", "nearest"),
    [(name, t.name) for t in catalog.accelerator_types() if t.hosts == 1 for name in catalog.names_of(t)],
)
def test_a_type_has_the_names_of_both_apis_and_a_plain_one(spelling: str, nearest: str) -> None:
    assert not any(d.code in {codes.UNKNOWN_TYPE, codes.NOT_SUPPORTED} for d in problems(_types(spelling)))
    assert accelerator_type(spelling).name == nearest


def test_a_suggestion_is_a_size_that_the_backend_of_the_profile_has() -> None:
    backend = "placement: {backend: gce-instance}\n"
    assert 'did you mean "ct5p-hightpu-1t-tpu"?' in _suggestion(problems(_types("v5p-2") + backend), codes.UNKNOWN_TYPE)
    assert 'did you mean "v5p-8"? Its name counts cores: it has 4 chips' in _suggestion(
        problems(_types("v5p-2")), codes.UNKNOWN_TYPE
    )


def test_a_key_that_is_written_already_is_not_suggested() -> None:
    twice = f"{HEAD}tpu: {{type: v6e-4, typ: v6e-8}}\nserving: {{{IMAGE}}}\n"
    assert '"type"' not in _suggestion(problems(twice), codes.UNKNOWN_KEY)


def _refusal(words: list[str]) -> str:
    try:
        parse(two_dashes(words))
    except Usage as usage:
        return usage.message
    except SystemExit:
        return ""
    return ""


_ALL_OPTIONS = {
    "apply": ("gemma.yaml",),
    "plan": ("gemma.yaml",),
    "gc": (),
    "bench": ("gemma.yaml",),
    "force-unlock": ("1",),
    "compare": ("a", "b"),
    "status": (),
    "state": ("list",),
}
# Some are commands of features, which may be absent.
OPTIONS = {command: words for command, words in _ALL_OPTIONS.items() if command in COMMANDS}
NAMES = ["auto-approve", "timeout", "parallelism", "lock-timeout", "wait", "watch", "json", "file", "set", "replace"]
OTHERS = ["yes", "y", "force", "var", "var-file", "jobs", "dir", "out", "refresh", "target", "backend", "concurrency"]


@given(
    command=st.sampled_from(sorted(OPTIONS)),
    option=st.one_of(misspelt([*NAMES, *OTHERS]), st.sampled_from(OTHERS)),
    value=st.sampled_from(["", "=2h", "=3"]),
)
def test_an_option_that_is_suggested_is_accepted_in_its_place(command: str, option: str, value: str) -> None:
    dashes = "-" if len(option) == 1 else "--"
    words = [command, *OPTIONS[command], f"{dashes}{option}{value}"]
    for suggestion in MEANT.findall(_refusal(words)):
        assert not _refusal([*words[:-1], suggestion]), (words, suggestion)


CHOICES: Any = {
    ("apply", "gemma.yaml", "--wait"): ["accepted", "granted", "serving"],
    ("render", "gemma.yaml"): ["startup-script", "docker", "serve", "argv", "request", "profile"],
    ("validate", "gemma.yaml", "--format"): ["text", "json", "github", "sarif", "junit"],
    ("ci",): ["plan", "apply", "drift"],
    ("completion",): ["bash", "zsh", "fish"],
    ("schema",): ["profile", "plan", "events", "state-list"],
    (): list(COMMANDS),
}


@given(data=st.data())
def test_a_choice_or_a_command_that_is_suggested_is_accepted(data: st.DataObject) -> None:
    before = data.draw(st.sampled_from(list(CHOICES)))
    word = data.draw(misspelt(CHOICES[before]))
    for suggestion in MEANT.findall(_refusal([*before, word])):
        assert suggestion in CHOICES[before] or "is not one of" not in _refusal([*before, suggestion])
        assert "There is no command" not in _refusal([*before, suggestion])
