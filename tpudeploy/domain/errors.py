"""The errors that stop a run. Each is named by what happens next.

TpudeployError                        message · hint · code · exit_code
├── ConfigError              1        the user's file; carries Diagnostics with file:line
│   ├── ProfileInvalid
│   ├── ProfileNotFound
│   ├── PinsUnreadable                the lock file
│   └── PinsTooNew
├── UsageError               1        the command line
├── PlanError               11        a plan cannot be made or used
│   ├── Unapproved                    no one has approved this plan
│   ├── StalePlan
│   ├── CheckFailed         13        a check, a policy or a verification failed
│   ├── BudgetExceeded      13        a slice could exceed a budget
│   ├── PlanUnreadable       1        the file is not a saved plan, or is damaged
│   └── PlanTooNew           1
├── NotApproved              1        the user declined, or there was no terminal to ask on
├── StateError               1        the state of a deployment
│   ├── StateLocked         10        names the holder
│   ├── StateConflict                 another run wrote in between
│   ├── StateUnreadable
│   ├── StateTooNew
│   ├── StateElsewhere                moved to another backend
│   └── RunUnreadable                 a benchmark's run, not a state
├── CloudError               1        Google refused; `refusal` says what that means
│   ├── Fault                         the call's effect is unknown: observe again
│   ├── Refused                       this place refuses, now or always
│   └── Denied                        every place refuses until a person acts
├── CapacityTimeout         12        not granted in time; saved, a re-run resumes
├── ServingError             1        the slice exists, but vLLM does not serve
│   ├── StillStarting                 the server is not ready yet; a re-run resumes
│   ├── NotInEffect         13        it serves with other settings than declared
│   ├── NotObserved                   it was reached and gave no answer; look again
│   ├── StillDraining                 the replaced slice is not released yet; a re-run resumes
│   ├── GivenUpUpdate       13        the second slice failed; the first continues to serve
│   ├── RolledBack          13        a change failed, and the previous server runs again
│   └── ChangeNotAcknowledged         the node did not pick up a change; a reset would apply it
├── ForgeError               1        GitHub refused a request
│   └── ForgeFault                    GitHub did not answer; it may answer later
├── QueryFailed              1        the endpoint did not answer a question
├── BenchFailed              1        an installed load client failed; earlier cells are kept
├── OutputFailed             1        stdout cannot be written: a full disk, a closed pipe
├── ScenarioInvalid          1        the emulator's scenario cannot be played
├── EmulatorRunning          1        names the one that runs
├── Interrupted            130        saved; a re-run resumes
└── Bug                     70        a bug in tpudeploy: any other exception
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from tpudeploy.domain import exits

if TYPE_CHECKING:
    from tpudeploy.domain.diagnostics import Diagnostic
    from tpudeploy.domain.lock import LockInfo
    from tpudeploy.domain.slices import Refusal
    from tpudeploy.domain.state import State


class TpudeployError(Exception):
    """The base class of every error that tpudeploy raises on purpose.

    Nothing raises it itself: each error is of a subclass that has a code of its own. A program catches it to handle
    all of them. `message` says what happened and why, `hint` says what to do.
    """

    code: ClassVar[str] = "TPU0001"
    exit_code: ClassVar[int] = exits.ERROR

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Return what the command line prints, without color: the message, the code and the hint."""
        from tpudeploy.domain.excerpt import describe_error

        return describe_error(self.message, self.code, self.hint)

    def to_dict(self) -> dict[str, object]:
        return {"code": self.code, "exit_code": self.exit_code, "message": self.message, "hint": self.hint}


# If several deployments failed, the worst error gives the exit code: errors that a person must fix come before errors
# that another run fixes.
WORST_FIRST = (70, 130, 1, 13, 11, 10, 12)


def worst(errors_found: Iterable[TpudeployError]) -> TpudeployError | None:
    """Return the worst error by its exit code, the first of equals, or None without errors."""
    return min(errors_found, key=lambda error: WORST_FIRST.index(error.exit_code), default=None)


