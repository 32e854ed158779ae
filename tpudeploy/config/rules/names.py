"""Check keys that a person chooses: labels, volumes, and the paths of `ignore_changes`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tpudeploy.config import codes
from tpudeploy.config.diagnose import did_you_mean, problem, quoted
from tpudeploy.config.keys import all_keys
from tpudeploy.config.nodes import MapNode, Path, ScalarNode, dotted
from tpudeploy.config.rules import look
from tpudeploy.domain.diagnostics import Diagnostic, Location
from tpudeploy.domain.names import LABEL_KEY, LABEL_VALUE

_LABELS: Path = ("placement", "labels")
_VOLUMES: Path = ("serving", "volumes")
_IGNORED: Path = ("lifecycle", "ignore_changes")
_VOLUME_PATH = re.compile(r"/[^\0:\n]*")
_OURS = ("tpudeploy", "goog")
_OPEN_SECTIONS: tuple[Path, ...] = (
    ("serving", "args"),
    ("serving", "env"),
    _VOLUMES,
    ("secrets",),
    _LABELS,
)


def labels(root: MapNode) -> Iterator[Diagnostic]:
    for key, entry in look.entries(root, _LABELS).items():
        path = (*_LABELS, key)
        if not LABEL_KEY.fullmatch(key):
            hint = "lower case, digits, _ and -, at most 63, beginning with a letter"
            yield problem(codes.LABEL, f"{quoted(key)} is not a valid label key", entry.key, path=path, hint=hint)
        elif key.startswith(_OURS):
            hint = f"keys that begin with {' or '.join(_OURS)} are reserved"
            yield problem(codes.LABEL, f"{quoted(key)} is a reserved key", entry.key, path=path, hint=hint)
        value = look.value(root, path, str)
        if value is not None and not LABEL_VALUE.fullmatch(value):
            hint = "lower case, digits, _ and -, at most 63"
            yield problem(
                codes.LABEL, f"{quoted(value)} is not a valid label value", entry.value.at, path=path, hint=hint
            )


def volumes(root: MapNode) -> Iterator[Diagnostic]:
    first: dict[str, Location] = {}
    for host, entry in look.entries(root, _VOLUMES).items():
        path = (*_VOLUMES, host)
        target = entry.value.value if isinstance(entry.value, ScalarNode) else None
        if not _VOLUME_PATH.fullmatch(host):
            yield _invalid_volume(host, entry.key, path)
        if not isinstance(target, str):
            continue
        if not _VOLUME_PATH.fullmatch(target) or not target.strip("/"):
            yield _invalid_volume(target, entry.value.at, path)
            continue
        place = target.rstrip("/")
        if place in first:
            message, also = f"{quoted(target)} is mounted twice", first[place]
            yield problem(codes.VOLUME, message, entry.value.at, path=path, hint="keep one", also=also)
        first.setdefault(place, entry.value.at)


def _invalid_volume(path_text: str, at: Location, path: Path) -> Diagnostic:
    hint = "write /host/path: /container/path, both absolute and without a colon"
    return problem(codes.VOLUME, f"{quoted(path_text)} cannot be a volume's path", at, path=path, hint=hint)


def ignored_paths(root: MapNode) -> Iterator[Diagnostic]:
    ignored = look.texts(root, _IGNORED)
    if not ignored:
        return
    keys = {dotted(key) for key in all_keys()}
    open_sections = tuple(f"{dotted(path)}." for path in _OPEN_SECTIONS)
    for path, text in ignored.items():
        if text not in keys and not text.startswith(open_sections):
            message = f"The format has no path {quoted(text)}"
            hint = did_you_mean(text, keys)
            yield problem(codes.UNKNOWN_PATH, message, look.at(root, path), path=path, hint=hint)
