"""Pins: the fixed meaning of movable names: the digest of an image's tag, the commit of a model's revision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from tpudeploy.domain.deployment import Json
from tpudeploy.domain.diagnostics import Location
from tpudeploy.domain.frozen import frozen

FILE = "tpudeploy.lock.json"
# Every digest and commit of the emulator begins with this, so that a trial on the emulator pins no real name.
EMULATED = "facadefacade"


class Kind(StrEnum):
    """The kind of a pinned name. Its plural is the name of its section in the file."""

    IMAGE = "image"
    MODEL = "model"


@frozen
class Name:
    """A name as a profile writes it: `vllm/vllm-tpu:nightly` or `google/gemma-4-E2B-it@main`.

    Without `@`, a model means the hub's default branch.
    """

    kind: Kind
    text: str

    @property
    def model(self) -> tuple[str, str]:
        """The model's id and its revision, "" for the default branch."""
        model, _, revision = self.text.partition("@")
        return model, revision


@frozen
class Pin:
    """One pinned name. `to` is a digest (`sha256:…`) or a commit (40 hexadecimal digits)."""

    name: Name
    to: str


@frozen
class Pins:
    """The content of the lock file. `lines` says where each name is in it, for display.

    `more` holds keys that this version does not know and preserves.
    """

    images: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[Name, Location] = field(default_factory=dict, compare=False, repr=False)
    more: Mapping[str, Json] = field(default_factory=dict)

    def target_of(self, name: Name | None) -> str | None:
        """Return the digest or the commit of a pinned name, or None."""
        if name is None:
            return None
        return (self.images if name.kind is Kind.IMAGE else self.models).get(name.text)


NONE = Pins()


def is_emulated(to: str) -> bool:
    """Return whether a digest or a commit came from our emulator."""
    return to.removeprefix("sha256:").startswith(EMULATED)
