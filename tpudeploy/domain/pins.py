"""Pins: the fixed meaning of movable names: an image's tag, a model's revision, a family of machine images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tpudeploy.domain.deployment import Json
from tpudeploy.domain.diagnostics import Location
from tpudeploy.domain.model import Checkpoint

FILE = "tpudeploy.lock.json"
# Every digest and commit of the emulator begins with this, and the name of every image of its machines ends with it, so
# that a trial on the emulator pins no real name.
EMULATED = "facadefacade"


class PinKind(StrEnum):
    """The kind of a pinned name. Its plural is the name of its section in the file."""

    IMAGE = "image"
    MODEL = "model"
    MACHINE_IMAGE = "machine_image"


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A name as a profile writes it: `vllm/vllm-tpu:nightly` or `google/gemma-4-E2B-it@main`.

    Without `@`, a model means the hub's default branch. A machine image has the name of its family at Compute Engine.
    """

    kind: PinKind
    text: str

    @property
    def model(self) -> tuple[str, str]:
        """The model's id and its revision, "" for the default branch."""
        model, _, revision = self.text.partition("@")
        return model, revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One pinned name. `to` is a digest (`sha256:…`), a commit (40 hexadecimal digits), or the name of an image."""

    name: Name
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """The content of the lock file. `lines` says where each name is in it, for display.

    `releases` are the versions that engines reported, by the digests of their images; `labels` are what the images'
    own labels say of the engine, likewise (catalog/engines.py), "" for an image without any; and `checkpoints` are what
    the hub said of models that the catalogue does not know, by their commits. `more` holds keys that this version
    does not know and preserves.
    """

    images: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    machine_images: Mapping[str, str] = field(default_factory=dict)
    releases: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    checkpoints: Mapping[str, Checkpoint] = field(default_factory=dict)
    lines: Mapping[Name, Location] = field(default_factory=dict, compare=False, repr=False)
    more: Mapping[str, Json] = field(default_factory=dict)

    def target_of(self, name: Name | None) -> str | None:
        """Return what a name is pinned to, or None."""
        return None if name is None else self.section(name.kind).get(name.text)

    def section(self, kind: PinKind) -> Mapping[str, str]:
        """Return the pins of all names of a kind."""
        match kind:
            case PinKind.IMAGE:
                return self.images
            case PinKind.MODEL:
                return self.models
            case PinKind.MACHINE_IMAGE:
                return self.machine_images


NONE = Pins()


def is_emulated(to: str) -> bool:
    """Return whether a digest, a commit or a machine image came from our emulator."""
    return to.removeprefix("sha256:").startswith(EMULATED) or to.endswith(EMULATED)
