"""Which files of a folder are profiles, and why the others are not: by the keys at their top, before they are read."""

from __future__ import annotations

import re

from tpudeploy.config.compose import compose
from tpudeploy.config.nodes import MapNode
from tpudeploy.config.source import decode
from tpudeploy.domain.diagnostics import Diagnostic

# Without indentation only a key of the file's own mapping can stand there; most profiles are written so.
_KEY = re.compile(rb"^(name|version|extends)[ \t]*:", re.MULTILINE)


def why_no_profile(name: str, content: bytes) -> str:
    """Why a file of a folder is passed over; "" for a profile, and for what cannot be read: that is for its reader to
    say.

    A profile names a deployment, and says its version or what it extends. A base that is only extended has no name, an
    overlay neither name nor version; of another tool's YAML nobody knows what it has.
    """
    keys = {match[1].decode() for match in _KEY.finditer(content)}
    if not _is_whole(keys):
        written = _keys(name, content)
        if written is None:
            return ""
        keys = written
    if _is_whole(keys):
        return ""
    return "it has no `version`" if "name" in keys or not keys & {"version", "extends"} else "it has no `name`"


def _is_whole(keys: set[str]) -> bool:
    return "name" in keys and bool(keys & {"version", "extends"})


def _keys(name: str, content: bytes) -> set[str] | None:
    """However they are written. None for what is no YAML."""
    source = decode(name, content)
    composed = None if isinstance(source, Diagnostic) else compose(source)
    if composed is None or composed.broken:
        return None
    return set(composed.node.entries) if isinstance(composed.node, MapNode) else set()
