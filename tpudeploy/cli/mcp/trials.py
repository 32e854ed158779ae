"""Define Trial, an A/B that a server proposed and may run."""

from __future__ import annotations

from tpudeploy.ab_test.turns import Proposal
from tpudeploy.domain.frozen import frozen
from tpudeploy.operations.ab_test import Arms


@frozen
class Trial:
    """An A/B that was proposed. `path` is the profile as it was named."""

    path: str
    arms: Arms
    proposal: Proposal

    @property
    def id(self) -> str:
        return self.proposal.experiment.id
