"""One row of the error table: a cause, its words, where it surfaces, what is done about it, what would help."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from tpudeploy.adapters.google.codes import Code
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.slices import Remedy, Scope

SECONDS = 1.0
MINUTES = 60.0
HOURS = 3600.0


class Layer(StrEnum):
    """Where an error can come up. A cause of L1, L2 or L3 may come on either of the others."""

    REPLY = "L1"
    CREATE = "L2"
    FAILED = "L3"
    NODE = "L4"
    DELETE = "L5"


_REQUEST = (Layer.REPLY, Layer.CREATE, Layer.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`what` names the cause in a line, `hint` what a person can do. `layers`: where it was seen, or may be.

    `scope` None: a quota's, read from the text (`in region R`, `in zone Z`). `holds`: seconds.
    `code` is the one it comes with; `by_code`: that code says as much without words that we know.
    `only`: the row speaks of requests under this provisioning model alone.
    `examples`: verbatim, unless `is_recorded` is False: then nobody has published the words, and these are a guess.
    """

    kind: str
    what: str
    pattern: str | None = None
    code: Code | None = None
    by_code: bool = False
    only: Provisioning | None = None
    layers: tuple[Layer, ...] = _REQUEST
    remedy: Remedy
    scope: Scope | None
    holds: float
    hint: str
    examples: tuple[str, ...] = ()
    is_recorded: bool = True

    def says(self, text: str) -> bool:
        return self.pattern is not None and re.search(self.pattern, text, re.IGNORECASE) is not None
