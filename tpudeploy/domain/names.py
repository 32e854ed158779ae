"""Names: parsed once on input, and typed everywhere else."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from tpudeploy.domain.stored import read_with

# Cloud TPU accepts more, but the tools in the field keep to this form (and to 63 characters), see marin and axlearn.
DEPLOYMENT_NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
ZONE = re.compile(r"[a-z]+-[a-z]+[0-9]+-[a-z0-9]+")
PROJECT = re.compile(r"(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
LABEL_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_SLICE_NAME = re.compile(
    r"(?P<deployment>[a-z][-a-z0-9]*?)-(?P<lineage>[0-9a-f]{8})-(?P<replica>[0-9]+|router)-(?P<attempt>[0-9]+)"
)
# The VM of a deployment's router has the life of a replica's slice: it is the replica of this index.
ROUTER = -1
_ROUTER_WORD = "router"


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

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, handler: Callable[[Any], Any]) -> Any:
        """Parse the zone in a document that is read."""
        return read_with(cls.parse, handler(str))

    def abstracted(self, text: str) -> str:
        """Return a text with ZONE and REGION for this zone's names: so the same reply of two zones is one text."""
        return text.replace(self, "ZONE").replace(self.region, "REGION")


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceName:
    """The name of one attempt to get one slice. It is derived, so that a run after a crash finds its earlier requests.

    The queued resource and its node have the same name. `lineage` is the first eight hex digits of the state's.
    """

    deployment: str
    lineage: str
    replica: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.deployment}-{self.lineage}-{replica_word(self.replica)}-{self.attempt}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        match = _SLICE_NAME.fullmatch(text)
        if match is None:
            return None
        return cls(
            deployment=match["deployment"],
            lineage=match["lineage"],
            replica=parse_replica(match["replica"]),
            attempt=int(match["attempt"]),
        )


def replica_word(replica: int) -> str:
    """Return the index of a replica as names, labels and addresses have it."""
    return _ROUTER_WORD if replica == ROUTER else str(replica)


def parse_replica(word: str) -> int:
    """Return the index in a name, a label or an address. Raise ValueError for another word."""
    return ROUTER if word == _ROUTER_WORD else int(word)


def address(deployment: str, replica: int) -> str:
    """Return a replica's address, e.g. `gemma4-26b-turbo[0]`. That of a router's VM is `gemma4-26b-turbo[router]`."""
    return f"{deployment}[{replica_word(replica)}]"


_ADDRESS = re.compile(rf"(?P<deployment>{DEPLOYMENT_NAME.pattern})(?:\[(?P<replica>[0-9]{{1,6}}|{_ROUTER_WORD})\])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The address of one replica, or of the whole deployment where `replica` is None."""

    deployment: str
    replica: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raise ValueError unless `text` has the form of an address."""
        match = _ADDRESS.fullmatch(text)
        if match is None:
            raise ValueError(f"`{text}` is not an address; write NAME, or NAME[INDEX], e.g. gemma[0]")
        index = match["replica"]
        return cls(deployment=match["deployment"], replica=None if index is None else parse_replica(index))

    def __str__(self) -> str:
        return self.deployment if self.replica is None else address(self.deployment, self.replica)