class ConfigError(TpudeployError):
    """The user's configuration cannot be used. `diagnostics` are all problems, each with its place."""

    code = "TPU1000"

    def __init__(self, message: str, *, hint: str = "", diagnostics: Iterable[Diagnostic] = ()) -> None:
        super().__init__(message, hint=hint)
        self.diagnostics = tuple(diagnostics)

    def __str__(self) -> str:
        """Return each problem with its line, or the message and the hint without problems."""
        from tpudeploy.domain.excerpt import describe_diagnostics

        return describe_diagnostics(self.diagnostics) if self.diagnostics else super().__str__()

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """The errors among the diagnostics; without any, the message as one."""
        from tpudeploy.domain.diagnostics import Diagnostic, errors_in

        itself = Diagnostic(code=self.code, message=self.message, hint=self.hint)
        return tuple(errors_in(self.diagnostics)) or (itself,)


class ProfileInvalid(ConfigError):
    """The profile is invalid. `diagnostics` has all of its problems at once."""


class ProfileNotFound(ConfigError):
    code = "TPU1001"


class PinsUnreadable(ConfigError):
    """The lock file cannot be read.

    The file is not the JSON document that tpudeploy wrote: a person edited it, or a merge left its conflict
    markers. The file is unchanged, and nothing was done.
    """

    code = "TPU1002"


class PinsTooNew(ConfigError):
    """A later version of tpudeploy wrote the lock file.

    Its `format` is one that this version does not know, so this version cannot use its pins. The file is unchanged,
    and nothing was done.
    """

    code = "TPU1003"


class UsageError(TpudeployError):
    """The command line cannot be understood.

    An option or an argument is unknown, missing or malformed, or two of them contradict each other. Nothing was
    done.
    """

    code = "TPU0002"


class PlanError(TpudeployError):
    """A plan cannot be made or used.

    This is the base class of the errors about plans. Nothing raises it itself: each error is of a subclass that has
    a code of its own.
    """

    code = "TPU3000"
    exit_code = exits.OTHER_PLAN


class StalePlan(PlanError):
    """The plan is out of date.

    The profile, the state or the slices have changed since the plan was made, so applying it would do something
    that no one approved. Make a new plan.
    """

    code = "TPU3001"


class Unapproved(PlanError):
    """The plan was not approved.

    A pipeline applies only what a person approved: the plan on the merged pull request, or a fingerprint that
    -accept names. No approval was found, or it was given to a plan that does something else.
    """

    code = "TPU3006"


class CheckFailed(PlanError):
    """A check forbids the plan.

    A check of the profile, or a policy in it such as lifecycle.prevent_destroy, does not allow what the plan would
    do. Nothing was changed.
    """

    code = "TPU3002"
    exit_code = exits.CHECK_FAILED


class BudgetExceeded(PlanError):
    """A slice could exceed a budget, so it was not requested.

    What was spent, what everything alive may cost until its end, and this slice until its end are together more than
    a budget of the profile, of budgets.yaml or of -max-cost. What runs is untouched.
    """

    code = "TPU3007"
    exit_code = exits.CHECK_FAILED


class PlanUnreadable(PlanError):
    """The file is not a saved plan.

    `tpudeploy plan -out` did not write this file, or it was changed afterwards. Nothing was done.
    """

    code = "TPU3004"
    exit_code = exits.ERROR


class PlanTooNew(PlanError):
    """Another version of tpudeploy saved the plan.

    The `format` of the file is one that this version does not read: a saved plan is applied by the version that
    made it. Nothing was done.
    """

    code = "TPU3005"
    exit_code = exits.ERROR


class NotApproved(TpudeployError):
    """The plan was not confirmed.

    The command asks before it changes anything. The answer was not yes, or there was no terminal to ask on. Nothing
    was changed.
    """

    code = "TPU3003"


class StateError(TpudeployError):
    """The state cannot be used.

    The command needs the state of a deployment. It is absent, it cannot be read or written, or the command does
    not apply to it.
    """

    code = "TPU4000"


