"""No credential in any source, comments included, and none in a value, however it came to be there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpudeploy.config import codes
from tpudeploy.config.diagnose import problem
from tpudeploy.config.nodes import MapNode, Path, ScalarNode, walk
from tpudeploy.config.source import Source
from tpudeploy.config.tokens import tokens_in
from tpudeploy.domain.diagnostics import Diagnostic, Location


def credentials(sources: Iterable[Source], tree: MapNode | None) -> Iterator[Diagnostic]:
    """Each at the place where it is written; one that was escaped or filled in, at its value."""
    seen: set[str] = set()
    for source in sources:
        for kind, start, end in tokens_in(source.text):
            seen.add(_mark(source.text[start:end]))
            yield _credential(kind, source.location_of(start, end), ())
    for text, at, path, anywhere in _texts(tree) if tree else ():
        for kind, start, end in tokens_in(text, anywhere=anywhere):
            if _mark(text[start:end]) not in seen:
                yield _credential(kind, at, path)


def _credential(kind: str, at: Location, path: Path) -> Diagnostic:
    hint = "revoke it if it was ever shared; keep it in Secret Manager and name it under `secrets`"
    return problem(codes.CREDENTIAL, f"This looks like {kind}", at, path=path, hint=hint)


def _mark(token: str) -> str:
    """Its first line: the others are indented in the file and not in the value."""
    return token.splitlines()[0]


def _texts(root: MapNode) -> Iterator[tuple[str, Location, Path, bool]]:
    """Each key and text, its place and its path, and whether a part of it was filled in: a word may run into it."""
    for path, node in walk(root):
        if isinstance(node, ScalarNode) and isinstance(node.value, str):
            yield node.value, node.at, path, node.reference is not None
        elif isinstance(node, MapNode):
            yield from ((key, entry.key, (*path, key), False) for key, entry in node.entries.items())
