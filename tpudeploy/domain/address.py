"""Address: how a person names a deployment (`gemma`), or one replica of it (`gemma[0]`)."""

from __future__ import annotations

import re
from typing import Self

from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import DEPLOYMENT_NAME, address

_FORM = re.compile(rf"(?P<deployment>{DEPLOYMENT_NAME.pattern})(?:\[(?P<replica>[0-9]{{1,6}})\])?")


@frozen
class Address:
    """`replica` None: the whole deployment."""

    deployment: str
    replica: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raise ValueError unless `text` has the form of an address."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError(f"`{text}` is no address; write NAME, or NAME[INDEX], e.g. gemma[0]")
        index = found["replica"]
        return cls(deployment=found["deployment"], replica=None if index is None else int(index))

    def __str__(self) -> str:
        return self.deployment if self.replica is None else address(self.deployment, self.replica)
