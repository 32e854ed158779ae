"""Build the node tree from YAML: with positions, without duplicate keys, and bounded in depth and size.

It reads events, one after the other. `yaml.compose` is not an alternative: it recurses in C, so that a file of brackets
ends the process; it refuses an anchor that is used twice; and it loses the position of an alias.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final

import yaml

from tpudeploy.config import codes, core_scalars
from tpudeploy.config.diagnose import problem, quoted
from tpudeploy.config.libyaml import LOADER
from tpudeploy.config.nodes import Entry, ListNode, MapNode, Node, ScalarNode, SourcePlace
from tpudeploy.config.source import Source
from tpudeploy.domain.diagnostics import Diagnostic, Location

MAX_DEPTH: Final = 40
MAX_NODES: Final = 20_000
# The parser marks an anchored value at its anchor; diagnostics point at the value itself.
_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*[ \t]+)+(?=\S)")
_TEXT_TAGS = ("!", "tag:yaml.org,2002:str")
# JSON escapes a character beyond U+FFFF as two, "\ud83d\ude80", which libyaml refuses.
_ESCAPED_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
# libyaml 0.2.6 looks 1,024 characters ahead for a colon, and meets its limit of 1,000 levels before MAX_DEPTH is seen.
_LIBYAML_TOO_DEEP = "maximum nesting depth"

_TAB = re.compile(r"[ ]*\t")
# A pattern of the line or of the parser's message, and the likely remedy; the first row that matches is used.
_LINE, _MESSAGE = "line", "message"
_HINTS = (
    # Each stretch between quotes is searched from its beginning alone, for a line may have a million brackets.
    (_LINE, r"(?:^|['\"])[^'\"\[{,]*[\[{,][^'\"]*\$\{", 'quote values that contain "${...}" inside { } or [ ]'),
    (_MESSAGE, r"mapping values are not allowed", "quote a value that contains `: `, or check the indentation"),
    (_MESSAGE, r"character .*cannot start any token", "quote the value"),
    (_MESSAGE, r"expected <block end>|did not find expected key", "check the indentation and the quotes above"),
    (_MESSAGE, r"end of stream|document start", "a quote or bracket is not closed"),
    (_MESSAGE, r"expected ',' or|expected node content", "a bracket is not closed, or a comma is missing"),
    (_MESSAGE, r"could not find expected ':'", "write `key: value`, with a space after the colon"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """The result of reading a text. `node` is None if the text is empty, or if it is `broken`.

    `has_null`: a value in it is null. `is_too_deep`: libyaml met its own limit.
    """

    node: Node | None
    broken: bool
    problems: tuple[Diagnostic, ...]
    has_null: bool = False
    is_too_deep: bool = False


def compose(source: Source, text: str | None = None) -> Composed:
    """Return the value of a source; `text` replaces the source's text if only a part of that is YAML."""
    content = source.text if text is None else text
    composed = _read(source, content, LOADER)
    # PyYAML's own parser accepts both. It is ten times slower, so it is only the second choice.
    if composed.broken and LOADER is not yaml.SafeLoader and _only_libyaml_refuses(content, composed):
        return _read(source, content, yaml.SafeLoader)
    return composed


def _only_libyaml_refuses(text: str, composed: Composed) -> bool:
    return composed.is_too_deep or bool(_ESCAPED_PAIR.search(text))


def _read(source: Source, text: str, loader: Any) -> Composed:
    builder = _Builder(source)
    broken = is_too_deep = False
    try:
        # As `yaml.parse` does, without a generator and a check for each event.
        next_event = loader(text).get_event
        event = next_event()
        while event is not None:
            handle = _Builder.handlers.get(type(event))
            if handle is not None:
                handle(builder, event)
            event = next_event()
    except yaml.YAMLError as error:
        broken, is_too_deep = True, _LIBYAML_TOO_DEEP in str(error)
        builder.problems.append(_explain(error, source))
    except (ValueError, OverflowError):  # from PyYAML's own parser, for an escape beyond U+10FFFF
        broken = True
        at = source.location(0, 0)
        builder.problems.append(problem(codes.SYNTAX, "Invalid YAML: an escape that is not a character", at))
    except _Stopped:
        broken = True
    return Composed(
        node=None if broken else builder.root,
        broken=broken,
        problems=tuple(builder.problems),
        has_null=builder.has_null,
        is_too_deep=is_too_deep,
    )


