"""Hold the data of one running server: its project, the plans and A/Bs it showed, and its operations."""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import Context

from tpudeploy.ab_test.turns import Proposal
from tpudeploy.cli.mcp.operation import Operations
from tpudeploy.cli.mcp.plans import EntryStore, Plans
from tpudeploy.cli.mcp.project import Project
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


class Session:
    def __init__(self, project: Project) -> None:
        self.project = project.untrusted()  # because agents write the profiles
        self.plans = Plans()
        self.trials = EntryStore[Trial]()
        self.operations = Operations()

    def close(self) -> None:
        """Stop the running operations; their progress is saved."""
        self.operations.close()


Call = Context[Session, Any]


def session(call: Call) -> Session:
    """Return the session of the server that received a call."""
    return call.request_context.lifespan_context
