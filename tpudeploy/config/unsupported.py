"""What the format has and this version does not do yet: refused when asked for, never ignored."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy import catalog
from tpudeploy.config import codes
from tpudeploy.config.diagnose import problem
from tpudeploy.config.nodes import MapNode, Path, ScalarNode, dotted, find
from tpudeploy.config.rules import look
from tpudeploy.domain.diagnostics import Diagnostic

# The key, and the values that are refused; none named where every value is.
_REFUSED: dict[Path, tuple[object, ...]] = {
    ("placement", "backend"): ("gce-instance", "auto"),
}
_TYPE: Path = ("tpu", "type")


def supported(root: MapNode) -> Iterator[Diagnostic]:
    for path, refused in _REFUSED.items():
        node = find(root, path)
        if isinstance(node, ScalarNode) and (not refused or node.value in refused):
            message = f"{dotted(path)}{f': {node.text}' if refused else ''} is not supported yet"
            yield problem(codes.NOT_SUPPORTED, message, node.at, path=path, hint="leave it out, or write its default")


def is_refused(path: Path, value: object) -> bool:
    """Whether this version refuses a value that the format has."""
    return path in _REFUSED and (not _REFUSED[path] or value in _REFUSED[path])


def single_host(root: MapNode) -> Iterator[Diagnostic]:
    slice_type = catalog.accelerator_type(look.value(root, _TYPE, str) or "")
    if slice_type and slice_type.hosts > 1:
        single = [t.name for t in catalog.accelerator_types() if t.generation == slice_type.generation and t.hosts == 1]
        message = f"{slice_type.name} has {slice_type.hosts} hosts; several hosts are not supported yet"
        hint = f"with one host there are {', '.join(single)}"
        yield problem(codes.NOT_SUPPORTED, message, look.at(root, _TYPE), path=_TYPE, hint=hint)