def _explain(error: yaml.YAMLError, source: Source) -> Diagnostic:
    """Return the parser's error with a remedy: for the tab, the unquoted `${`, the missing space."""
    line, column = _error_position(error, source)
    text = source.lines[line]
    tab = _TAB.match(text)
    if tab:
        at = source.location(line, tab.end() - 1)
        return problem(codes.TAB, "A tab in the indentation", at, hint="YAML is indented with spaces")
    message = (error.problem if isinstance(error, yaml.MarkedYAMLError) else None) or str(error)
    texts = {_LINE: text, _MESSAGE: message}
    hint = next((hint for part, pattern, hint in _HINTS if re.search(pattern, texts[part])), "")
    return problem(codes.SYNTAX, f"Invalid YAML: {message}", source.location(line, column), hint=hint)


def _error_position(error: yaml.YAMLError, source: Source) -> tuple[int, int]:
    """Return the line and column of the parser's mark; of the last character, if the parser expected more text."""
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    last_line = max((number for number, text in enumerate(source.lines) if text.strip()), default=0)
    line = min(mark.line, last_line) if mark else last_line
    last_column = max(len(source.lines[line].rstrip()) - 1, 0)
    if mark is None or mark.line != line:
        return line, last_column
    return line, min(mark.column, last_column)


@lru_cache(maxsize=4096)  # the profiles of a fleet have most of their texts in common: each is kept once
def _text_and_value(text: str, is_plain: bool) -> tuple[str, bool | int | float | str | None]:
    """Return the text of a scalar and its value. Raise `core_scalars.NotText` or `core_scalars.NotFinite`."""
    text = sys.intern(text if text.isascii() else _join_surrogates(text))
    if not core_scalars.is_clean(text):
        raise core_scalars.NotText(text)
    return text, core_scalars.resolve(text) if is_plain else text


def _join_surrogates(text: str) -> str:
    """Return the text with each pair of surrogates as the one character that it encodes."""
    return _PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)


class _Stopped(Exception):
    """Ends the reading. The problem is already in the list."""


