"""What stopped us. Errors are named by what happens next.

TpudeployError                        message · hint · code · exit_code
├── ConfigError              1        the person's file; carries Diagnostics with file:line
│   ├── ProfileInvalid
│   ├── ProfileNotFound
│   ├── PinsUnreadable                the lock file
│   └── PinsTooNew
├── UsageError               1        the command line
├── PlanError               11        a plan cannot be made or used
│   ├── Unapproved                    nobody has said yes to this plan
│   ├── StalePlan
│   ├── CheckFailed         13        a check, a policy or an attestation said no
│   ├── PlanUnreadable       1        the file is no saved plan, or a damaged one
│   └── PlanTooNew           1
├── NotApproved              1        a person said no, or nobody could be asked
├── StateError               1        what we remember
│   ├── StateLocked         10        names the holder
│   ├── StateConflict                 somebody else wrote in between
│   ├── StateUnreadable
│   ├── StateTooNew
│   └── RunUnreadable                 a benchmark's run, not a state
├── CloudError               1        Google said no; `refusal` says what that means
│   ├── Fault                         look again: the call's effect is unknown
│   ├── Refused                       this place, now or ever
│   └── Denied                        no place will do until a person acts
├── CapacityTimeout         12        not granted in time; saved, a re-run resumes
├── ServingError             1        the slice is there, vLLM is not
│   ├── StillStarting                 yet; a re-run resumes
│   ├── NotInEffect         13        it serves, but not as it was told
│   ├── StillDraining                 what it took over from; a re-run resumes
│   ├── GivenUpUpdate       13        on a second slice; the first goes on serving
│   ├── RolledBack          13        a change failed, and what served before serves again
│   └── Unheard                       the node did not take over a change; a reset would make it
├── ForgeError               1        GitHub did not do what was asked
│   └── ForgeFault                    look again: it may do it later
├── QueryFailed              1        the endpoint did not answer a question
├── BenchFailed              1        somebody else's load client did not measure; what it measured before is kept
├── OutputFailed             1        stdout takes no more: a full disk, a reader that left
├── ScenarioInvalid          1        the emulator's scenario cannot be played (emulator/scenario.py)
├── EmulatorRunning          1        names the one that runs (emulator/process.py)
├── Interrupted            130        saved; a re-run resumes
└── Bug                     70        a mistake in tpudeploy itself: whatever else was raised
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


# Of several that failed, the exit code is the worst: what a person must mend comes before what another run mends.
WORST_FIRST = (70, 130, 1, 13, 11, 10, 12)


def worst(of: Iterable[TpudeployError]) -> TpudeployError | None:
    """By exit code; of equals the first. None where there are none."""
    return min(of, key=lambda error: WORST_FIRST.index(error.exit_code), default=None)


class ConfigError(TpudeployError):
    """What a person wrote cannot be used. `diagnostics` are all the problems found, each with its place."""

    code = "TPU1000"

    def __init__(self, message: str, *, hint: str = "", diagnostics: Iterable[Diagnostic] = ()) -> None:
        super().__init__(message, hint=hint)
        self.diagnostics = tuple(diagnostics)


class ProfileInvalid(ConfigError):
    """Every problem found, at once, in `diagnostics`."""


class ProfileNotFound(ConfigError):
    code = "TPU1001"


class PinsUnreadable(ConfigError):
    """The lock file is not one that we can read. It is left as it stands, and nothing was done."""

    code = "TPU1002"


class PinsTooNew(ConfigError):
    """A later version of tpudeploy wrote the lock file. It is left as it stands, and nothing was done."""

    code = "TPU1003"


class UsageError(TpudeployError):
    """The command line cannot be understood."""

    code = "TPU0002"


class PlanError(TpudeployError):
    """A plan cannot be made, or cannot be used."""

    code = "TPU3000"
    exit_code = 11


class StalePlan(PlanError):
    """The world, or the profile, is no longer what the plan was made for. Make a new one."""

    code = "TPU3001"


class Unapproved(PlanError):
    """The plan is not the one that was approved, or none was. Read it, and say yes to it."""

    code = "TPU3006"


class CheckFailed(PlanError):
    """A check, a policy or an attestation said no."""

    code = "TPU3002"
    exit_code = 13


class PlanUnreadable(PlanError):
    """The file is not a saved plan that we can read. Nothing was done."""

    code = "TPU3004"
    exit_code = 1


class PlanTooNew(PlanError):
    """Another version of tpudeploy saved the plan. Nothing was done."""

    code = "TPU3005"
    exit_code = 1


class NotApproved(TpudeployError):
    """A person said no, or nobody could be asked."""

    code = "TPU3003"


class StateError(TpudeployError):
    """What we remember cannot be used."""

    code = "TPU4000"


class StateLocked(StateError):
    """Another run holds the state; the message names its holder."""

    code = "TPU4001"
    exit_code = 10

    def __init__(self, message: str, *, hint: str = "", holder: LockInfo | None = None) -> None:
        super().__init__(message, hint=hint)
        self.holder = holder


class StateConflict(StateError):
    """Another run wrote the state in between. Nothing was overwritten: run the command again."""

    code = "TPU4002"


class StateUnreadable(StateError):
    """The state is not one that we can read. It is left as it stands."""

    code = "TPU4003"


class StateTooNew(StateError):
    """A later version of tpudeploy wrote the state. It is left as it stands."""

    code = "TPU4004"


class RunUnreadable(StateError):
    """A benchmark's run is not what was written when it was measured. It is left as it stands."""

    code = "TPU4005"


