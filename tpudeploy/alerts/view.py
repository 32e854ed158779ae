"""Format alert rules, resources and configurations as YAML with a heading, and a dashboard as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_WIDE = 1 << 20  # an expression stays on its line


def documents(what: str, trees: Sequence[Mapping[str, Any]]) -> str:
    """Return the trees as YAML documents, separated by `---`, under a comment that says what they are."""
    import yaml

    texts = (
        yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=_WIDE, default_flow_style=False)
        for tree in trees
    )
    return f"# {what}\n" + "---\n".join(texts)


def dashboard(tree: Mapping[str, Any]) -> str:
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"
