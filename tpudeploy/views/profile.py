"""The resolved profile as YAML, each value with the place it came from: the tool for debugging overlays."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tpudeploy.core.pins import COMMIT, DIGEST, unpinned
from tpudeploy.domain.deployment import Deployment

# Beside which key a pin is told: a lock file holds it, not the profile.
_PINS = {"serving.image": DIGEST, "model.id": COMMIT}
_PLAIN_KEY = re.compile(r"[A-Za-z_][\w./-]*")


def profile(name: str, deployment: Deployment) -> str:
    """Valid YAML that resolves to the same deployment. Values no file says are marked as defaults."""
    tree: dict[str, Any] = {"version": 1, "name": name, "replicas": deployment.replicas}
    for path, value in unpinned(deployment.attributes).items():
        *sections, key = _parts(path)
        branch = tree
        for section in sections:
            branch = branch.setdefault(section, {})
        branch[key] = (path, value)
    return "\n".join(_lines(tree, deployment, 0)) + "\n"


def _parts(path: str) -> tuple[str, ...]:
    """A dotted path cut into keys; below an open mapping the rest is one key, dots and all."""
    for opened in ("serving.args", "serving.env", "placement.labels", "secrets"):
        if path.startswith(f"{opened}."):
            return (*opened.split("."), path.removeprefix(f"{opened}."))
    return tuple(path.split("."))


def _lines(tree: Mapping[str, Any], deployment: Deployment, depth: int) -> list[str]:
    lines: list[str] = []
    pad = "  " * depth
    for key, value in tree.items():
        word = key if _PLAIN_KEY.fullmatch(key) else json.dumps(key)
        match value:
            case dict():
                lines += [f"{pad}{word}:", *_lines(value, deployment, depth + 1)]
            case (str(path), of):
                lines.append(f"{pad}{word}: {json.dumps(of, ensure_ascii=False)}  # {_origin(path, deployment)}")
            case _:
                lines.append(f"{pad}{word}: {json.dumps(value)}")
    return lines


def _origin(path: str, deployment: Deployment) -> str:
    at = deployment.origin(path)
    to = deployment.attributes.get(_PINS.get(path, ""))
    return f"{'default' if at is None else f'{at.file}:{at.line}'}{'' if to is None else f', pinned to {to}'}"
