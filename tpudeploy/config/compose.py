"""YAML events become the node tree: positions kept, duplicates found, depth and size bounded, nothing recursive."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar, Final

import yaml

from tpudeploy.config import codes, core_scalars
from tpudeploy.config.diagnose import problem, quoted
from tpudeploy.config.nodes import Entry, ListNode, MapNode, Node, ScalarNode
from tpudeploy.config.source import Source
from tpudeploy.config.syntax import explained
from tpudeploy.domain.diagnostics import Diagnostic, Location
from tpudeploy.domain.frozen import frozen

MAX_DEPTH: Final = 40
MAX_NODES: Final = 20_000
# The parser's mark of an anchored value stands before the anchor; the value is what a person looks for.
_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*[ \t]+)+(?=\S)")
_TEXT_TAGS = ("!", "tag:yaml.org,2002:str")
# libyaml's parser is ten times as fast; where PyYAML was built without it, its own gives the same events.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# JSON escapes a character beyond U+FFFF as two, "\ud83d\ude80", which libyaml takes for an error.
_ESCAPED_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


@frozen
class Composed:
    """What a text gave. `node` is None where it holds nothing, or where `broken`: then a problem says why."""

    node: Node | None
    broken: bool
    problems: tuple[Diagnostic, ...]


def compose(source: Source, text: str | None = None) -> Composed:
    """The one value of a source. `text` stands for the source's own, place by place, where only a part is YAML."""
    written = source.text if text is None else text
    composed = _built(source, written, _LOADER)
    # PyYAML's own parser leaves such a pair as it is written. It is ten times slower, and asked only in need.
    if composed.broken and _LOADER is not yaml.SafeLoader and _ESCAPED_PAIR.search(written):
        return _built(source, written, yaml.SafeLoader)
    return composed


def _built(source: Source, text: str, loader: Any) -> Composed:
    builder = _Builder(source)
    broken = False
    try:
        for event in yaml.parse(text, Loader=loader):
            taker = _Builder.takers.get(type(event))
            if taker is not None:
                taker(builder, event)
    except yaml.YAMLError as error:
        broken = True
        builder.problems.append(explained(error, source))
    except (ValueError, OverflowError):  # PyYAML's own parser, of an escape beyond the last character
        broken = True
        at = source.location(0, 0)
        builder.problems.append(problem(codes.SYNTAX, "Invalid YAML: an escape that is no character", at))
    except _Stopped:
        broken = True
    return Composed(node=None if broken else builder.root, broken=broken, problems=tuple(builder.problems))


def _joined(text: str) -> str:
    """The text with each pair of surrogates as the one character that it means."""
    if text.isascii() or not _PAIR.search(text):
        return text
    return _PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)


class _Stopped(Exception):
    """The problem that ends the reading is noted already."""


class _Open:
    """A list or mapping whose end was not met yet. `key` is the key that waits for its value."""

    def __init__(self, at: Location, start: Any, *, is_map: bool, nodes_before: int) -> None:
        self.at = at
        self.start = start
        self.is_map = is_map
        self.nodes_before = nodes_before
        self.items: list[Node] = []
        self.entries: dict[str, Entry] = {}
        self.key: ScalarNode | None = None


