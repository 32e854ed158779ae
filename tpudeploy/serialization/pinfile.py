"""Read and write pins as JSON: `tpudeploy.lock.json`, the format `tpudeploy.lock/1`, one line a pin for git to merge.

People commit, merge and edit the file: an impossible value is refused by its name, and an unknown key is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from tpudeploy.domain.diagnostics import Location
from tpudeploy.domain.errors import PinsTooNew, PinsUnreadable
from tpudeploy.domain.model import Checkpoint
from tpudeploy.domain.pins import Name, PinKind, Pins

FORMAT = "tpudeploy.lock/1"
# Each section of the file: the kind of its names, the pattern of what they are pinned to, and a description of that.
SECTIONS: tuple[tuple[str, PinKind, str, str], ...] = (
    ("images", PinKind.IMAGE, r"sha256:[0-9a-f]{64}", "a digest: sha256: and 64 hexadecimal digits"),
    ("models", PinKind.MODEL, r"[0-9a-f]{40}", "a commit: 40 hexadecimal digits"),
    ("machine_images", PinKind.MACHINE_IMAGE, r"[a-z][-a-z0-9]*", "the name of an image of Compute Engine"),
)
# What engines reported, by the digests of their images.
_VERSION = r"[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]{0,64}"
# What the labels of an image say of its engine: the engine, its release, both, or nothing (`ImageLabels`).
_LABELS = r"|[a-z-]{1,32}( [0-9A-Za-z.+-]{1,64})?|[0-9][0-9A-Za-z.+-]{0,63}"
_OF_DIGESTS = ("releases", "labels", "checkpoints")


def dumps(pins: Pins) -> str:
    """Return the text of the file: names in alphabetical order, then the unknown keys."""
    tree = {
        "format": FORMAT,
        "images": dict(sorted(pins.images.items())),
        "models": dict(sorted(pins.models.items())),
        # Only profiles for Compute Engine have some, so that the files of others stay as they are.
        **({"machine_images": dict(sorted(pins.machine_images.items()))} if pins.machine_images else {}),
        **({"releases": dict(sorted(pins.releases.items()))} if pins.releases else {}),
        **({"labels": dict(sorted(pins.labels.items()))} if pins.labels else {}),
        **({"checkpoints": _checkpoints_to_json(pins.checkpoints)} if pins.checkpoints else {}),
        **pins.more,
    }
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"


def loads(text: str, *, source: str) -> Pins:
    """Return the pins in a text. Raise `errors.PinsUnreadable` or `errors.PinsTooNew`; `source` names the file."""
    try:
        tree = json.loads(text, object_pairs_hook=lambda pairs: _once(pairs, source))
    except (ValueError, RecursionError) as cause:
        _refuse(source, f"it is not JSON: {cause}")
    if not isinstance(tree, dict) or "format" not in tree:
        _refuse(source, "it names no format")
    if tree["format"] != FORMAT:
        raise PinsTooNew(
            f"{source} is written in the format `{tree['format']}`; this tpudeploy reads `{FORMAT}`.",
            hint="Use the version that wrote it, or a newer one. `tpudeploy version` shows how to upgrade.",
        )
    sections = {section: _section(tree, section, pattern, what, source) for section, _, pattern, what in SECTIONS}
    return Pins(
        images=sections["images"],
        models=sections["models"],
        machine_images=sections["machine_images"],
        lines={
            Name(kind=kind, text=name): _location(text, name, source)
            for section, kind, _, _ in SECTIONS
            for name in sections[section]
        },
        releases=_section(tree, "releases", _VERSION, "a version: three numbers with dots", source),
        labels=_section(tree, "labels", _LABELS, "an engine and its release", source),
        checkpoints=_checkpoints(tree, source),
        more={key: value for key, value in tree.items() if key not in {"format", *_OF_DIGESTS, *sections}},
    )


def _section(tree: Mapping[str, Any], section: str, pattern: str, what: str, source: str) -> dict[str, str]:
    pins = tree.get(section, {})
    if not isinstance(pins, dict):
        _refuse(source, f"`{section}` is not a mapping")
    for name, to in pins.items():
        if not isinstance(to, str) or not re.fullmatch(pattern, to):
            _refuse(source, f"`{name}` is pinned to {json.dumps(to)}, which is not {what}")
    return dict(pins)


def _checkpoints_to_json(checkpoints: Mapping[str, Checkpoint]) -> Mapping[str, Any]:
    """Return checkpoints by commit. A config is one text, so that the file has one line for each."""
    return {
        commit: {"config": checkpoint.config, "tensors": dict(sorted(checkpoint.tensors.items()))}
        for commit, checkpoint in sorted(checkpoints.items())
    }


def _checkpoints(tree: Mapping[str, Any], source: str) -> Mapping[str, Checkpoint]:
    section = tree.get("checkpoints", {})
    if not isinstance(section, dict):
        _refuse(source, "`checkpoints` is not a mapping")
    checkpoints = {}
    for commit, row in section.items():
        config, tensors = (row.get("config"), row.get("tensors")) if isinstance(row, dict) else (None, None)
        is_valid = isinstance(config, str) and isinstance(tensors, dict) and all(map(_is_count, tensors.values()))
        if not is_valid or not re.fullmatch(r"[0-9a-f]{40}", commit):
            _refuse(source, f"`checkpoints` has for `{commit}` no config and numbers of elements by type")
        checkpoints[commit] = Checkpoint(config=str(config), tensors=dict(tensors or {}))
    return checkpoints


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 10**15


def _once(pairs: Iterable[tuple[str, Any]], source: str) -> dict[str, Any]:
    """Return the keys of an object. After a careless merge, a name that two branches pinned is there twice."""
    values: dict[str, Any] = {}
    for key, value in pairs:
        if values.setdefault(key, value) != value:
            _refuse(source, f"`{key}` is there twice, with different values")
    return values


def _location(text: str, name: str, source: str) -> Location:
    """Return the line of a name in the layout of this module, or line 0 if a person wrote it in another layout."""
    key = json.dumps(name, ensure_ascii=False)
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(f"{key}:"):
            return Location(file=source, line=number, column=1 + line.index(key), width=len(key), text=line)
    return Location(file=source, line=0, column=0)


def _refuse(source: str, why: str) -> NoReturn:
    raise PinsUnreadable(
        f"{source} cannot be used: {why}.",
        hint="Put back the version that was committed last, or take that line out and run `tpudeploy plan --pin`.",
    )
