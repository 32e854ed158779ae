"""What holds for a node's settings, at create and at patch. The limits are Compute Engine's, the texts UNVERIFIED."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tpudeploy.domain.names import LABEL_KEY, LABEL_VALUE
from tpudeploy.emulator import wire

_KEY = re.compile(r"[a-zA-Z0-9_-]{1,127}")
_VALUE_BYTES = 262_144
_ALL_BYTES = 512 * 1024
_DESCRIPTION = 512


def check(node: Mapping[str, Any]) -> None:
    """Raise Refusal for the first rule that is broken."""
    for key, value in node.get("labels", {}).items():
        if not LABEL_KEY.fullmatch(key) or not LABEL_VALUE.fullmatch(value):
            raise _bad(f"Invalid label `{key}: {value}`.")
    if len(node.get("description", "")) > _DESCRIPTION:
        raise _bad(f"The description is longer than {_DESCRIPTION} characters.")
    if "networkConfig" in node and "networkConfigs" in node:
        raise _bad("network_config and network_configs cannot both be set.")
    _check_metadata(node.get("metadata", {}))


def _check_metadata(metadata: Mapping[str, str]) -> None:
    for key, value in metadata.items():
        if not _KEY.fullmatch(key):
            raise _bad(f"Invalid metadata key `{key}`.")
        if len(value.encode()) > _VALUE_BYTES:
            raise _bad(f"Value for metadata key `{key}` is too large: at most {_VALUE_BYTES} bytes.")
    if sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items()) >= _ALL_BYTES:
        raise _bad(f"Metadata is too large: keys and values must stay below {_ALL_BYTES} bytes.")


def _bad(message: str) -> wire.Refusal:
    return wire.refuse(3, message)
