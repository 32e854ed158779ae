"""Check keys that a person chooses: labels, volumes, and the paths of `ignore_changes`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tpudeploy.config import codes
from tpudeploy.config.diagnose import did_you_mean, quoted
from tpudeploy.config.keys import all_keys
from tpudeploy.config.nodes import Path, dotted
from tpudeploy.config.rules.violation import Violation
from tpudeploy.config.schema import ProfileSpec
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


def labels(profile: ProfileSpec) -> Iterator[Violation]:
    for key, value in profile.placement.labels.items():
        path = (*_LABELS, key)
        if not LABEL_KEY.fullmatch(key):
            hint = "lower case, digits, _ and -, at most 63, beginning with a letter"
            yield Violation(codes.LABEL, path, f"{quoted(key)} is not a valid label key", hint, is_key=True)
        elif key.startswith(_OURS):
            hint = f"keys that begin with {' or '.join(_OURS)} are reserved"
            yield Violation(codes.LABEL, path, f"{quoted(key)} is a reserved key", hint, is_key=True)
        if not LABEL_VALUE.fullmatch(value):
            hint = "lower case, digits, _ and -, at most 63"
            yield Violation(codes.LABEL, path, f"{quoted(value)} is not a valid label value", hint)


def volumes(profile: ProfileSpec) -> Iterator[Violation]:
    first: dict[str, Path] = {}
    for host, target in (profile.serving.volumes or {}).items():
        path = (*_VOLUMES, host)
        if not _VOLUME_PATH.fullmatch(host):
            yield _invalid_volume(host, path, is_key=True)
        if not _VOLUME_PATH.fullmatch(target) or not target.strip("/"):
            yield _invalid_volume(target, path, is_key=False)
            continue
        place = target.rstrip("/")
        if place in first:
            yield Violation(codes.VOLUME, path, f"{quoted(target)} is mounted twice", "keep one", also=first[place])
        first.setdefault(place, path)


def _invalid_volume(path_text: str, path: Path, *, is_key: bool) -> Violation:
    hint = "write /host/path: /container/path, both absolute and without a colon"
    return Violation(codes.VOLUME, path, f"{quoted(path_text)} cannot be a volume's path", hint, is_key=is_key)


def ignored_paths(profile: ProfileSpec) -> Iterator[Violation]:
    ignored = profile.lifecycle.ignore_changes
    if not ignored:
        return
    keys = {dotted(key) for key in all_keys()}
    open_sections = tuple(f"{dotted(path)}." for path in _OPEN_SECTIONS)
    for i, text in enumerate(ignored):
        if text not in keys and not text.startswith(open_sections):
            message = f"The format has no path {quoted(text)}"
            yield Violation(codes.UNKNOWN_PATH, (*_IGNORED, i), message, did_you_mean(text, keys))
