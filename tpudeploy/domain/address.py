"""Address: the name of a deployment (`gemma`) or of one of its replicas (`gemma[0]`), as a user writes it."""

from __future__ import annotations

import re
from typing import Self

from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import DEPLOYMENT_NAME, address

_FORM = re.compile(rf"(?P<deployment>{DEPLOYMENT_NAME.pattern})(?:\[(?P<replica>[0-9]{{1,6}})\])?")


@frozen
class Address:
    """The address of one replica, or of the whole deployment where `replica` is None."""

    deployment: str
    replica: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raise ValueError unless `text` has the form of an address."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise ValueError(f"`{text}` is not an address; write NAME, or NAME[INDEX], e.g. gemma[0]")
        index = match["replica"]
        return cls(deployment=match["deployment"], replica=None if index is None else int(index))

    def __str__(self) -> str:
        return self.deployment if self.replica is None else address(self.deployment, self.replica)
