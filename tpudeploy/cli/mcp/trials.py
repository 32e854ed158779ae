"""Trial: an A/B that a server showed, and may carry out."""

from __future__ import annotations

from tpudeploy.core.ab.proposal import Proposal
from tpudeploy.domain.frozen import frozen
from tpudeploy.experimenting import Arms


@frozen
class Trial:
    """`path` is the profile as it was named."""

    path: str
    arms: Arms
    proposal: Proposal

    @property
    def id(self) -> str:
        return self.proposal.experiment.id
