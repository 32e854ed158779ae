"""Names: parsed once at the door, typed everywhere after."""

from __future__ import annotations

import re
from typing import Self

from tpudeploy.domain.frozen import frozen

# Cloud TPU takes more, but every tool in the field keeps to this (and 63 characters), see marin and axlearn.
DEPLOYMENT_NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
ZONE = re.compile(r"[a-z]+-[a-z]+[0-9]+-[a-z0-9]+")
LABEL_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_SLICE_NAME = re.compile(
    r"(?P<deployment>[a-z][-a-z0-9]*?)-(?P<lineage>[0-9a-f]{8})-(?P<replica>[0-9]+)-(?P<attempt>[0-9]+)"
)


class Zone(str):
    """A Google Cloud zone, e.g. `us-east5-b`."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raise ValueError unless `text` has the form of a zone."""
        if not ZONE.fullmatch(text):
            raise ValueError(f"`{text}` is not a zone; a zone looks like us-east5-b")
        return cls(text)

    @property
    def region(self) -> str:
        return self.rsplit("-", 1)[0]


@frozen
class SliceName:
    """The name of one attempt to get one slice: derived, so that a crashed run can always find what it asked for.

    The same text names the queued resource and its node. `lineage` is the first eight hex digits of the state's.
    """

    deployment: str
    lineage: str
    replica: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.deployment}-{self.lineage}-{self.replica}-{self.attempt}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        match = _SLICE_NAME.fullmatch(text)
        if match is None:
            return None
        return cls(
            deployment=match["deployment"],
            lineage=match["lineage"],
            replica=int(match["replica"]),
            attempt=int(match["attempt"]),
        )


def address(deployment: str, replica: int) -> str:
    """A replica's address, as people write it: `gemma4-26b-turbo[0]`."""
    return f"{deployment}[{replica}]"
