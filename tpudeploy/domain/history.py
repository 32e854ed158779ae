"""What asking for a slice came to, in one zone and provisioning model: the memory that outlives every state."""

from __future__ import annotations

from enum import StrEnum

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import Zone


class Ending(StrEnum):
    """How one request ended.

    granted: a machine came up.  refused: Google said no.  lapsed: it waited for as long as it was allowed to.
    released: we gave it up, e.g. for a grant elsewhere.  stuck: it was selected, and no machine came up in time.
    preempted: it was granted, and Google took it back before it had lasted (core/landings.py).
    """

    GRANTED = "granted"
    REFUSED = "refused"
    LAPSED = "lapsed"
    RELEASED = "released"
    STUCK = "stuck"
    PREEMPTED = "preempted"


@frozen
class Tried:
    """One request and what became of it. `at` is seconds since the epoch, `waited` seconds from asking to the outcome.

    `type` is the slice's, e.g. `v6e-1`. `kind` is the row of the error table (adapters/google/verdicts.py) and `text`
    what Google said, raw; both are empty where nothing was refused.
    """

    at: float
    zone: Zone
    provisioning: Provisioning
    type: str
    chips: int
    outcome: Ending
    waited: float
    kind: str = ""
    text: str = ""
