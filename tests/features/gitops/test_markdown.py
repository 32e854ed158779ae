"""Markdown for GitHub, whatever is in it: within the limit, on one line where it must be, and no mark of others' works."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpudeploy.features.gitops import approval
from tpudeploy.features.gitops.approval import Marker
from tpudeploy.features.gitops.comment import Part, code, fence, fit, prose
from tpudeploy.node.shell import shell_lines
from tpudeploy.planning.plan_print import ApprovableContent

STEADY = settings(max_examples=200)
TEXT = st.text(alphabet=st.sampled_from("ab `|<>@#_*[]()\\!~\n\r\t-\u2028é模"), max_size=80)
PART = st.builds(Part, text=st.text(alphabet="ab模\n", max_size=4000), title=st.just("a part"), can_go=st.booleans())


@STEADY
@given(parts=st.lists(PART, max_size=8), limit=st.integers(min_value=500, max_value=6000))
def test_a_text_is_whole_or_short_enough_and_says_so(parts: list[Part], limit: int) -> None:
    fitted = fit(parts, limit)
    assert len(fitted.text.encode()) <= limit
    whole = "\n\n".join(part.text for part in parts if part.text)
    assert fitted.is_whole == (len(whole.encode()) <= limit)
    assert (fitted.text == whole) == fitted.is_whole
    assert ("truncated" in fitted.text) != fitted.is_whole


def test_the_longest_part_goes_and_the_others_stay() -> None:
    parts = [
        Part(text="head"),
        *(Part(text=c * 400, title=c, can_go=True) for c in "ab"),
        Part(text="c" * 9, can_go=True),
    ]
    parts[1] = Part(text="a" * 4000, title="a", can_go=True)
    fitted = fit(parts, 1000)
    assert "_Left out: a._" in fitted.text
    assert "b" * 400 in fitted.text
    assert "c" * 9 in fitted.text


def test_a_table_is_cut_between_rows() -> None:
    fitted = fit([Part(text="\n".join(["| a |", "|---|", *(f"| row {n} |" for n in range(500))]))], 1000)
    rows = [line for line in fitted.text.splitlines() if line.startswith("|")]
    assert all(re.fullmatch(r"\| (a|row \d+) \||\|---\|", row) for row in rows)
    assert "… (truncated)" in fitted.text


@STEADY
@given(text=TEXT)
def test_nothing_gets_out_of_a_fence(text: str) -> None:
    first, *body, last = fence([text], "diff").split("\n")
    assert first == f"{last}diff"
    assert set(last) == {"`"}
    assert not any(last in line for line in body)


@STEADY
@given(text=TEXT)
def test_no_text_makes_a_cell_a_line_or_a_mention(text: str) -> None:
    for rendered in (code(text), prose(text)):
        assert "\n" not in rendered
        assert "\r" not in rendered
        assert not re.search(r"(?<!\\)\|", rendered)
    assert "<" not in re.sub(r"`[^`]*`", "", prose(text))
    assert not re.search(r"@\w", re.sub(r"`[^`]*`", "", prose(text)))


NAMES = st.text(max_size=20)
APPROVALS = st.builds(ApprovableContent, effects=NAMES, lineage=NAMES, begun=st.integers(min_value=0))


@STEADY
@given(label=NAMES, commit=NAMES, whole=NAMES, goals=st.dictionaries(NAMES, APPROVALS, max_size=4))
def test_a_marker_is_one_hidden_line_that_is_read_as_it_was_written(
    label: str, commit: str, whole: str, goals: dict[str, ApprovableContent]
) -> None:
    mark = Marker(about="plan", label=label, commit=commit, branch=label, whole=whole, goals=goals)
    line = approval.dumps(mark)
    assert line.isprintable()
    assert line.index("-->") == len(line) - 3
    assert "--" not in line.removeprefix("<!--").removesuffix("-->")
    assert approval.loads(f"{line}\nthe rest -->\n") == mark
    assert approval.loads(f"{line}\r\nthe rest") == mark  # as a form of GitHub's may send it


MARKER = '{"v": 2, "about": "plan", "label": "", "commit": "", "branch": "", "whole": "x", "goals": {}}'


def test_the_marker_that_the_next_cases_damage_is_one() -> None:
    assert approval.loads(f"<!-- tpudeploy {MARKER} -->") == Marker(about="plan", whole="x", goals={})


@pytest.mark.parametrize(
    "body",
    [
        "",
        "a remark",
        "<!-- tpudeploy -->",
        "<!-- tpudeploy {} -->",
        "<!-- tpudeploy [] -->",
        "<!-- tpudeploy null -->",
        "<!-- tpudeploy " + MARKER.replace('"v": 2', '"v": 3') + " -->",
        "<!-- tpudeploy " + MARKER.replace("{}", "[]") + " -->",
        "<!-- tpudeploy " + MARKER.replace("{}", '{"gemma": "a fingerprint"}') + " -->",
        f"<!-- tpudeploy {'[' * 100_000} -->",
    ],
    ids=lambda body: body[:30],
)
def test_what_is_no_marker_of_ours_is_none(body: str) -> None:
    assert approval.loads(body) is None


def test_a_quoted_marker_is_none_of_ours() -> None:
    line = approval.dumps(Marker(about="plan", whole="x", goals={}))
    assert approval.loads(f"> {line}") is None
    assert approval.loads(f"\n{line}") is None


def test_a_command_is_broken_where_a_person_would() -> None:
    words = [
        "docker",
        "run",
        "-d",
        "--net=host",
        "-e",
        "A=a b",
        "image:1",
        "vllm",
        "serve",
        "m",
        "--port",
        "80",
        "--eager",
    ]
    assert shell_lines(words) == (
        "docker run",
        "  -d",
        "  --net=host",
        "  -e 'A=a b'",
        "  image:1 vllm serve m",
        "  --port 80",
        "  --eager",
    )
