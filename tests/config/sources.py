"""Profiles held in memory, and a way to parse them: what the tests of this folder share."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tpudeploy.config.parse import parse
from tpudeploy.config.profile import Profile
from tpudeploy.config.reader import Unreadable
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import ProfileInvalid

SMALL = """\
version: 1
name: demo
model: {id: google/gemma-4-E2B-it}
tpu: {type: v6e-4}
serving: {image: "vllm/vllm-tpu:v0.32.0"}
"""


@dataclass(frozen=True)
class MemoryReader:
    files: Mapping[str, bytes]

    def read(self, path: str) -> bytes:
        if path not in self.files:
            raise Unreadable("does not exist", missing=True)
        return self.files[path]

    def resolve(self, base: str, relative: str) -> str:
        return posixpath.normpath(posixpath.join(posixpath.dirname(base), relative))


def load(
    text: str | bytes,
    *,
    others: Mapping[str, str] | None = None,
    overlays: Sequence[str] = (),
    sets: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Profile:
    """The profile that stands in `p.yaml`, with `others` beside it."""
    files = {name: other.encode() for name, other in (others or {}).items()}
    files["p.yaml"] = text if isinstance(text, bytes) else text.encode()
    return parse("p.yaml", MemoryReader(files), overlays=overlays, sets=sets, environment=environment or {})


def problems(
    text: str | bytes,
    *,
    others: Mapping[str, str] | None = None,
    overlays: Sequence[str] = (),
    sets: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> tuple[Diagnostic, ...]:
    """What is said about it: warnings where it is valid."""
    try:
        return load(text, others=others, overlays=overlays, sets=sets, environment=environment).warnings
    except ProfileInvalid as invalid:
        return invalid.diagnostics


def place(diagnostic: Diagnostic) -> str:
    """`CODE line:column+width`."""
    at = diagnostic.location
    assert at is not None
    return f"{diagnostic.code} {at.line}:{at.column}+{at.width}"
