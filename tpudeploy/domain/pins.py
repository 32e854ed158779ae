"""Pins: what names that can move are held to: an image's tag to its digest, a model's revision to its commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from tpudeploy.domain.deployment import Json
from tpudeploy.domain.diagnostics import Location
from tpudeploy.domain.frozen import frozen

FILE = "tpudeploy.lock.json"
# What every digest and commit of the emulator's begins with: who tried something out pins nothing real to it.
EMULATED = "facadefacade"


class Kind(StrEnum):
    """What is pinned. The name of its section in the file is its plural."""

    IMAGE = "image"
    MODEL = "model"


@frozen
class Name:
    """A name as a profile writes it: `vllm/vllm-tpu:nightly`; `google/gemma-4-E2B-it@main`, or without `@` the hub's
    default branch.
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
    """`to` is a digest (`sha256:…`) or a commit (forty hexadecimal digits)."""

    name: Name
    to: str


@frozen
class Pins:
    """What the lock file holds. `lines` says where each name stands in it, for display.

    `more` is what a reader of this version does not know, and leaves as it is.
    """

    images: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[Name, Location] = field(default_factory=dict, compare=False, repr=False)
    more: Mapping[str, Json] = field(default_factory=dict)

    def of(self, name: Name | None) -> str | None:
        """What it is held to, or None: it is not."""
        if name is None:
            return None
        return (self.images if name.kind is Kind.IMAGE else self.models).get(name.text)


NONE = Pins()


def is_emulated(to: str) -> bool:
    """Whether a digest or commit came from our emulator, and nothing real has it."""
    return to.removeprefix("sha256:").startswith(EMULATED)
