"""The one way in: a path, its overlays and settings become a Profile, or every problem at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pydantic import ValidationError

from tpudeploy.config import codes
from tpudeploy.config.credentials import credentials
from tpudeploy.config.diagnose import in_order
from tpudeploy.config.interpolate import Interpolation
from tpudeploy.config.keys import fields_at
from tpudeploy.config.layers import Layers, stacked
from tpudeploy.config.merge import written
from tpudeploy.config.nodes import MapNode, Path, is_null, plain
from tpudeploy.config.origins import Origins
from tpudeploy.config.profile import Profile
from tpudeploy.config.reader import Reader
from tpudeploy.config.rules.table import RULES
from tpudeploy.config.schema import ProfileSpec
from tpudeploy.config.translate import translated, unknown_key
from tpudeploy.config.trust import TRUSTED, Trust
from tpudeploy.config.withhold import has_withheld, with_stand_ins, withhold, without_text
from tpudeploy.domain.diagnostics import Diagnostic, Location, Severity, errors_in
from tpudeploy.domain.errors import ProfileInvalid


def parse(
    path: str,
    reader: Reader,
    *,
    overlays: Sequence[str] = (),
    sets: Sequence[str] = (),
    environment: Mapping[str, str],
    trust: Trust = TRUSTED,
) -> Profile:
    """Raise ProfileInvalid with every problem found, or ProfileNotFound for a path that is not there.

    `overlays` are laid over the file in their order, then `sets`, each `dotted.path=YAML value`. No diagnostic quotes a
    value that came from the environment, or from a file outside the project that a profile extends.
    """
    layers = Layers(reader, environment, trust)
    stack = [layers.file(name) for name in (path, *overlays)]
    stack += [layers.argument(text, ordinal) for ordinal, text in enumerate(sets, start=1)]
    root = stacked(stack)
    tree = written(root) if root else None
    # A value that is neither filled in nor escaped stands in its source as it is, and was looked at there.
    may_differ = any("$" in source.text or "\\" in source.text for source in layers.sources)
    if tree is not None and may_differ:
        tree = Interpolation(environment, layers.problems, trust).tree(tree)
    layers.problems.extend(credentials(layers.sources, tree if may_differ else None))
    if root is None or tree is None:
        raise _invalid(path, without_text(layers.problems, layers.outside))
    nulls = dict(_nulls(root))
    spec, found = _checked(tree, nulls)
    if found and has_withheld(tree, layers.outside):
        _, of_stand_ins = _checked(with_stand_ins(tree, layers.outside), nulls)
        found = list(withhold(found, of_stand_ins, tree))
    every = without_text(_without_echoes(layers.problems, found, whole=layers.whole), layers.outside)
    reported = in_order(every)
    if spec is None or errors_in(reported):
        raise _invalid(path, reported)
    return Profile(spec=spec, origins=Origins(tree), warnings=reported, reader=reader)


def _checked(tree: MapNode, nulls: Mapping[Path, Location]) -> tuple[ProfileSpec | None, list[Diagnostic]]:
    found = [d for rule in RULES for d in rule(tree)]
    found.extend(unknown_key(path, at, tree) for path, at in nulls.items() if _is_unknown(path))
    try:
        return ProfileSpec.model_validate(plain(tree)), found
    except ValidationError as error:
        return None, [*found, *translated(error, tree, nulls)]


def _is_unknown(path: Path) -> bool:
    known = fields_at(path[:-1])
    return known is not None and path[-1] not in known


def _nulls(root: MapNode, path: Path = ()) -> Iterator[tuple[Path, Location]]:
    for key, entry in root.entries.items():
        if is_null(entry.value):
            yield (*path, key), entry.key
        elif isinstance(entry.value, MapNode):
            yield from _nulls(entry.value, (*path, key))


def _without_echoes(read: list[Diagnostic], checked: list[Diagnostic], *, whole: bool) -> Iterator[Diagnostic]:
    """What could not be read needs no second complaint: about that value, or about what is missing without it."""
    unread = {d.location for d in read}
    wrong = unread | {d.location for d in errors_in(checked)}
    yield from read
    for diagnostic in checked:
        echoes = unread if diagnostic.severity is Severity.ERROR else wrong
        if diagnostic.location not in echoes and (whole or diagnostic.code not in codes.OF_ABSENCE):
            yield diagnostic


def _invalid(path: str, problems: Iterable[Diagnostic]) -> ProfileInvalid:
    diagnostics = in_order(problems)
    count = len(errors_in(diagnostics))
    return ProfileInvalid(
        f"`{path}` has {count} problem{'' if count == 1 else 's'}",
        hint="each has a code: tpudeploy explain CODE",
        diagnostics=diagnostics,
    )