class StateLocked(StateError):
    """Another run holds the state lock.

    Only one run at a time may change a deployment, because two would overwrite each other's state. The message
    names the run that holds the lock.
    """

    code = "TPU4001"
    exit_code = exits.LOCKED

    def __init__(self, message: str, *, hint: str = "", holder: LockInfo | None = None) -> None:
        super().__init__(message, hint=hint)
        self.holder = holder


class StateConflict(StateError):
    """Another run wrote the state in between.

    This run lost its lock while it worked (`force-unlock`, or a pause longer than the lock lasts), and another run
    saved the state meanwhile. Nothing was overwritten: run the command again.
    """

    code = "TPU4002"


class StateUnreadable(StateError):
    """The state cannot be read.

    It is not the JSON document that tpudeploy saved: a person edited it, or a disk or a copy damaged it. It is
    unchanged, and earlier versions of it are kept.
    """

    code = "TPU4003"


class StateTooNew(StateError):
    """A later version of tpudeploy wrote the state.

    Its `format` is one that this version does not know, so this version does not change it.
    """

    code = "TPU4004"


class StateElsewhere(StateError):
    """The state was moved to another backend.

    `state migrate` moved it, and left a marker where it was, so that no two states own one slice. Use the state where
    it is now; `--backend` or `tpudeploy.toml` names it.
    """

    code = "TPU4006"

    def __init__(self, marker: State, *, version: str) -> None:
        name, place = marker.deployment, marker.moved_to
        message = f"The state of {name} was moved to {place}."
        hint = f"Use it there: --backend {place}, or `backend` in tpudeploy.toml."
        if marker.attempts:
            message = f"The state of {name} is being moved to {place}, and the move has not ended."
            hint = f"Finish it: tpudeploy state migrate {name} {place}"
        super().__init__(message, hint=hint)
        self.marker = marker
        self.version = version


class RunUnreadable(StateError):
    """A benchmark run cannot be read.

    The file of the run, in .tpudeploy/runs, is not what was written when it was measured. It is unchanged, and the
    other runs are not affected.
    """

    code = "TPU4005"


class CloudError(TpudeployError):
    """Google Cloud did not do what was requested.

    A slice was not deleted within the time that the command waits for it, a zone did not answer a listing, or a log
    could not be read. `refusal`, where there is one, says what Google answered.
    """

    code = "TPU5000"

    def __init__(self, message: str, *, hint: str = "", refusal: Refusal | None = None) -> None:
        super().__init__(message, hint=hint)
        self.refusal = refusal


class Fault(CloudError):
    """Google Cloud did not answer, or the effect of a call is unknown.

    A call ended in a timeout, a broken connection or a server error. It may have been carried out all the same, so
    it is never simply repeated: tpudeploy looks again at what exists. After several attempts it gives up with this
    error.
    """

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
    """Google Cloud refused the request in this place.

    The zone has no capacity or no quota for the slice, or it does not offer the accelerator type or the
    provisioning model. `apply` records the refusal and asks the next place, so that this error reaches only
    programs that call the cloud adapter themselves.
    """

    code = "TPU5002"


class Denied(CloudError):
    """Google Cloud refused the request, and would in every place.

    An API is not enabled, or a role or valid credentials are missing. Another zone does not help: a person has to
    change that first.
    """

    code = "TPU5003"


class CapacityTimeout(TpudeployError):
    """No slice was granted in time.

    Until the time of the run was over, each allowed zone refused the request or kept it in its queue. The requests
    remain, and the next apply continues with them.
    """

    code = "TPU5004"
    exit_code = exits.NOT_YET


class ServingError(TpudeployError):
    """The slice exists, but vLLM does not serve.

    The startup script or vLLM ended with an error: a setup step, the image, a flag or too little memory. The
    message quotes the line of the boot log that says so. The slice is kept.
    """

    code = "TPU6000"


class StillStarting(ServingError):
    """The server did not answer in time.

    The slice was granted. Its machine still pulled the image, loaded weights or compiled when the time of the run
    was over. The slice is kept, and the next apply continues.
    """

    code = "TPU6002"


