"""Print the version, the version of vLLM whose flags it knows, and the command that upgrades it."""

from __future__ import annotations

from tpudeploy.adapters.extras import upgrade_command
from tpudeploy.catalog.flags import VLLM_VERSION
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.results import Result, result
from tpudeploy.text.paint import Paint
from tpudeploy.version import VERSION
from tpudeploy.workspace import Workspace


@result
class Version(Result):
    """The versions of tpudeploy and of the vLLM whose flags it knows. `upgrade` is a command, or ""."""

    FORMAT = "version"
    ADDED_LATER = frozenset({"upgrade"})
    tpudeploy: str
    vllm: str
    upgrade: str

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        upgrade = self.upgrade or "update its checkout, and install it or build its image again from there"
        return f"tpudeploy {self.tpudeploy} (flags of vLLM {self.vllm})\nTo upgrade: {upgrade}"


def version(workspace: Workspace | None) -> Version:
    """Return the version, the version of vLLM whose flags it knows, and the command that upgrades it."""
    return Version(tpudeploy=VERSION, vllm=VLLM_VERSION, upgrade=upgrade_command())


OPERATION = Operation(run=version, results=(Version,), access=Access.OFFLINE, options=(), needs_workspace=False)
