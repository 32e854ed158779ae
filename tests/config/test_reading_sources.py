"""Text that is no profile is told so, with its place, and never with a traceback."""

from __future__ import annotations

import json

import pytest
import yaml
from config.sources import SMALL, load, place, problems

from tpudeploy.config import compose
from tpudeploy.config.reader import MAX_BYTES

_BOMB = b"a: &a [1,1,1,1,1,1,1,1,1,1]\n" + b"".join(
    b"%c: &%c [%s]\n" % (key, key, b",".join([b"*%c" % (key - 1)] * 10)) for key in b"bcdefgh"
)

UNREADABLE: list[tuple[bytes, str, str]] = [
    (b"", "TPU1014 1:1+1", "version: 1"),
    (b"# only a comment\n", "TPU1014 1:1+1", "version: 1"),
    (b"---\n", "TPU1014 2:1+1", "version: 1"),
    (b"{}", "TPU1014 1:1+2", "version: 1"),
    (b"- a\n- b\n", "TPU1016 1:1+1", "key: value"),
    (b"hello\n", "TPU1016 1:1+5", "key: value"),
    (b"a: 1\n---\nb: 2\n", "TPU1015 2:1+3", "one profile"),
    (b"model:\n\tid: x\n", "TPU1018 2:1+1", "spaces"),
    (b"a:\n  b: 1\n  \tc: 2\n", "TPU1018 3:3+1", "spaces"),
    (b"a: 1\nb: \xff\xfe\n", "TPU1012 2:4+1", "UTF-8"),
    (b"\x89PNG\r\n\x1a\n\x00", "TPU1012 1:1+1", "UTF-8"),
    ("a: ü".encode("utf-16"), "TPU1012 1:1+1", "UTF-8"),
    (b"a: b\x00c\n", "TPU1013 1:5+1", "text"),
    (b"a: \x1b[31m\n", "TPU1013 1:4+1", "text"),
    (b"a: [" * 1000, "TPU1019 1:81+1", ""),
    (b"[" * 1_000_000, "TPU1019 1:41+1", ""),
    (b"a: " + b"{" * 1_100 + b"}" * 1_100, "TPU1019 1:43+1", ""),
    (b"- " * 100_000, "TPU1019 1:81+1", ""),
    (_BOMB, "TPU1020 5:8+2", "extends"),
    (b"a: [" + b"1," * 20_000 + b"]", "TPU1020 1:39999+1", "extends"),
    (b"#" * (MAX_BYTES + 1), "TPU1011 1:1+1", "right file"),
    (b"a: &x [*x]\n", "TPU1017 1:8+2", "quote"),
    (b"a: *nowhere\n", "TPU1017 1:4+8", "quote"),
    (b"a: b: c\n", "TPU1017 1:5+1", "quote"),
    (b"a: 'x\n", "TPU1017 1:5+1", "not closed"),
    (b"a: [1,\n b: 2\n", "TPU1017 2:5+1", "bracket"),
    (b"a: @x\n", "TPU1017 1:4+1", "quote"),
    (b"env: {HF_HOME: ${env:HOME}}\n", "TPU1017 1:17+1", 'quote values that contain "${...}"'),
]


@pytest.mark.parametrize(("text", "expected", "hint"), UNREADABLE)
def test_a_source_that_is_no_profile_is_refused_at_its_place(text: bytes, expected: str, hint: str) -> None:
    (diagnostic,) = problems(text)
    assert place(diagnostic) == expected
    assert hint in diagnostic.hint


@pytest.mark.parametrize(("text", "expected", "hint"), UNREADABLE)
def test_a_yaml_library_without_its_c_parser_says_the_same(
    text: bytes, expected: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compose, "LOADER", yaml.SafeLoader)
    (diagnostic,) = problems(text)
    assert diagnostic.location is not None
    assert (diagnostic.code, diagnostic.location.line) == (expected[:7], int(expected[8:].partition(":")[0]))


IN_A_VALUE: list[tuple[str, str, str]] = [
    ("replicas: 1\nreplicas: 2\n", "TPU1021 7:1+8", "line 6"),
    ("replicas: .nan\n", "TPU1025 6:11+4", "number"),
    ("replicas: -.inf\n", "TPU1025 6:11+5", "number"),
    ("replicas: 1e999\n", "TPU1025 6:11+5", "number"),
    (f"replicas: {'9' * 5000}\n", "TPU1025 6:11+5000", "number"),
    ("replicas: !!python/object:os.system 1\n", "TPU1023 6:11+27", "leave it out"),
    ("placement: !!map {project: my-project}\n", "TPU1023 6:12+7", "leave it out"),
    ("<<: {replicas: 1}\n", "TPU1024 6:1+2", "extends"),
    ("? [a]\n: 1\n", "TPU1022 6:3+3", "word"),
    ('"": 1\n', "TPU1022 6:1+2", "word"),
    ('health: {prompt: "a\\0b"}\n', "TPU1013 6:18+6", "leave it out"),
]


