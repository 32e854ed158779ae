"""A file that is composed section by section is what it is as a whole, wherever YAML lets a value go on or end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tpudeploy.config.compose import Composed, compose
from tpudeploy.config.nodes import MapNode, Node, ScalarNode, dotted, key_location, plain, walk
from tpudeploy.config.profile import Written
from tpudeploy.config.sections import compose_file
from tpudeploy.config.source import Source

# Lines that open, continue, close or end something, some of them across a line that begins with a letter.
LINES = (
    "a: 1", "b: {x: 1, y: [1, 2]}", 'c: "q', 'd"', "e: |", "  text", "", "f: >+", "g: words", "  more words", "h:", "- 1",
    "i:", "  j: ~", "k: 'x", "# a comment", "...", "---", "--- a", "%YAML 1.2", "&x l: 1", "m: &y 1", "n: *y", "? o",
    ": v", "p: [1,", "q]: 2", "r: {s: 1", "t}: 1", '"u": 1', "V: 1", "w: !!str 1", "word", "y: - 1", "z: |2", "   a",
    "\tb: 1", "a: 2", "cc: |-", "dd : 2", "ee:ff", "? [a,", "b]", '"', "'", "]", "}", "{a: b}", "gg: null", "hh: .inf",
    'ii: "\\0"', 'jj: "x\\', "  : y", "kk: a: b", "  - a", "? |", "ll: *z", "mm: x # y", "é: 1", "- a", "  # d",
    "nn: {o.p: 1, r: {s: 2}}", "q.r: [1, {s: 1}]", "tt: {}", "uu: [[1, {a: b}]]",
)  # fmt: skip


@given(st.lists(st.sampled_from(LINES), max_size=7).map("\n".join), st.sampled_from(["", "\n"]))
@example("a: 1\n...\ng: words", "")
@example("m: &y 1\nn: *y", "")
@example("a: 1\nb: {x: 1, y: [1, 2]}\na: 2", "")
@example("{a: b}\ng: words", "")
@example("".join(f"{key}: [&x [{'1, ' * 150}], {'*x, ' * 100}]\n" for key in "ab"), "")  # more values than are allowed
@settings(max_examples=500, deadline=None)
def test_sections_and_the_whole_have_the_same_values_at_the_same_places(text: str, end: str) -> None:
    source = Source("profile.yaml", text + end)
    assert described(compose_file(source)) == described(compose(source))


@pytest.mark.parametrize("folder", ["profiles", "examples"])
def test_the_profiles_of_this_repository_are_what_they_are_as_a_whole(folder: str) -> None:
    for path in (Path(__file__).parents[2] / folder).rglob("*.yaml"):
        source = Source(str(path), path.read_text())
        assert described(compose_file(source)) == described(compose(source))


def described(composed: Composed) -> list[object]:
    root = composed.node
    values = None if root is None else repr(plain(root))  # 1 is not true here
    return [composed.broken, composed.problems, composed.has_null, values, *(nodes(root) if root is not None else ())]


def nodes(root: Node) -> Iterator[object]:
    for path, node in walk(root):
        yield path, type(node), node.at, key_location(root, path)
        yield isinstance(root, MapNode) and Written(root).first(dotted(path))
        if isinstance(node, ScalarNode):
            yield node.text, node.plain
