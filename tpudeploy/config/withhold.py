"""Keep values from the environment, and text of files outside the project, out of diagnostics.

The rules check a tree twice: as it is, and with a stand-in for each such value. The stand-in of text is the reference
in the source. A diagnostic of both checks does not depend on the values. A diagnostic of the first check alone gets the
wording of the second, or a wording without any value. So a rule may quote, cut, convert or compare what it reads.

Why: decision 52 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from tpudeploy.config.codes import EXPLANATIONS
from tpudeploy.config.nodes import ListNode, MapNode, Node, Path, ScalarNode, find, walk, with_entries, with_items
from tpudeploy.domain.diagnostics import Diagnostic

_UNSHOWN = "…"
_NUMBERS = (8191, 8193)  # the second replaces the value 8191


def has_withheld(tree: MapNode, outside: Collection[str]) -> bool:
    """Return whether any value of the tree must not be shown; `outside` are the names of sources."""
    return any(_is_withheld(node, outside) for _, node in walk(tree))


def with_stand_ins(tree: MapNode, outside: Collection[str]) -> MapNode:
    """Return the tree with a stand-in for each value that is withheld, of the same kind: text, a number, a boolean."""
    entries = {key: entry._replace(value=_stand_in(entry.value, outside)) for key, entry in tree.entries.items()}
    return with_entries(tree, entries)


def withhold(
    diagnostics: Iterable[Diagnostic], of_stand_ins: Iterable[Diagnostic], tree: MapNode
) -> Iterator[Diagnostic]:
    """Yield each diagnostic in a wording that does not depend on a withheld value, as those `of_stand_ins`."""
    independent = set(of_stand_ins)
    by_place = {(d.code, d.path, d.location): d for d in independent}
    for diagnostic in diagnostics:
        if diagnostic in independent:
            yield diagnostic
        else:
            same = by_place.get((diagnostic.code, diagnostic.path, diagnostic.location))
            yield _in_other_words(diagnostic, same, find(tree, _path(diagnostic)))


def without_text(diagnostics: Iterable[Diagnostic], outside: Collection[str]) -> Iterator[Diagnostic]:
    """Yield each diagnostic; one about a file outside the project is reduced to its code and its location."""
    for diagnostic in diagnostics:
        at = diagnostic.location
        if at is not None and at.file in outside:
            hint = f"the file is outside the project and is not quoted; tpudeploy explain {diagnostic.code}"
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
            return ScalarNode(node.place, value, str(value), node.plain)
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
            return _UNSHOWN if node.reference is None or node.place.source.name in outside else node.reference


def _is_withheld(node: Node, outside: Collection[str]) -> bool:
    return isinstance(node, ScalarNode) and (node.reference is not None or node.place.source.name in outside)


def _in_other_words(diagnostic: Diagnostic, same: Diagnostic | None, node: Node | None) -> Diagnostic:
    """Return the diagnostic of the stand-in if that is the reference; else one with the title of its code."""
    reference = node.reference if isinstance(node, ScalarNode) else None
    if same is not None and isinstance(node, ScalarNode) and isinstance(node.value, str):
        return same
    where = "a value that is" if reference is None else f'the value of "{reference}", which is'
    message = f"{EXPLANATIONS[diagnostic.code].title}: it depends on {where} not shown"
    hint = diagnostic.hint if same is not None and same.hint == diagnostic.hint else ""
    return replace(diagnostic, message=message, hint=hint or f"tpudeploy explain {diagnostic.code}")


def _path(diagnostic: Diagnostic) -> Path:
    return tuple(int(part) if part.isdecimal() else part for part in diagnostic.path.split("."))
