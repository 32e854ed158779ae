"""Format the resolved profile as YAML with the origin of each value, to debug overlays."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tpudeploy.domain.deployment import MACHINE_IMAGE, OWN_FILES, Deployment
from tpudeploy.pins import COMMIT, DIGEST, unpinned

# The key that each pin is shown beside: the lock file holds pins, not the profile.
_PINS = {"serving.image": DIGEST, "model.id": COMMIT, "tpu.type": MACHINE_IMAGE}
_PLAIN_KEY = re.compile(r"[A-Za-z_][\w./-]*")


def profile(name: str, deployment: Deployment) -> str:
    """Return YAML that resolves to the same deployment. Values that no file sets are marked as defaults."""
    tree: dict[str, Any] = {"version": 1, "name": name, "replicas": deployment.replicas}
    for path, value in unpinned(deployment.attributes).items():
        if path.startswith(OWN_FILES):
            continue
        *sections, key = _parts(path)
        branch = tree
        for section in sections:
            branch = branch.setdefault(section, {})
        branch[key] = (path, value)
    return "\n".join(_lines(tree, deployment, 0)) + "\n"


def _parts(path: str) -> tuple[str, ...]:
    """Split a dotted path into keys; below an open mapping the rest is one key, including its dots."""
    for section in ("serving.args", "serving.env", "placement.labels", "secrets"):
        if path.startswith(f"{section}."):
            return (*section.split("."), path.removeprefix(f"{section}."))
    return tuple(path.split("."))


def _lines(tree: Mapping[str, Any], deployment: Deployment, depth: int) -> list[str]:
    lines: list[str] = []
    pad = "  " * depth
    for key, node in tree.items():
        quoted_key = key if _PLAIN_KEY.fullmatch(key) else json.dumps(key)
        match node:
            case dict():
                lines += [f"{pad}{quoted_key}:", *_lines(node, deployment, depth + 1)]
            case (str(path), value):
                lines.append(
                    f"{pad}{quoted_key}: {json.dumps(value, ensure_ascii=False)}  # {_origin(path, deployment)}"
                )
            case _:
                lines.append(f"{pad}{quoted_key}: {json.dumps(node)}")
    return lines


def _origin(path: str, deployment: Deployment) -> str:
    location = deployment.origin(path)
    pin = deployment.attributes.get(_PINS.get(path, ""))
    origin = "default" if location is None else f"{location.file}:{location.line}"
    return origin if pin is None else f"{origin}, pinned to {pin}"
