"""Parse a path with its overlays and settings into a Profile, or into every problem at once."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from tpudeploy.config import codes
from tpudeploy.config.check import check, invalid
from tpudeploy.config.compose import compose
from tpudeploy.config.credentials import credentials
from tpudeploy.config.diagnose import in_order
from tpudeploy.config.interpolate import Interpolation
from tpudeploy.config.keys import fields_at
from tpudeploy.config.layers import Layers, merge_all
from tpudeploy.config.merge import without_nulls
from tpudeploy.config.nodes import MapNode, Path, is_null
from tpudeploy.config.profile import LazyOrigins, Profile
from tpudeploy.config.reader import Reader
from tpudeploy.config.schema import ProfileSpec
from tpudeploy.config.source import decode
from tpudeploy.config.topology import with_type
from tpudeploy.config.translate import unknown_key
from tpudeploy.config.trust import TRUSTED, Trust
from tpudeploy.config.withhold import has_withheld, with_stand_ins, withhold, without_text
from tpudeploy.domain.diagnostics import Diagnostic, Location, Severity, errors_in
from tpudeploy.domain.engine import Engine

# Without indentation, only a key of the top mapping can be there. Most profiles are written so.
_KEY = re.compile(rb"^(name|version|extends)[ \t]*:", re.MULTILINE)


def parse(
    path: str,
    reader: Reader,
    *,
    overlays: Sequence[str] = (),
    sets: Sequence[str] = (),
    environment: Mapping[str, str],
    trust: Trust = TRUSTED,
    engine: Engine | None = None,
) -> Profile:
    """Return the profile. Raise ProfileInvalid with every problem, or ProfileNotFound for a path that does not exist.

    `overlays` are merged over the file in their order, then `sets`, each `dotted.path=YAML value`. No diagnostic quotes
    a value that came from the environment, or from a file outside the project that a profile extends. `engine` is that
    of its image, if more is known of it than its name and tag tell.
    """
    layers = Layers(reader, environment, trust)
    stack = [layers.file(name) for name in (path, *overlays)]
    stack += [layers.argument(text, ordinal) for ordinal, text in enumerate(sets, start=1)]
    root = merge_all(stack)
    tree = without_nulls(root) if root and layers.has_null else root
    # Values that are neither filled in nor escaped are checked for credentials in the text of their source.
    may_differ = any("$" in source.text or "\\" in source.text for source in layers.sources)
    if tree is not None and may_differ:
        tree = Interpolation(environment, layers.problems, trust).tree(tree)
    layers.problems.extend(credentials(layers.sources, tree if may_differ else None))
    if root is None or tree is None:
        raise invalid(f"`{path}`", without_text(layers.problems, layers.outside))
    nulls = {} if tree is root else dict(_nulls(root))
    spec, problems = _check(tree, nulls, engine)
    problems = _without_outside(problems, tree, nulls, layers.outside, engine)
    diagnostics = in_order(without_text(_without_echoes(layers.problems, problems, whole=layers.whole), layers.outside))
    if spec is None or errors_in(diagnostics):
        raise invalid(f"`{path}`", diagnostics)
    return Profile.from_keys(spec, origins=LazyOrigins(with_type(tree)), warnings=diagnostics, reader=reader)


def _without_outside(
    problems: list[Diagnostic],
    tree: MapNode,
    nulls: Mapping[Path, Location],
    outside: Collection[str],
    engine: Engine | None,
) -> list[Diagnostic]:
    """Return the problems without those that would tell a value of a file outside the project."""
    if not problems or not has_withheld(tree, outside):
        return problems
    _, of_stand_ins = _check(with_stand_ins(tree, outside), nulls, engine)
    return list(withhold(problems, of_stand_ins, tree))


def _check(
    tree: MapNode, nulls: Mapping[Path, Location], engine: Engine | None
) -> tuple[ProfileSpec | None, list[Diagnostic]]:
    spec, problems = check(tree, nulls, engine)
    problems += [unknown_key(path, at, tree) for path, at in nulls.items() if _is_unknown(path)]
    return spec, problems


def _is_unknown(path: Path) -> bool:
    fields = fields_at(path[:-1])
    return fields is not None and path[-1] not in fields


def _nulls(root: MapNode, path: Path = ()) -> Iterator[tuple[Path, Location]]:
    for key, entry in root.entries.items():
        if is_null(entry.value):
            yield (*path, key), entry.key
        elif isinstance(entry.value, MapNode):
            yield from _nulls(entry.value, (*path, key))


def _without_echoes(read: list[Diagnostic], checked: list[Diagnostic], *, whole: bool) -> Iterator[Diagnostic]:
    """Yield the diagnostics without those that follow from what could not be read: about that value, or its absence."""
    unread = {d.location for d in read}
    wrong = unread | {d.location for d in errors_in(checked)}
    yield from read
    for diagnostic in checked:
        echoes = unread if diagnostic.severity is Severity.ERROR else wrong
        if diagnostic.location not in echoes and (whole or diagnostic.code not in codes.OF_ABSENCE):
            yield diagnostic


def why_not_a_profile(name: str, content: bytes) -> str:
    """Return why a file of a folder is not a profile; "" for a profile, and for a file that `parse` will refuse.

    A profile has a name, and a version or a file that it extends. A base for other profiles has no name; an overlay has
    neither name nor version; the YAML of another tool may have any key.
    """
    keys = {match[1].decode() for match in _KEY.finditer(content)}
    if not _is_whole(keys):
        keys_by_parser = _keys(name, content)
        if keys_by_parser is None:
            return ""
        keys = keys_by_parser
    if _is_whole(keys):
        return ""
    return "it has no `version`" if "name" in keys or not keys & {"version", "extends"} else "it has no `name`"


def _is_whole(keys: set[str]) -> bool:
    return "name" in keys and bool(keys & {"version", "extends"})


def _keys(name: str, content: bytes) -> set[str] | None:
    """Return the keys by the parser, in whatever style they are written; None if the file is not YAML."""
    source = decode(name, content)
    composed = None if isinstance(source, Diagnostic) else compose(source)
    if composed is None or composed.broken:
        return None
    return set(composed.node.entries) if isinstance(composed.node, MapNode) else set()