class NotInEffect(ServingError):
    """The server does not run with the declared settings.

    The server answers, but its API, its metrics or its log show another value than the profile declares, for
    example a shorter max_model_len. It keeps its endpoint, and applying the same profile again does not change it.
    Or its replicas serve, and the router on this machine does not answer.
    """

    code = "TPU6003"
    exit_code = exits.CHECK_FAILED


class NotObserved(ServingError):
    """The server was reached, and gave no answer that shows whether it serves.

    It accepts connections, and then stalls, sends a byte now and then, redirects, or refuses. Its machine reported a
    completion at its last start, which is older and proves nothing about now. The server may be overloaded or hang, or
    another program answers at its address. Nothing was changed.
    """

    code = "TPU6008"


class StillDraining(ServingError):
    """The deployment serves, and the slice that it replaced is not released yet.

    Clients may still use the previous slice for a while after a blue-green change, and the time of the run was over
    before that. Both slices are billed until the next apply releases the previous one.
    """

    code = "TPU6007"


class GivenUpUpdate(ServingError):
    """The new slice of a replacement does not serve.

    vLLM on the second slice ended with an error, so no client was sent there. The first slice serves as before.
    Both are kept and billed.
    """

    code = "TPU6004"
    exit_code = exits.CHECK_FAILED


class RolledBack(ServingError):
    """A change failed and was undone.

    The changed server did not start, so the node started the previous server again, on the same chips. The endpoint
    is unchanged.
    """

    code = "TPU6005"
    exit_code = exits.CHECK_FAILED


class ChangeNotAcknowledged(ServingError):
    """A running node did not pick up a change.

    The changed server is in the node's metadata, but the node did not acknowledge it within a few minutes, or
    reports nothing at all. It still runs the previous server. A reset of the node applies the change, if that is
    approved.
    """

    code = "TPU6006"


Unheard = ChangeNotAcknowledged  # the name of this error in earlier versions of the library


class ForgeError(TpudeployError):
    """GitHub refused a request.

    A comment, a check or an issue could not be read or written: the token has expired or lacks a permission, or the
    repository has another name. No slice was touched by that.
    """

    code = "TPU7000"


class ForgeFault(ForgeError):
    """GitHub did not answer.

    The connection failed, or GitHub answered with a server error or a rate limit, each time that it was asked. No
    slice was touched by that.
    """

    code = "TPU7001"

    def __init__(self, message: str, *, hint: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class QueryFailed(TpudeployError):
    """The endpoint did not answer a question.

    No endpoint is published for the deployment, its address cannot be reached from here, or the server answered
    with an error.
    """

    code = "TPU6001"


class BenchFailed(TpudeployError):
    """The load client ended without a result.

    The installed program that -driver names ended with an error, or wrote a result that cannot be read. The cells
    that were measured before are kept.
    """

    code = "TPU6010"


class OutputFailed(TpudeployError):
    """The output cannot be written.

    The disk behind stdout is full, or the program that reads the pipe has ended.
    """

    code = "TPU0003"


class ScenarioInvalid(TpudeployError):
    """The scenario of the emulator is invalid.

    It is not YAML, or it names a fault, an option or a value that the emulator does not have. Nothing was started.
    """

    code = "TPU7003"


class EmulatorRunning(TpudeployError):
    """An emulator is already running.

    `emulator start` runs one emulator for each user, so that every terminal finds the same one. The message names its
    process and its address.
    """

    code = "TPU7002"

    def __init__(self, pid: int, host: str) -> None:
        super().__init__(
            f"The emulator runs already: process {pid} at {host}.", hint=f"export TPU_EMULATOR_HOST={host}"
        )
        self.pid = pid
        self.host = host


class Bug(TpudeployError):
    """A bug in tpudeploy stopped the run.

    An exception was raised that tpudeploy does not expect. The message names a file with the details to report. The
    state is saved after each step, so running the command again is safe.
    """

    code = "TPU0070"
    exit_code = exits.BUG


class Interrupted(TpudeployError):
    """The run was interrupted.

    Ctrl-C or a signal ended it. What it began is saved, and the next run continues it.
    """

    code = "TPU0130"
    exit_code = exits.INTERRUPTED
