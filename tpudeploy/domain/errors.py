"""What stopped us. Errors are named by what happens next.

TpudeployError                        message · hint · code · exit_code
├── ConfigError              1        the person's file; carries Diagnostics with file:line
│   ├── ProfileInvalid
│   └── ProfileNotFound
├── UsageError               1        the command line
├── PlanError               11        a plan cannot be made or used
│   ├── StalePlan
│   └── CheckFailed         13        a check, a policy or an attestation said no
├── NotApproved              1        a person said no, or nobody could be asked
├── StateError               1        what we remember
│   ├── StateLocked         10        names the holder
│   ├── StateConflict                 somebody else wrote in between
│   ├── StateUnreadable
│   └── StateTooNew
├── CloudError               1        Google said no; `refusal` says what that means
│   ├── Fault                         look again: the call's effect is unknown
│   ├── Refused                       this place, now or ever
│   └── Denied                        no place will do until a person acts
├── CapacityTimeout         12        not granted in time; saved, a re-run resumes
├── ServingError             1        the slice is there, vLLM is not
├── QueryFailed              1        the endpoint did not answer a question
├── OutputFailed             1        stdout takes no more: a full disk, a reader that left
├── ScenarioInvalid          1        the emulator's scenario cannot be played (emulator/scenario.py)
├── EmulatorRunning          1        names the one that runs (emulator/process.py)
└── Interrupted            130        saved; a re-run resumes
(anything else)             70        a bug of ours
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from tpudeploy.domain.diagnostics import Diagnostic
    from tpudeploy.domain.lock import LockInfo
    from tpudeploy.domain.slices import Refusal


class TpudeployError(Exception):
    """Base of all that we raise on purpose. `message` says what and why; `hint` what to do."""

    code: ClassVar[str] = "TPU0001"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def to_dict(self) -> dict[str, object]:
        return {"code": self.code, "exit_code": self.exit_code, "message": self.message, "hint": self.hint}


class ConfigError(TpudeployError):
    code = "TPU1000"

    def __init__(self, message: str, *, hint: str = "", diagnostics: Iterable[Diagnostic] = ()) -> None:
        super().__init__(message, hint=hint)
        self.diagnostics = tuple(diagnostics)


class ProfileInvalid(ConfigError):
    """Every problem found, at once, in `diagnostics`."""


class ProfileNotFound(ConfigError):
    code = "TPU1001"


class UsageError(TpudeployError):
    code = "TPU0002"


class PlanError(TpudeployError):
    code = "TPU3000"
    exit_code = 11


class StalePlan(PlanError):
    code = "TPU3001"


class CheckFailed(PlanError):
    code = "TPU3002"
    exit_code = 13


class NotApproved(TpudeployError):
    code = "TPU3003"


class StateError(TpudeployError):
    code = "TPU4000"


class StateLocked(StateError):
    code = "TPU4001"
    exit_code = 10

    def __init__(self, message: str, *, hint: str = "", holder: LockInfo | None = None) -> None:
        super().__init__(message, hint=hint)
        self.holder = holder


class StateConflict(StateError):
    code = "TPU4002"


class StateUnreadable(StateError):
    code = "TPU4003"


class StateTooNew(StateError):
    code = "TPU4004"


class CloudError(TpudeployError):
    code = "TPU5000"

    def __init__(self, message: str, *, hint: str = "", refusal: Refusal | None = None) -> None:
        super().__init__(message, hint=hint)
        self.refusal = refusal


class Fault(CloudError):
    """The call's effect is unknown: never repeat the call, look again."""

    code = "TPU5001"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        refusal: Refusal | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, hint=hint, refusal=refusal)
        self.retry_after = retry_after


class Refused(CloudError):
    code = "TPU5002"


class Denied(CloudError):
    code = "TPU5003"


class CapacityTimeout(TpudeployError):
    code = "TPU5004"
    exit_code = 12


class ServingError(TpudeployError):
    code = "TPU6000"


class QueryFailed(TpudeployError):
    code = "TPU6001"


class OutputFailed(TpudeployError):
    code = "TPU0003"


class Interrupted(TpudeployError):
    code = "TPU0130"
    exit_code = 130
