"""How a rehearsal uses a machine that was granted: a server on it, a change of the server, and a reset.

No slice is requested here, whatever becomes of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tpudeploy.domain import errors
from tpudeploy.domain.events import Event
from tpudeploy.domain.report import Wait
from tpudeploy.domain.slices import BootPhase, Phase, SliceRef
from tpudeploy.features.rehearsal import FactFinding, FactVerdict, compare, not_seen
from tpudeploy.features.rehearsal.budget import DISK_GIB, Step
from tpudeploy.features.rehearsal.facts import RehearsalStage
from tpudeploy.loading import Profile
from tpudeploy.plans import Report
from tpudeploy.workspace import Workspace

NAME = "rehearsal"
_POLL = 15.0
# Of the time of a slice, the last parts are for the change in place and for the reset.
_CHANGE, _RESET = 240.0, 360.0
_PHASES = tuple(BootPhase)
_CONTEXT, _CHANGED_CONTEXT = 4096, 2048
# What begins the ids of the facts about an instance; those about a queued resource have no such word.
_PREFIXES = {RehearsalStage.INSTANCE: "instance-", RehearsalStage.SLICE: ""}


class SliceUse:
    """The use of one granted slice until `ends`, in seconds of the clock. `workspace` is the rehearsal's own."""

    def __init__(
        self,
        workspace: Workspace,
        step: Step,
        project: str,
        ref: SliceRef,
        *,
        ends: float,
        on_event: Callable[[Event], None],
    ) -> None:
        self._workspace = workspace
        self._step = step
        self._project = project
        self._ref = ref
        self._ends = ends
        self._on_event = on_event
        self._clock = workspace.adapters.clock
        self._cloud = workspace.adapters.world(on_event).cloud
        self._prefix = _PREFIXES[step.stage]

    def look(self) -> Iterator[FactFinding]:
        """Yield what is seen of the facts about a machine and its server, until Google takes the slice back.

        Raise `errors.TpudeployError`.
        """
        chips = (self._chips,) if self._step.stage is RehearsalStage.INSTANCE else ()
        for see in (self._port, self._report, *chips, self._log, self._change, self._reset):
            finding = see()
            if finding.verdict is not FactVerdict.AS_BELIEVED and not self._is_up():
                # What a machine that is gone does not do says nothing about the fact.
                return
            yield finding

    def _is_up(self) -> bool:
        return any(slice_.phase is Phase.UP for slice_ in self._cloud.slices([self._ref]))

    def _port(self) -> FactFinding:
        """Wait for a completion, and leave time for the change and the reset."""
        fact = f"{self._prefix}port"
        error = self._converge(profile(self._step, self._project), self._ends - _CHANGE - _RESET)
        if error is None:
            return compare(fact, is_as_believed=True, observation="A completion came back.")
        return not_seen(fact, error.message)

    def _report(self) -> FactFinding:
        report = self._cloud.report(self._ref)
        observation = "No report arrived." if report is None else f"It reports {report.phase.value}."
        fact = f"{self._prefix}guest-attributes"
        return compare(fact, is_as_believed=report is not None, observation=observation)

    def _chips(self) -> FactFinding:
        """Return whether a server came up on the chips. One that failed is named with its cause."""
        fact, report = "instance-chips", self._cloud.report(self._ref)
        if report is None or report.phase not in {BootPhase.SERVING, BootPhase.FAILED}:
            return not_seen(fact, "No server came up, and none failed, in the time.")
        is_up = report.phase is BootPhase.SERVING
        return compare(fact, is_as_believed=is_up, observation="A server serves." if is_up else report.detail)

    def _log(self) -> FactFinding:
        fact = "instance-log" if self._step.stage is RehearsalStage.INSTANCE else "boot-log"
        try:
            lines = self._workspace.adapters.cloud_logs.lines(self._ref)
        except errors.CloudError as error:
            return not_seen(fact, error.message)
        return compare(fact, is_as_believed=bool(lines), observation=f"It has {len(lines)} lines.")

    def _change(self) -> FactFinding:
        """Change the profile in place. Only what the machine does not acknowledge says that it did not see it."""
        fact, before = f"{self._prefix}change-in-place", self._cloud.report(self._ref)
        next_profile = profile(self._step, self._project, context=_CHANGED_CONTEXT)
        error = self._converge(next_profile, self._ends - _RESET)
        after = self._cloud.report(self._ref)
        is_acknowledged = before is not None and after is not None and after.change not in {"", before.change}
        if error is None:
            return compare(fact, is_as_believed=True, observation="The server was changed in place.")
        if is_acknowledged:
            text = "The machine took the change over; its server did not start in time."
            return compare(fact, is_as_believed=True, observation=text)
        if isinstance(error, errors.ChangeNotAcknowledged):
            return compare(fact, is_as_believed=False, observation=error.message)
        return not_seen(fact, error.message)

    def _reset(self) -> FactFinding:
        """Reset the slice, and wait until the machine reports an earlier phase than before."""
        fact, before = f"{self._prefix}script-reruns", self._cloud.report(self._ref)
        if before is None or before.phase not in {BootPhase.STARTING, BootPhase.SERVING}:
            return not_seen(fact, "The machine reports no start that could be repeated.")
        self._cloud.restart(self._ref)
        while self._clock.now() < self._ends:
            self._clock.sleep(_POLL)
            report = self._cloud.report(self._ref)
            if report is not None and _PHASES.index(report.phase) < _PHASES.index(before.phase):
                observation = f"The machine reports {report.phase.value} again."
                return compare(fact, is_as_believed=True, observation=observation)
        return not_seen(fact, "The time was over before the machine reported another boot.")

    def _converge(self, target: Profile, ends: float) -> errors.TpudeployError | None:
        """Apply a profile until it serves or the time is over, and return why it does not serve."""
        timeout = ends - self._clock.now()
        if timeout <= 0:
            return errors.CloudError("The time was over.")
        plan = self._workspace.plan([target], on_event=self._on_event)
        # A slice that is lost is not replaced: the ceiling counts one for each stage.
        report = self._workspace.apply(
            plan, wait=Wait.SERVING, timeout=timeout, max_requests=0, on_event=self._on_event
        )
        raise_interrupt(report)
        return report.error


def raise_interrupt(report: Report) -> None:
    """Raise `errors.Interrupted` where a run was stopped: it says nothing about Google."""
    if isinstance(report.error, errors.Interrupted):
        raise report.error


def profile(step: Step, project: str, *, context: int = _CONTEXT) -> Profile:
    """Return the profile of the slice that a stage requests: the smallest, at one place, for one run."""
    assert step.provisioning is not None
    placement: dict[str, Any] = {
        "project": project,
        "zones": [str(step.zone)],
        "provisioning": [str(step.provisioning)],
        "backend": str(step.backend),
        "max_parallel_requests": 1,
        "max_run_duration": f"{step.run_seconds:.0f}s",
        "valid_until": "30m",
    }
    return Profile.from_mapping(
        {
            "version": 1,
            "name": NAME,
            "model": {"id": "google/gemma-4-E2B-it"},
            "tpu": {"type": "v6e-1", "boot_disk_size": f"{DISK_GIB}GiB"},
            # Text alone and few requests: a start of about 6 minutes, which the shortest run has time for.
            "serving": {
                "image": "vllm/vllm-tpu:v0.32.0",
                "max_model_len": context,
                "max_num_seqs": 8,
                "max_num_batched_tokens": 1024,
                "args": {"limit_mm_per_prompt": {"image": 0, "audio": 0, "video": 0}},
            },
            "placement": placement,
        }
    )
