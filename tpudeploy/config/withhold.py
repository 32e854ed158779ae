"""Diagnostics say nothing of values that came from the environment, or of files that lie outside the project.

The rules look at a tree twice: as it is, and with a stand-in for each such value, which is the reference that a person
wrote where the value is text. What is said both times does not depend on the values. What is said only of the first is
said in the words of the second, or in none. No rule has to know of it, however it quotes, cuts, converts or compares
what it reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from tpudeploy.config.codes import EXPLANATIONS
from tpudeploy.config.nodes import ListNode, MapNode, Node, Path, ScalarNode, find, walk, with_entries, with_items
from tpudeploy.domain.diagnostics import Diagnostic

_UNSHOWN = "…"
_NUMBERS = (8191, 8193)  # the second stands in where the first is the value itself


def has_withheld(tree: MapNode, outside: Collection[str]) -> bool:
    """Return whether any value of the tree must not be shown; `outside` are the names of sources."""
    return any(_is_withheld(node, outside) for _, node in walk(tree))


def with_stand_ins(tree: MapNode, outside: Collection[str]) -> MapNode:
    """Return the tree with a stand-in for each value that is withheld, of the same kind: text, a number, a boolean."""
    entries = {key: replace(entry, value=_stand_in(entry.value, outside)) for key, entry in tree.entries.items()}
    return with_entries(tree, entries)


def withhold(
    diagnostics: Iterable[Diagnostic], of_stand_ins: Iterable[Diagnostic], tree: MapNode
) -> Iterator[Diagnostic]:
    """Yield each diagnostic in words that do not depend on a withheld value; `of_stand_ins` is said without them."""
    independent = set(of_stand_ins)
    by_place = {(d.code, d.path, d.location): d for d in independent}
    for diagnostic in diagnostics:
        if diagnostic in independent:
            yield diagnostic
        else:
            same = by_place.get((diagnostic.code, diagnostic.path, diagnostic.location))
            yield _in_other_words(diagnostic, same, find(tree, _path(diagnostic)))


def without_text(diagnostics: Iterable[Diagnostic], outside: Collection[str]) -> Iterator[Diagnostic]:
    """Yield each diagnostic; one that is about a file outside the project says its code and its place, and no more."""
    for diagnostic in diagnostics:
        at = diagnostic.location
        if at is not None and at.file in outside:
            hint = f"the file lies outside the project and is not quoted; tpudeploy explain {diagnostic.code}"
            yield replace(diagnostic, message=EXPLANATIONS[diagnostic.code].title, path="", hint=hint)
        else:
            yield diagnostic


def _stand_in(node: Node, outside: Collection[str]) -> Node:
    match node:
        case MapNode():
            return with_stand_ins(node, outside)
        case ListNode():
            return with_items(node, tuple(_stand_in(item, outside) for item in node.items))
        case ScalarNode() if _is_withheld(node, outside):
            value = _value_for(node, outside)
            return ScalarNode(at=node.at, value=value, text=str(value), plain=node.plain)
        case ScalarNode():
            return node


def _value_for(node: ScalarNode, outside: Collection[str]) -> bool | int | float | str | None:
    match node.value:
        case bool():
            return not node.value
        case int() | float() as number:
            return next(type(number)(other) for other in _NUMBERS if other != number)
        case None:
            return None
        case str():
            return _UNSHOWN if node.reference is None or node.at.file in outside else node.reference


def _is_withheld(node: Node, outside: Collection[str]) -> bool:
    return isinstance(node, ScalarNode) and (node.reference is not None or node.at.file in outside)


def _in_other_words(diagnostic: Diagnostic, same: Diagnostic | None, node: Node | None) -> Diagnostic:
    """Return the diagnostic as it is said of the stand-in, where that is the reference; else by its code alone."""
    reference = node.reference if isinstance(node, ScalarNode) else None
    if same is not None and isinstance(node, ScalarNode) and isinstance(node.value, str):
        return same
    where = "a value that is" if reference is None else f'the value of "{reference}", which is'
    message = f"{EXPLANATIONS[diagnostic.code].title}: it depends on {where} not shown"
    hint = diagnostic.hint if same is not None and same.hint == diagnostic.hint else ""
    return replace(diagnostic, message=message, hint=hint or f"tpudeploy explain {diagnostic.code}")


def _path(diagnostic: Diagnostic) -> Path:
    return tuple(int(part) if part.isdecimal() else part for part in diagnostic.path.split("."))
