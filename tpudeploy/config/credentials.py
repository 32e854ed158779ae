"""Find credentials in a profile, wherever they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpudeploy.config import codes
from tpudeploy.config.diagnose import problem
from tpudeploy.config.nodes import MapNode, Path, ScalarNode, walk
from tpudeploy.config.source import Source
from tpudeploy.config.tokens import tokens_in
from tpudeploy.domain.diagnostics import Diagnostic, Location


def credentials(sources: Iterable[Source], tree: MapNode | None) -> Iterator[Diagnostic]:
    """Yield each credential at its place in a source; one that was escaped or filled in, at its value."""
    marks: set[str] = set()
    for source in sources:
        for kind, start, end in tokens_in(source.text) if source.is_masked else ():
            marks.add(_mark(source.text[start:end]))
            yield _credential(kind, source.location_of(start, end), ())
    for text, at, path, anywhere in _texts(tree) if tree else ():
        for kind, start, end in tokens_in(text, anywhere=anywhere):
            if _mark(text[start:end]) not in marks:
                yield _credential(kind, at, path)


def _credential(kind: str, at: Location, path: Path) -> Diagnostic:
    hint = "revoke it if it was ever shared; keep it in Secret Manager and name it under `secrets`"
    return problem(codes.CREDENTIAL, f"This looks like {kind}", at, path=path, hint=hint)


def _mark(token: str) -> str:
    """Return the first line: the others are indented in the file, but not in the value."""
    return token.splitlines()[0]


def _texts(root: MapNode) -> Iterator[tuple[str, Location, Path, bool]]:
    """Yield each key and text with location and path, and whether a part of it is filled in, even inside a word."""
    for path, node in walk(root):
        if isinstance(node, ScalarNode) and isinstance(node.value, str):
            yield node.value, node.at, path, node.reference is not None
        elif isinstance(node, MapNode):
            yield from ((key, entry.key, (*path, key), False) for key, entry in node.entries.items())
