"""Print the version, and the version of vLLM whose flags it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.results import Result, result

if TYPE_CHECKING:
    from tpudeploy.text.paint import Paint
    from tpudeploy.workspace import Workspace


@result
class Version(Result):
    """The versions of tpudeploy and of the vLLM whose flags it knows."""

    FORMAT = "version"
    tpudeploy: str
    vllm: str

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return f"tpudeploy {self.tpudeploy} (flags of vLLM {self.vllm})"


def version(workspace: Workspace | None) -> Version:
    """Return the version, and the version of vLLM whose flags it knows."""
    from tpudeploy.catalog.flags import VLLM_VERSION
    from tpudeploy.version import VERSION

    return Version(tpudeploy=VERSION, vllm=VLLM_VERSION)


OPERATION = Operation(run=version, results=(Version,), access=Access.OFFLINE, options=(), needs_workspace=False)
