"""Read and merge the sources of a profile: the files that it extends, itself, overlays, `--set`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import Final

from tpudeploy.config import codes
from tpudeploy.config.compose import compose
from tpudeploy.config.diagnose import problem, quoted
from tpudeploy.config.interpolate import Interpolation
from tpudeploy.config.merge import merge
from tpudeploy.config.nodes import Entry, ListNode, MapNode, Node, ScalarNode, SourcePlace, is_null
from tpudeploy.config.reader import Reader, Unreadable
from tpudeploy.config.source import Source, argument, decode
from tpudeploy.config.trust import TRUSTED, Trust
from tpudeploy.domain.diagnostics import Diagnostic, Location
from tpudeploy.domain.errors import ProfileNotFound

MAX_EXTENDS: Final = 5
MAX_FILES: Final = 50
_EXTENDS: Final = "extends"
_SET: Final = "--set"
_SEGMENT = re.compile(r"[^.=\s]+")


class Layers:
    """Reads layers. `problems` collects what is wrong; `whole` is False once a layer had to be left out.

    `outside` collects the files that no message may quote, because they are outside the project. A trusted person may
    see the files that they name on the command line, but not where a link leads. `has_null`: a layer has a null, which
    deletes or defaults.
    """

    def __init__(self, reader: Reader, environment: Mapping[str, str], trust: Trust = TRUSTED) -> None:
        self.reader = reader
        self.environment = environment
        self.trust = trust
        self.outside: set[str] = set()
        self.problems: list[Diagnostic] = []
        self.sources: list[Source] = []
        self.whole = True
        self.has_null = False
        self._files = 0

    def file(self, path: str) -> MapNode | None:
        """Return the file merged over the files that it extends. Raise ProfileNotFound: the path is an argument."""
        try:
            content = self.reader.read(path)
        except Unreadable as error:
            if error.missing:
                raise ProfileNotFound(f"`{path}` {error.reason}", hint=error.hint, guess=error.guess) from error
            at = Location(file=path, line=1, column=1)
            code = codes.OUTSIDE_PROJECT if error.is_refused else codes.UNREADABLE
            self._note(code, f"`{path}` {error.reason}", at, error.hint)
            return None
        if self.trust.is_outside(path):
            self.outside.add(path)
        return self._merge_over_bases(content, (path,))

    def argument(self, text: str, ordinal: int) -> MapNode | None:
        """Return `path=value` as a tree with one leaf."""
        source = argument(_SET, text, ordinal)
        if isinstance(source, Diagnostic):
            self._refuse(source)
            return None
        name, equals, value = text.partition("=")
        keys = name.split(".")
        if not equals or not all(_SEGMENT.fullmatch(key) for key in keys) or keys[0] == _EXTENDS:
            hint = "write --set path=value, e.g. --set serving.max_model_len=8192"
            message = f"{quoted(name)} is not a path that can be set"
            self._note(codes.SET_FORM, message, source.location(0, 0, len(name)), hint)
            return None
        # Replace the path by spaces, so that the parser's columns are those of the argument.
        return _branch(source, keys, self._composed(source, " " * (len(name) + 1) + value))

    def _note(self, code: str, message: str, at: Location, hint: str = "") -> None:
        self._refuse(problem(code, message, at, hint=hint))

    def _refuse(self, reason: Diagnostic) -> None:
        """Leave a layer out, for this reason."""
        self.problems.append(reason)
        self.whole = False

    def _composed(self, source: Source, text: str | None = None) -> Node | None:
        composed = compose(source, text)
        self.sources.append(source)
        self.problems.extend(composed.problems)
        self.whole = self.whole and not composed.broken
        self.has_null = self.has_null or composed.has_null
        if composed.node is None and not composed.broken:
            self.has_null = True
            return ScalarNode(SourcePlace(source, 0, len(text or "")), None, "", plain=True)
        return composed.node

    def _merge_over_bases(self, content: bytes, chain: tuple[str, ...]) -> MapNode | None:
        """Return the last file of `chain` merged over its bases. Each file of the chain extends the next."""
        self._files += 1
        source = decode(chain[-1], content, may_be_quoted=chain[-1] not in self.outside)
        if isinstance(source, Diagnostic):
            self._refuse(source)
            return None
        root = self._mapping(self._composed(source))
        if root is None:
            return None
        bases = [self._base(node, chain) for node in self._extended(root)]
        own = root
        if _EXTENDS in root.entries:
            own = MapNode(root.place, {k: v for k, v in root.entries.items() if k != _EXTENDS})
        return merge_all([*bases, own])

    def _mapping(self, node: Node | None) -> MapNode | None:
        if isinstance(node, MapNode) and node.entries:
            return node
        if isinstance(node, MapNode) or (node and is_null(node)):
            self._note(codes.EMPTY, "The file is empty", node.at, "begin with `version: 1`")
        elif node:
            shape = "a list" if isinstance(node, ListNode) else "one value"
            hint = "write `key: value` lines, beginning with `version: 1`"
            self._note(codes.NOT_A_MAPPING, f"The file holds {shape}, not a mapping", node.at, hint)
        return None

    def _extended(self, root: MapNode) -> Iterator[ScalarNode]:
        entry = root.entries.get(_EXTENDS)
        if entry is None or is_null(entry.value):
            return
        filled = Interpolation(self.environment, self.problems, self.trust).node(entry.value, (_EXTENDS,))
        for node in filled.items if isinstance(filled, ListNode) else (filled,):
            if isinstance(node, ScalarNode) and isinstance(node.value, str) and node.value:
                yield node
            else:
                self._note(codes.EXTENDS_FORM, "`extends` takes a path, or a list of paths", node.at)

    def _base(self, reference: ScalarNode, chain: tuple[str, ...]) -> MapNode | None:
        path = self.reader.resolve(chain[-1], str(reference.value))
        if path in chain:
            cycle = " -> ".join((*chain[chain.index(path) :], path))
            self._note(codes.EXTENDS_CYCLE, f"`extends` forms a cycle: {cycle}", reference.at, "remove it here")
            return None
        if len(chain) > MAX_EXTENDS or self._files >= MAX_FILES:
            message = f"`extends` is nested deeper than {MAX_EXTENDS} levels, or reads more than {MAX_FILES} files"
            self._note(codes.EXTENDS_TOO_DEEP, message, reference.at, "merge some of the files")
            return None
        try:
            content = self.reader.read(path)
        except Unreadable as error:
            code = codes.OUTSIDE_PROJECT if error.is_refused else codes.EXTENDS_UNREADABLE
            # The hint names files beside the path, so it would reveal a path that came from the environment.
            path, hint = (path, error.hint) if reference.reference is None else (reference.reference, "")
            self._note(code, f"`extends`: `{path}` {error.reason}", reference.at, hint)
            return None
        if self.trust.is_outside(path):
            self.outside.add(path)
        return self._merge_over_bases(content, (*chain, path))


def merge_all(layers: Iterable[MapNode | None]) -> MapNode | None:
    """Merge each layer over the one before it. A missing layer is reported already; the others can still be checked."""
    present = [layer for layer in layers if layer]
    return reduce(merge, present) if present else None


def _branch(source: Source, keys: list[str], leaf: Node | None) -> MapNode | None:
    if leaf is None:
        return None
    node = leaf
    end = sum(len(key) + 1 for key in keys) - 1
    for key in reversed(keys):
        place = SourcePlace(source, 0, end - len(key), len(key))
        node = MapNode(place, {key: Entry(place, node)})
        end -= len(key) + 1
    return node if isinstance(node, MapNode) else None
