"""Engine: the program that serves in an image, its release, and how both are known."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EngineKind(StrEnum):
    """The program. Flags, memory and log lines are those of one kind alone."""

    TPU_INFERENCE = "tpu-inference"
    TORCHTPU = "torchtpu"
    UNKNOWN = "unknown"


class EngineOrigin(StrEnum):
    """What names the release."""

    TAG = "tag"
    LABELS = "labels"  # the registry shows them for this digest
    LOCK_FILE = "lock file"  # it pins a tag of a release to the same digest
    BOOT = "boot"  # an engine of this digest reported it when it was verified
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The engine of an image. `release` is None if nothing names it; `image` is as the profile writes it.

    `labels` is what its labels say (`engines.words_of_labels`), None if the registry was not asked or did not answer.
    """

    kind: EngineKind
    image: str
    release: str | None = None
    origin: EngineOrigin = EngineOrigin.NONE
    labels: str | None = None

    @property
    def title(self) -> str:
        """Return the engine for people: `tpu-inference 0.32.0`, or what is not known of it."""
        if self.kind is EngineKind.UNKNOWN:
            return "an engine that is not known"
        return f"{self.kind} {self.release}" if self.release else f"{self.kind} of an unknown release"

    def to_dict(self) -> dict[str, object]:
        return {"kind": self.kind.value, "release": self.release, "known_from": self.origin.value}


NO_ENGINE = Engine(kind=EngineKind.UNKNOWN, image="")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRelease:
    """What sizing has to know of a release of tpu-inference. `libtpu` is the version that it pins.

    `caps_ladder`: the ladder of token buckets ends at the budget of a step; else at the first size that holds it.
    """

    version: str
    libtpu: str
    caps_ladder: bool = True
