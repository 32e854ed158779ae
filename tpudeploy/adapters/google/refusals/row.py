"""Define a row of the refusal table: a cause, its texts, where it occurs, how tpudeploy reacts, and a hint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tpudeploy.adapters.google.codes import Code
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.slices import RefusalScope, Remedy

SECONDS = 1.0
MINUTES = 60.0
HOURS = 3600.0


class Layer(StrEnum):
    """Where an error can occur. A cause of L1, L2 or L3 may occur in either of the others."""

    REPLY = "L1"
    CREATE = "L2"
    FAILED = "L3"
    NODE = "L4"
    DELETE = "L5"


_REQUEST = (Layer.REPLY, Layer.CREATE, Layer.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalRow:
    """A cause. `what` describes it in a line, `hint` is the remedy. `layers`: where it was observed, or may occur.

    Without another `remedy`, the row stops the run, because no other place helps until a person acts.
    `scope` None: the text of a quota names it (`in region R`, `in zone Z`). `holds` is in seconds.
    `code` is the usual code; with `by_code`, the code alone is enough to classify an unknown text.
    `only`: the row applies only to requests with this provisioning model.
    `hints`: remedies that are more exact than `hint`, by a pattern that the text matches; the first one counts.
    `examples` are verbatim, unless `is_recorded` is False: then the text is not published, and these are guesses.
    """

    kind: str
    what: str
    pattern: str | None = None
    code: Code | None = None
    by_code: bool = False
    only: Provisioning | None = None
    layers: tuple[Layer, ...] = _REQUEST
    remedy: Remedy = Remedy.STOP
    scope: RefusalScope | None = RefusalScope.PROJECT
    holds: float = 10 * MINUTES
    hint: str
    hints: Mapping[str, str] = field(default_factory=dict)
    examples: tuple[str, ...] = ()
    is_recorded: bool = True

    def says(self, text: str) -> bool:
        """Return whether the text is this row's, however its lines are broken and its sentences are spaced."""
        return self.pattern is not None and re.search(self.pattern, " ".join(text.split()), re.IGNORECASE) is not None

    def hint_for(self, text: str) -> str:
        """Return the remedy for this text."""
        exact = (hint for pattern, hint in self.hints.items() if re.search(pattern, text, re.IGNORECASE))
        return next(exact, self.hint)