class CloudError(TpudeployError):
    """Google did not do what was asked. `refusal`, where there is one, says what that means."""

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
    """Google said no in this place, for now or for good. Other places are asked."""

    code = "TPU5002"


class Denied(CloudError):
    """Google said no, and no other place would do until a person acts."""

    code = "TPU5003"


class CapacityTimeout(TpudeployError):
    """Nothing was granted in time. The requests stand, and a later run goes on."""

    code = "TPU5004"
    exit_code = 12


class ServingError(TpudeployError):
    """The slice is there, vLLM does not serve. The slice is kept."""

    code = "TPU6000"


class StillStarting(ServingError):
    """The slice was granted, and its server did not answer in time. It is kept, and a later run goes on."""

    code = "TPU6002"


class NotInEffect(ServingError):
    """An engine serves, and does not do what the profile declares. Nothing is left to a re-run."""

    code = "TPU6003"
    exit_code = 13


class StillDraining(ServingError):
    """It serves, and what it took over from has not been given back yet: clients may hold it. A later run goes on."""

    code = "TPU6007"


class GivenUpUpdate(ServingError):
    """A second slice does not serve, so that it takes nothing over: the first goes on serving, as it was."""

    code = "TPU6004"
    exit_code = 13


class RolledBack(ServingError):
    """A change failed, and the node went back to the server before: that one serves, and its endpoint stands."""

    code = "TPU6005"
    exit_code = 13


class Unheard(ServingError):
    """A running node did not take over a change. It runs on as it was; a reset would make it, if that is approved."""

    code = "TPU6006"


class ForgeError(TpudeployError):
    """The forge did not do what was asked: a comment, a status or an issue is missing. No slice was touched by that."""

    code = "TPU7000"


class ForgeFault(ForgeError):
    """The forge did not answer, or asks for patience. It was asked several times."""

    code = "TPU7001"

    def __init__(self, message: str, *, hint: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class QueryFailed(TpudeployError):
    """The endpoint did not answer a question."""

    code = "TPU6001"


class BenchFailed(TpudeployError):
    """Somebody else's load client ended without a result. The cells that it measured before are kept."""

    code = "TPU6010"


class OutputFailed(TpudeployError):
    """stdout takes no more: a full disk, or a reader that left."""

    code = "TPU0003"


class Bug(TpudeployError):
    """tpudeploy itself made a mistake. The state is saved after each step, so running the command again is safe."""

    code = "TPU0070"
    exit_code = 70


class Interrupted(TpudeployError):
    """The run was interrupted. What was begun is saved, and a later run goes on."""

    code = "TPU0130"
    exit_code = 130