class _Builder:
    def __init__(self, source: Source) -> None:
        self.problems: list[Diagnostic] = []
        self._source = source
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._nodes = 0
        self._documents = 0
        self.root: Node | None = None

    def _note(self, code: str, message: str, at: Location, hint: str, also: Location | None = None) -> None:
        self.problems.append(problem(code, message, at, hint=hint, also=also))

    def _stop(self, code: str, message: str, at: Location, hint: str) -> None:
        self._note(code, message, at, hint)
        raise _Stopped

    def _document_start(self, event: yaml.DocumentStartEvent) -> None:
        self._documents += 1
        if self._documents > 1:
            at = self._location(event)
            self._stop(codes.SEVERAL_DOCUMENTS, "A second document begins here", at, "one file holds one profile")

    def _location(self, event: yaml.Event) -> Location:
        start, end = event.start_mark, event.end_mark
        assert start is not None
        assert end is not None
        row, begin = start.line, start.column
        line = self._source.lines[row] if row < len(self._source.lines) else ""
        before = _PROPERTIES.match(line, begin) if getattr(event, "anchor", None) else None
        begin = before.end() if before else begin
        stop = end.column if end.line == row else len(line)
        return self._source.location(row, begin, stop - begin)

    def _count(self, nodes: int, at: Location) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            self._stop(
                codes.TOO_MANY_VALUES,
                f"More than {MAX_NODES} values, aliases counted as often as they are used",
                at,
                "a profile has a hundred; write what is repeated once, in a file that this one extends",
            )

    def _start(self, event: Any, *, is_map: bool) -> None:
        at = self._location(event)
        self._check_tag(event, at)
        if len(self._open) >= MAX_DEPTH:
            self._stop(codes.TOO_DEEP, f"Nested deeper than {MAX_DEPTH} levels", at, "no key of the format is")
        self._count(1, at)
        self._open.append(_Open(at, event, is_map=is_map, nodes_before=self._nodes))

    def _start_map(self, event: Any) -> None:
        self._start(event, is_map=True)

    def _start_list(self, event: Any) -> None:
        self._start(event, is_map=False)

    def _end(self, event: Any) -> None:
        frame = self._open.pop()
        at = frame.at
        begin = frame.start.start_mark
        if frame.start.flow_style and event.end_mark.line == begin.line:
            at = self._source.location(begin.line, at.column - 1, event.end_mark.column + 1 - at.column)
        node: Node = (
            MapNode(at=at, entries=frame.entries) if frame.is_map else ListNode(at=at, items=tuple(frame.items))
        )
        self._anchor(frame.start.anchor, node, 1 + self._nodes - frame.nodes_before)
        self._place(node)

    def _scalar(self, event: Any) -> None:
        at = self._location(event)
        self._count(1, at)
        text = _joined(event.value)
        node = ScalarNode(at=at, value=self._value(event, text, at), text=text, plain=event.implicit[0])
        self._anchor(event.anchor, node, 1)
        self._place(node)

    def _alias(self, event: Any) -> None:
        at = self._location(event)
        if event.anchor not in self._anchors:
            self._stop(
                codes.SYNTAX,
                f"Alias {quoted('*' + event.anchor)} has no anchor before it",
                at,
                "quote the value if it is meant as text",
            )
        node, nodes = self._anchors[event.anchor]
        self._count(nodes, at)
        self._place(node)

    def _anchor(self, name: str | None, node: Node, nodes: int) -> None:
        if name is not None:
            self._anchors[name] = (node, nodes)

    def _value(self, event: Any, text: str, at: Location) -> bool | int | float | str | None:
        self._check_tag(event, at)
        if not core_scalars.is_clean(text):
            self._note(codes.CONTROL_CHARACTER, "A NUL or half a character, written as an escape", at, "leave it out")
            return ""
        if not event.implicit[0]:
            return text
        try:
            return core_scalars.resolve(text)
        except core_scalars.NotFinite:
            self._note(
                codes.NOT_FINITE, f"{quoted(text)} is not a finite number", at, "write a number, or quote it as text"
            )
            return 0

    def _check_tag(self, event: Any, at: Location) -> None:
        if event.tag is not None and event.tag not in _TEXT_TAGS:
            self._note(codes.TAG, f"Tag {quoted(event.tag)} is not allowed", at, "leave it out; quote text as text")

    def _place(self, node: Node) -> None:
        if not self._open:
            self.root = node
            return
        frame = self._open[-1]
        if not frame.is_map:
            frame.items.append(node)
        elif frame.key is None:
            frame.key = self._key(node)
        else:
            self._pair(frame, frame.key, node)
            frame.key = None

    def _key(self, node: Node) -> ScalarNode:
        if isinstance(node, ScalarNode) and node.text and not (node.plain and node.text == "<<"):
            return node
        if isinstance(node, ScalarNode) and node.text == "<<":
            self._note(codes.MERGE_KEY, "Merge keys left YAML with version 1.2", node.at, "use `extends`")
        else:
            self._note(codes.KEY_NOT_TEXT, "A key must be text", node.at, "write a word before the colon")
        return ScalarNode(at=node.at, value="", text="", plain=True)

    def _pair(self, frame: _Open, key: ScalarNode, value: Node) -> None:
        first = frame.entries.get(key.text)
        if first is not None:
            self._note(
                codes.DUPLICATE_KEY,
                f"Duplicate key {quoted(key.text)}",
                key.at,
                f"it stands in line {first.key.line} already; keep one",
                also=first.key,
            )
        elif key.text:
            frame.entries[key.text] = Entry(key=key.at, value=value)

    # Of the class: in each builder it would hold that builder, which stayed until somebody collects it.
    takers: ClassVar[dict[type[yaml.Event], Callable[[_Builder, Any], None]]] = {
        yaml.DocumentStartEvent: _document_start,
        yaml.MappingStartEvent: _start_map,
        yaml.SequenceStartEvent: _start_list,
        yaml.MappingEndEvent: _end,
        yaml.SequenceEndEvent: _end,
        yaml.ScalarEvent: _scalar,
        yaml.AliasEvent: _alias,
    }
