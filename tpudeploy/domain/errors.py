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
from typing import ClassVar

from tpudeploy.domain import exits
from tpudeploy.domain.diagnostics import Diagnostic, errors_in
from tpudeploy.domain.excerpt import describe_diagnostics, describe_error
from tpudeploy.domain.lock import LockInfo
from tpudeploy.domain.slices import Refusal
from tpudeploy.domain.state import State


class TpudeployError(Exception):
    """The base class of every error that tpudeploy raises on purpose.

    It's never raised itself: each subclass has its own code. Catch it to handle all of them. `message` says what
    happened and why, `hint` says what to do. `guess` suggests the closest name in spelling. It's apart from the hint:
    commands that end or buy something don't print it.
    """

    code: ClassVar[str] = "TPU0001"
    exit_code: ClassVar[int] = exits.ERROR

    def __init__(self, message: str, *, hint: str = "", guess: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.guess = guess

    def __str__(self) -> str:
        """Return what the command line prints, without color: the message, the code and the hint."""
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

    def __init__(
        self, message: str, *, hint: str = "", guess: str = "", diagnostics: Iterable[Diagnostic] = ()
    ) -> None:
        super().__init__(message, hint=hint, guess=guess)
        self.diagnostics = tuple(diagnostics)

    def __str__(self) -> str:
        """Return each problem with its line, or the message and the hint without problems."""
        return describe_diagnostics(self.diagnostics) if self.diagnostics else super().__str__()

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """The errors among the diagnostics; without any, the message as one."""
        itself = Diagnostic(code=self.code, message=self.message, hint=self.hint)
        return tuple(errors_in(self.diagnostics)) or (itself,)


class ProfileInvalid(ConfigError):
    """The profile is invalid. `diagnostics` has all of its problems at once."""


class ProfileNotFound(ConfigError):
    code = "TPU1001"


class PinsUnreadable(ConfigError):
    """The lock file cannot be read.

    The file isn't the JSON document tpudeploy wrote: it was edited, or a merge left conflict markers. Nothing was
    changed.
    """

    code = "TPU1002"


class PinsTooNew(ConfigError):
    """A later version of tpudeploy wrote the lock file.

    This version doesn't know the file's `format`, so it can't use the pins. Nothing was changed.
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

    This is the base class of errors about plans. It's never raised itself: each subclass has its own code.
    """

    code = "TPU3000"
    exit_code = exits.OTHER_PLAN


class StalePlan(PlanError):
    """The plan is out of date.

    The profile, the state or the slices have changed since the plan was made. Applying it would do something no one
    approved. Make a new plan.
    """

    code = "TPU3001"


class Unapproved(PlanError):
    """The plan was not approved.

    A pipeline applies only an approved plan: the one on the merged pull request, or the fingerprint in -accept. There's
    no approval, or it's for a different plan.
    """

    code = "TPU3006"


class CheckFailed(PlanError):
    """A check forbids the plan.

    A check of the profile, or a policy such as lifecycle.prevent_destroy, doesn't allow the plan. Nothing was changed.
    """

    code = "TPU3002"
    exit_code = exits.CHECK_FAILED


class BudgetExceeded(PlanError):
    """A slice could exceed a budget, so it was not requested.

    Money spent, plus the cost of everything alive until its end, plus this slice until its end is more than a budget of
    the profile, of budgets.yaml or of -max-cost. Running slices are untouched.
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

    This version doesn't read the file's `format`. A saved plan is applied by the version that made it. Nothing was
    done.
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

    Only one run at a time may change a deployment. Two would overwrite each other's state. The message names the lock's
    owner.
    """

    code = "TPU4001"
    exit_code = exits.LOCKED

    def __init__(self, message: str, *, hint: str = "", holder: LockInfo | None = None) -> None:
        super().__init__(message, hint=hint)
        self.holder = holder


class StateConflict(StateError):
    """Another run wrote the state in between.

    This run lost its lock (`force-unlock`, or a pause longer than the lock's lifetime). Meanwhile, another run saved
    the state. Nothing was overwritten: run the command again.
    """

    code = "TPU4002"


class StateUnreadable(StateError):
    """The state cannot be read.

    It isn't the JSON document tpudeploy saved: it was edited, or a disk or a copy damaged it. It's unchanged. Earlier
    versions are kept.
    """

    code = "TPU4003"


class StateTooNew(StateError):
    """A later version of tpudeploy wrote the state.

    This version doesn't know the state's `format`, so it doesn't change it.
    """

    code = "TPU4004"


class StateElsewhere(StateError):
    """The state was moved to another backend.

    `state migrate` moved it and left a marker in its old place, so that one slice never has two states. Use the new
    place: set it with `--backend` or in `tpudeploy.toml`.
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

    The run's file in .tpudeploy/runs was changed after the measurement. Other runs aren't affected.
    """

    code = "TPU4005"


class CloudError(TpudeployError):
    """Google Cloud did not do what was requested.

    A slice wasn't deleted in time, a zone didn't answer a listing, or a log couldn't be read. `refusal`, if set, is
    Google's answer.
    """

    code = "TPU5000"

    def __init__(self, message: str, *, hint: str = "", refusal: Refusal | None = None) -> None:
        super().__init__(message, hint=hint)
        self.refusal = refusal


class Fault(CloudError):
    """Google Cloud did not answer, or the effect of a call is unknown.

    A call ended in a timeout, a broken connection or a server error. The call may have succeeded anyway, so tpudeploy
    never just repeats it but lists what exists. After several attempts it stops with this error.
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

    The zone has no capacity or no quota for the slice, or it doesn't offer the accelerator type or the provisioning
    model. `apply` records the refusal and tries the next place, so only programs that call the cloud adapter directly
    get this error.
    """

    code = "TPU5002"


class Denied(CloudError):
    """Google Cloud refused the request, and would in every place.

    An API is not enabled, or a role or valid credentials are missing. Another zone doesn't help. Fix it, then run the
    command again.
    """

    code = "TPU5003"


class CapacityTimeout(TpudeployError):
    """No slice was granted in time.

    Each allowed zone refused the request or kept it queued until the run's timeout. The requests remain; the next apply
    continues with them.
    """

    code = "TPU5004"
    exit_code = exits.NOT_YET


class ServingError(TpudeployError):
    """The slice exists, but vLLM does not serve.

    The startup script or vLLM ended with an error: a setup step, the image, a flag or too little memory. The message
    quotes the line of the boot log. The slice is kept.
    """

    code = "TPU6000"


class StillStarting(ServingError):
    """The server did not answer in time.

    The slice was granted. Its machine was still pulling the image, loading weights or compiling at the run's timeout.
    The slice is kept. The next apply continues.
    """

    code = "TPU6002"


class NotInEffect(ServingError):
    """The server does not run with the declared settings.

    The server answers, but its API, its metrics or its log show another value than the profile declares, for example a
    shorter max_model_len. It keeps its endpoint. Applying the same profile again doesn't change it. Or the replicas
    serve but the router on this machine doesn't answer.
    """

    code = "TPU6003"
    exit_code = exits.CHECK_FAILED


class NotObserved(ServingError):
    """The server was reached, and gave no answer that shows whether it serves.

    It accepts connections but stalls, sends a byte now and then, redirects or refuses. The machine's last reported
    completion is too old to prove anything. The server may be overloaded or hang, or another program answers at its
    address. Nothing was changed.
    """

    code = "TPU6008"


class StillDraining(ServingError):
    """The deployment serves, and the slice that it replaced is not released yet.

    After a blue-green change, clients may use the previous slice for a while. The run's timeout came first. Both slices
    are billed until the next apply deletes the previous one.
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

    The changed server is in the node's metadata, but the node didn't acknowledge it within a few minutes, or sends no
    reports at all. It still runs the previous server. A reset of the node, if approved, applies the change.
    """

    code = "TPU6006"


Unheard = ChangeNotAcknowledged  # the name of this error in earlier versions of the library


class ForgeError(TpudeployError):
    """GitHub refused a request.

    A comment, a check or an issue could not be read or written: the token has expired or lacks a permission, or the
    repository has another name. No slice was changed.
    """

    code = "TPU7000"


class ForgeFault(ForgeError):
    """GitHub did not answer.

    Every attempt ended in a failed connection, a server error or a rate limit. No slice was changed.
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

    The -driver program ended with an error or wrote an unreadable result. Cells measured before are kept.
    """

    code = "TPU6010"


class OutputFailed(TpudeployError):
    """The output cannot be written.

    The disk behind stdout is full, or the program that reads the pipe has ended.
    """

    code = "TPU0003"


class ScenarioInvalid(TpudeployError):
    """The scenario of the emulator is invalid.

    It isn't YAML, or it contains an unknown fault, option or value. Nothing was started.
    """

    code = "TPU7003"


class EmulatorRunning(TpudeployError):
    """An emulator is already running.

    `emulator start` runs one emulator per user, so every terminal finds the same one. The message names its process and
    address.
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

    An unexpected exception was raised. The message names a file with the details to report. The state is saved after
    each step, so it's safe to run the command again.
    """

    code = "TPU0070"
    exit_code = exits.BUG


class Interrupted(TpudeployError):
    """The run was interrupted.

    Ctrl-C or a signal ended it. Its progress is saved; the next run continues from there.
    """

    code = "TPU0130"
    exit_code = exits.INTERRUPTED
