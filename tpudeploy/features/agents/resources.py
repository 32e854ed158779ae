"""What the resources of a server share: their type, and an opened workspace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from mcp.server.mcpserver.exceptions import ResourceError

from tpudeploy.cli import documents
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.excerpt import plain, visible_tree
from tpudeploy.features.agents.session import AgentSession
from tpudeploy.workspace import Workspace

JSON = "application/json"


@contextmanager
def opened(server_session: AgentSession) -> Iterator[Workspace]:
    """Open a workspace. Raise `ResourceError` for an error of ours."""
    try:
        with server_session.project.opened() as at:
            yield at.workspace
    except TpudeployError as error:
        raise ResourceError(plain(f"{error.message} {error.hint}".strip())) from error


def visible(document: str) -> str:
    """Return a resource without characters that hide or reorder other text, as the answers of tools are."""
    return documents.text(visible_tree(json.loads(document)))
