"""What one server knows while it runs: its project, the plans and A/Bs it showed, what it does in the background."""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import Context

from tpudeploy.cli.mcp.operations import Operations
from tpudeploy.cli.mcp.plans import Plans
from tpudeploy.cli.mcp.project import Project
from tpudeploy.cli.mcp.shown import Shown
from tpudeploy.cli.mcp.trials import Trial


class Session:
    def __init__(self, project: Project) -> None:
        self.project = project.untrusted()  # whoever made it
        self.plans = Plans()
        self.trials = Shown[Trial]()
        self.operations = Operations()

    def close(self) -> None:
        """End what runs, saved."""
        self.operations.close()


Asked = Context[Session, Any]


def session(of: Asked) -> Session:
    """That of the server which a call came to."""
    return of.request_context.lifespan_context