@pytest.mark.parametrize(("line", "expected", "hint"), IN_A_VALUE)
def test_what_yaml_allows_and_the_format_does_not_is_one_problem_at_its_place(
    line: str, expected: str, hint: str
) -> None:
    (diagnostic,) = problems(SMALL + line)
    assert place(diagnostic) == expected
    assert hint in diagnostic.hint


def test_a_duplicate_key_names_both_places() -> None:
    (diagnostic,) = problems(SMALL + "replicas: 1\nreplicas: 2\n")
    assert diagnostic.also is not None
    assert (diagnostic.also.line, diagnostic.also.column) == (6, 1)


def test_words_and_numbers_are_those_of_yaml_1_2() -> None:
    args = """\
serving:
  image: vllm/vllm-tpu:v0.32.0
  args: {hf_overrides: {a: no, b: 010, c: 0o10, d: 0x1F, e: 12:30:00, f: 2026-01-02, g: 1_000, h: 1.10, i: ~, j: "1"}}
"""
    profile = load(SMALL.replace('serving: {image: "vllm/vllm-tpu:v0.32.0"}\n', args))
    overrides = profile.serving.args["hf_overrides"]
    assert overrides == {
        "a": "no",
        "b": 10,
        "c": 8,
        "d": 31,
        "e": "12:30:00",
        "f": "2026-01-02",
        "g": "1_000",
        "h": 1.1,
        "i": None,
        "j": "1",
    }


@pytest.mark.parametrize("text", [SMALL.encode("utf-8-sig"), SMALL.replace("\n", "\r\n").encode()])
def test_a_byte_order_mark_and_windows_line_ends_change_nothing(text: bytes) -> None:
    assert load(text) == load(SMALL)


def test_an_alias_stands_for_its_anchor_and_keeps_its_place() -> None:
    profile = load(SMALL + "placement: {labels: {team: &t search, owner: *t}}\n")
    assert profile.placement.labels == {"team": "search", "owner": "search"}
    assert profile.origins["placement.labels.owner"].column == 31


@pytest.mark.parametrize(
    ("escape", "read"),
    [
        (r'"\ud834\udd1e"', "\U0001d11e"),
        (r'"a \uD83D\uDE80\ud83d\ude80 b"', "a \U0001f680\U0001f680 b"),
        (r'"\\ud834\\udd1e"', r"\ud834\udd1e"),
        (r"'\ud834\udd1e'", r"\ud834\udd1e"),
        (r'"\u00e9\ud83d\ude80\n"', "é\U0001f680\n"),
    ],
)
def test_a_character_that_json_escapes_as_two_is_read_as_one(escape: str, read: str) -> None:
    assert load(SMALL + f"health: {{prompt: {escape}}}\n").health.prompt == read


def test_a_profile_that_a_pipeline_wrote_as_json_is_read_whatever_it_holds() -> None:
    tree = {
        "version": 1,
        "name": "demo",
        "model": {"id": "google/gemma-4-E2B-it"},
        "tpu": {"type": "v6e-4"},
        "serving": {
            "image": "vllm/vllm-tpu:v0.32.0",
            "args": {"hf_overrides": {"\U0001f680": ["\U0001d11e", "/é"]}},
        },
    }
    for text in (json.dumps(tree), json.dumps(tree, indent=2), json.dumps(tree).replace("/", r"\/")):
        profile = load(text)
        assert profile.serving.args["hf_overrides"] == {"\U0001f680": ["\U0001d11e", "/é"]}
    assert load(SMALL, sets=["health.prompt=" + json.dumps("go \U0001f680")]).health.prompt == "go \U0001f680"


@pytest.mark.parametrize(
    "half", [r"\ud834", r"\udd1e", r"\udd1e\ud834", r"\ud834\udd1e\ud834", r"\UFFFFFFFF\ud834\udd1e"]
)
def test_half_a_character_is_refused_at_its_place(half: str) -> None:
    diagnostics = problems(SMALL + f'health: {{prompt: "{half}"}}\n')
    assert {d.code for d in diagnostics} <= {"TPU1013", "TPU1017"}
    assert diagnostics


def test_places_beside_an_escaped_character_are_those_of_the_file() -> None:
    (diagnostic,) = problems(SMALL + r'health: {prompt: "\ud83d\ude80", timeout: soon}' + "\n")
    assert place(diagnostic) == "TPU1206 6:43+4"