class _Open:
    """A list or mapping that has not ended yet. `key` is the key whose value is next."""

    def __init__(self, place: SourcePlace, start: Any, *, is_map: bool, nodes_before: int) -> None:
        self.place = place
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
        self.has_null = False

    def _note(self, code: str, message: str, place: SourcePlace, hint: str, also: Location | None = None) -> None:
        self.problems.append(problem(code, message, place.location, hint=hint, also=also))

    def _stop(self, code: str, message: str, place: SourcePlace, hint: str) -> None:
        self._note(code, message, place, hint)
        raise _Stopped

    def _document_start(self, event: yaml.DocumentStartEvent) -> None:
        self._documents += 1
        if self._documents > 1:
            place = self._place(event)
            self._stop(codes.SEVERAL_DOCUMENTS, "A second document begins here", place, "one file holds one profile")

    def _place(self, event: Any, anchor: str | None = None) -> SourcePlace:
        start, end = event.start_mark, event.end_mark
        row, begin = start.line, start.column
        if anchor is None and end.line == row:
            return SourcePlace(self._source, row, begin, end.column - begin)
        line = self._source.lines[row] if row < len(self._source.lines) else ""
        before = _PROPERTIES.match(line, begin) if anchor is not None else None
        begin = before.end() if before else begin
        stop = end.column if end.line == row else len(line)
        return SourcePlace(self._source, row, begin, stop - begin)

    def _count(self, nodes: int, place: SourcePlace) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            self._stop(
                codes.TOO_MANY_VALUES,
                f"More than {MAX_NODES} values, aliases counted as often as they are used",
                place,
                "a profile has about a hundred; move what repeats into a file that this one extends",
            )

    def _start(self, event: Any, *, is_map: bool) -> None:
        place = self._place(event, event.anchor)
        if event.tag is not None:
            self._check_tag(event, place)
        if len(self._open) >= MAX_DEPTH:
            self._stop(
                codes.TOO_DEEP,
                f"Nested deeper than {MAX_DEPTH} levels",
                place,
                "no key of the format is so deep",
            )
        self._count(1, place)
        self._open.append(_Open(place, event, is_map=is_map, nodes_before=self._nodes))

    def _start_map(self, event: Any) -> None:
        self._start(event, is_map=True)

    def _start_list(self, event: Any) -> None:
        self._start(event, is_map=False)

    def _end(self, event: Any) -> None:
        frame = self._open.pop()
        place = frame.place
        row = frame.start.start_mark.line
        if frame.start.flow_style and event.end_mark.line == row:
            place = SourcePlace(self._source, row, place.column, event.end_mark.column - place.column)
        node: Node = MapNode(place, frame.entries) if frame.is_map else ListNode(place, tuple(frame.items))
        if frame.start.anchor is not None:
            self._anchors[frame.start.anchor] = node, 1 + self._nodes - frame.nodes_before
        self._add(node)

    def _scalar(self, event: Any) -> None:
        text, is_plain = event.value, event.implicit[0]
        place = self._place(event, event.anchor)
        self._count(1, place)
        if event.tag is not None:
            self._check_tag(event, place)
        value: bool | int | float | str | None
        try:
            text, value = _text_and_value(text, is_plain)
        except core_scalars.NotText:
            message = "A NUL or half a character, written as an escape"
            self._note(codes.CONTROL_CHARACTER, message, place, "leave it out")
            value = ""
        except core_scalars.NotFinite:
            message = f"{quoted(text)} is not a finite number"
            self._note(codes.NOT_FINITE, message, place, "write a number, or quote it as text")
            value = 0
        self.has_null = self.has_null or value is None
        node = ScalarNode(place, value, text, is_plain)
        if event.anchor is not None:
            self._anchors[event.anchor] = node, 1
        self._add(node)

    def _alias(self, event: Any) -> None:
        place = self._place(event)
        if event.anchor not in self._anchors:
            self._stop(
                codes.SYNTAX,
                f"Alias {quoted('*' + event.anchor)} has no anchor before it",
                place,
                "quote the value if it is meant as text",
            )
        node, nodes = self._anchors[event.anchor]
        self._count(nodes, place)
        self._add(node)

    def _check_tag(self, event: Any, place: SourcePlace) -> None:
        if event.tag not in _TEXT_TAGS:
            self._note(
                codes.TAG,
                f"Tag {quoted(event.tag)} is not allowed",
                place,
                "leave it out; quote the value if it is text",
            )

    def _add(self, node: Node) -> None:
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
            self._note(codes.MERGE_KEY, "YAML 1.2 has no merge keys", node.place, "use `extends`")
        else:
            self._note(codes.KEY_NOT_TEXT, "A key must be text", node.place, "write a word before the colon")
        return ScalarNode(node.place, "", "", plain=True)

    def _pair(self, frame: _Open, key: ScalarNode, value: Node) -> None:
        first = frame.entries.get(key.text)
        if first is not None:
            self._note(
                codes.DUPLICATE_KEY,
                f"Duplicate key {quoted(key.text)}",
                key.place,
                f"line {first.key.line} has it already; keep one",
                also=first.key,
            )
        elif key.text:  # an empty text marks a key that is reported already
            frame.entries[key.text] = Entry(key.place, value)

    # Functions of the class, not bound methods: those would keep each builder alive in a reference cycle.
    handlers: ClassVar[dict[type[yaml.Event], Callable[[_Builder, Any], None]]] = {
        yaml.DocumentStartEvent: _document_start,
        yaml.MappingStartEvent: _start_map,
        yaml.SequenceStartEvent: _start_list,
        yaml.MappingEndEvent: _end,
        yaml.SequenceEndEvent: _end,
        yaml.ScalarEvent: _scalar,
        yaml.AliasEvent: _alias,
    }
