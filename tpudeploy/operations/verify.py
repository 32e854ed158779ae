"""Compare what the profile declares with what its servers do; exit with 13 if a declared setting is not in effect.

Exit with 1 if a server reports nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpudeploy import loading
from tpudeploy.domain import exits
from tpudeploy.domain.verify import Verification
from tpudeploy.operations.arguments import AProfile
from tpudeploy.operations.declaration import Operation
from tpudeploy.results import Result, document, result
from tpudeploy.text.paint import Paint
from tpudeploy.verify.view import verify as view
from tpudeploy.workspace import Workspace


@result
class Verified(Result):
    """What a profile declares beside what its servers do."""

    FORMAT = "verify"
    verification: Verification

    @property
    def holds(self) -> bool:
        return self.verification.holds

    @property
    def exit_code(self) -> int:
        if self.verification.broken:
            return exits.CHECK_FAILED
        return exits.ERROR if self.verification.silent_replicas else exits.SUCCESS

    def values(self) -> dict[str, Any]:
        return self.verification.to_dict()

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        setting = {
            **dict.fromkeys(("replica", "name", "declared", "verdict"), str),
            "effective": Mapping[str, str],
            "deviation": float | None,
        }
        silent = Mapping[str, Mapping[str, str]]
        addresses = {"absent": tuple[str, ...], "unobserved": tuple[str, ...]}
        keys = {"name": str, "holds": bool, "settings": [setting], "silent": silent, **addresses}
        return document("verify", keys, optional=("unobserved",))

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return view(self.verification, paint, width=width)


def verify(workspace: Workspace, profile: AProfile) -> Verified:
    """Compare a profile's settings with those of its engines, from their API, metrics and boot logs.

    A setting that no engine reports is unknown. Raise `errors.QueryFailed` if the deployment has no endpoint,
    `errors.StateError` if it has no machine, `errors.Fault` or `errors.Denied` if it cannot be observed.
    """
    return Verified(verification=workspace.verification(loading.profile(profile)))


OPERATION = Operation(run=verify, results=(Verified,), title="Verify settings", tool="verify")
