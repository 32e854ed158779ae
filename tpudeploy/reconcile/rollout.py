"""From a slice that is up to a server that serves: update its node, change its server, wait, or report why it fails.

sent ──▶ its metadata show it ──▶ picked up ──▶ serving
│                                     └▶ failed: the previous server starts again ──▶ it serves, or it failed too
└▶ not picked up in time ──▶ reset, where that is approved

Why: decision 46 in docs/decisions.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from tpudeploy.boot_log.read import cause_of
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.errors import ChangeNotAcknowledged, RolledBack, ServingError
from tpudeploy.domain.names import ROUTER, address
from tpudeploy.domain.slices import BootPhase, BootReport, Health, Slice
from tpudeploy.domain.state import Attempt
from tpudeploy.domain.step import Adopt, Done, GiveUp, PatchMetadata, PushChange, Reset, Step, Wait
from tpudeploy.node.fingerprint import live_attributes, server_print
from tpudeploy.node.node_facts import CHANGE_KEY, SPEC_KEY, differing
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.attempt_status import DecisionContext
from tpudeploy.reconcile.desired import desired_attributes

# A node that works on a change gets this many times `health.timeout` before the run gives it up.
_CHANGE_TIMEOUT_FACTOR = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """The server of a slice that is up and fits the profile, by one observation.

    What was observed and what is desired are attributes; conclusions from them are methods.
    """

    deployment: Deployment
    replica: int
    attempt: Attempt
    context: DecisionContext

    @property
    def attributes(self) -> dict[str, Json]:
        """The attributes that the slice should have."""
        return desired_attributes(self.deployment, self.attempt)

    @property
    def desired_server(self) -> str:
        """The fingerprint of the server that must run."""
        return server_print(self.attributes)

    @property
    def slice(self) -> Slice:
        return self.context.observed.slices[self.attempt.name]

    @property
    def report(self) -> BootReport | None:
        return self.context.observed.reports.get(self.attempt.name)

    @property
    def health(self) -> Health | None:
        return self.context.observed.health.get(self.attempt.name)

    def has_current_metadata(self) -> bool:
        """Return whether the node's metadata name the desired server and hold the startup script that it was given."""
        if self.slice.metadata.get(SPEC_KEY) != self.desired_server:
            return False
        # Earlier versions recorded no script. Without one, a change of it by someone else cannot be noticed.
        script = self.slice.script
        return not self.attempt.script or not script or script == self.attempt.script

    def has_recent_update(self) -> bool:
        """Return whether the desired server's metadata were sent a moment ago: a patch takes seconds to show."""
        update = self.attempt.update
        if update is None or update.server != self.desired_server:
            return False
        return self.context.now - update.at < self.context.patience.update_again

    def shows_change(self) -> bool:
        """Return whether the node's metadata show the change that was last sent."""
        return self.attempt.change is not None and self.slice.metadata.get(CHANGE_KEY) == self.attempt.change.name

    def undo_cause(self) -> str:
        """Return why the node goes back, or went back, from the last change; "" if it does not."""
        if self.report is None or not self.attempt.is_undone_by(self.report):
            return ""
        return self.report.cause

    def is_requested(self) -> bool:
        """Return whether the last start that was requested from the node is one of the desired server."""
        return self.attempt.boot.server == self.desired_server and self.attempt.boot.is_sent

    def is_current(self) -> bool:
        """Return whether the server that runs now is the desired one, and not the one before a restart."""
        if not self.is_requested():
            return False
        # The machine's own report decides, if there is one: guest attributes are unverified on TPU VMs.
        if self.report is not None and self.report.spec:
            return self.report.spec == self.desired_server
        # Without a report, the previous server may answer until the machine has certainly rebooted.
        restarted_at = self.attempt.boot.at
        return restarted_at is None or self.context.now - restarted_at >= self.context.patience.restart

    def is_serving(self) -> bool:
        """Return whether the desired server answers.

        One that served before may be busy: its machine's report counts although the server gave no answer here. A new
        one has to answer.
        """
        if not self.is_current() or self.health is None:
            return False
        return self.health.serving and (self.attempt.is_announced or not self.health.silence)

    def must_restart(self) -> bool:
        """Return whether the start of the desired server has to be requested, for the first time or again."""
        if not self.is_requested():
            return True
        restarted_at = self.attempt.boot.at
        # A server that was never restarted cannot have lost a restart. A report without a server contradicts nothing.
        if restarted_at is None or self.report is None or self.report.spec in {"", self.desired_server}:
            return False
        # The machine still runs the previous server: after this time, the request for the restart was lost.
        return self.context.now - restarted_at >= self.context.patience.restart_again

    def failure(self) -> str:
        """Return why the server will not come up by itself; "" while it may, or if it is up."""
        if self.is_serving():
            return ""
        report = self._report_of_start()
        if report is not None and report.phase is BootPhase.FAILED and self._is_failure_new():
            return report.detail
        # Until the time of a start is over, the server may still come up.
        if self.seconds_left() > 0:
            return ""
        minutes = self._start_timeout() / 60
        phase = "nothing" if report is None else str(report.phase)
        # Of several hosts, the detail says which of them the others wait for.
        if report is not None and report.workers and report.detail:
            phase = f"{phase} ({report.detail})"
        endpoint = "" if self.health is None else f"; the endpoint: {self.health.detail}"
        return f"{minutes:.0f} min have passed; the machine last reported: {phase}{endpoint}"

    def seconds_left(self) -> float:
        """Return the seconds until the start that is under way has taken the time that it may take."""
        started_at = self.attempt.boot.at or self.attempt.granted_at or self.context.now
        return started_at + self._start_timeout() - self.context.now

    def _report_of_start(self) -> BootReport | None:
        """Return the node's report, unless it is about an earlier server than the one that starts."""
        report = self.report
        if report is None or self.attempt.is_answered_by(report):
            return report
        return report if report.spec in {"", self.desired_server} else None

    def _is_failure_new(self) -> bool:
        """Return whether a failure that the node reports is of the last start, and not of the start before."""
        # A report that names the last change is about the start that this change caused.
        if self.attempt.is_answered_by(self.report):
            return True
        # The previous start was of another server, and a report about that one was set aside.
        if self.attempt.boot.previous != self.desired_server:
            return True
        # The same server was restarted: its old report stays readable until the machine has rebooted.
        restarted_at = self.attempt.boot.at
        return restarted_at is None or self.context.now - restarted_at >= self.context.patience.restart

    def _start_timeout(self) -> float:
        """Return the seconds that a start may take.

        A node that works on a change ends it by itself: it gives the new server `health.timeout`, counted from the
        start of its container, and then goes back to the previous server. The longer time lets it report that.
        """
        timeout = self.deployment.health.timeout_seconds
        return _CHANGE_TIMEOUT_FACTOR * timeout if self.attempt.is_answered_by(self.report) else timeout


def serve(status: ServerStatus) -> Step:
    """Return the next step for a slice that fits the profile."""
    attempt, replica, name = status.attempt, status.replica, status.attempt.name
    has_current_labels = live_attributes(attempt.spec) == live_attributes(status.attributes)
    if not has_current_labels or not status.has_current_metadata():
        return _update_node(status)
    # The patch was accepted a moment ago. After a minute, a difference is drift, which the next plan reports.
    if status.has_recent_update() and any(differing(attempt, status.slice)):
        return Wait(replica=replica, why="the node does not show its new labels and tags yet")
    if status.must_restart():
        return _change_server(status)
    if status.is_serving():
        # The profile changed only in attributes that no machine has to know. The state takes them over.
        if dict(attempt.spec) != status.attributes:
            return Adopt(replica=replica, name=name)
        return Done(replica=replica, name=name, health=status.health)
    # The slice is kept: capacity is scarcer than money (decision 13).
    failure = status.failure()
    if failure:
        return GiveUp(replica=replica, error=_not_serving(status, failure), name=name)
    return Wait(replica=replica, why="the server is starting", seconds=status.seconds_left())


def _update_node(status: ServerStatus) -> Step:
    """Return the step that gives the node its labels, tags and metadata, and the change if its server must restart."""
    replica, name = status.replica, status.attempt.name
    # The patch was accepted a moment ago. Sending it again would only overwrite it with itself.
    if status.has_recent_update():
        return Wait(replica=replica, why="the node does not show its new metadata yet")
    # The update names the change, so the node's watcher restarts the container (decision 46).
    if status.must_restart():
        return PushChange(replica=replica, name=name, boot=status.desired_server)
    # The right server runs. The node's next boot must read the right metadata, and nothing restarts now.
    return PatchMetadata(replica=replica, name=name, boot=status.desired_server)


def _change_server(status: ServerStatus) -> Step:
    """Return the next step until the node picks up the change that starts the desired server, or undoes it."""
    attempt, replica, context = status.attempt, status.replica, status.context
    # The change has ended on the node, and its end is reported before anything is sent again.
    if status.undo_cause():
        return _follow_undo(status)
    change = attempt.change
    if change is None or not status.shows_change():
        # The patch takes seconds to show, and is sent again only after a minute: it would be another change.
        if change is not None and context.now - change.sent_at < context.patience.update_again:
            return Wait(replica=replica, why="the node does not show its new metadata yet")
        return PushChange(replica=replica, name=attempt.name, boot=status.desired_server)
    # The node picked up the change and was undoing it when its report disappeared: above a rate limit, Google may
    # remove a report (decision 55). A reset would interrupt the undo.
    has_picked_up = attempt.boot.at is not None and attempt.boot.at >= change.sent_at
    if status.report is None and has_picked_up and status.seconds_left() > 0:
        return Wait(replica=replica, why="the node does not report for now", seconds=status.seconds_left())
    # The node's watcher polls its metadata. A report that was removed is written again within half a minute.
    seconds_to_acknowledge = change.sent_at + context.patience.acknowledge - context.now
    if seconds_to_acknowledge > 0:
        return Wait(replica=replica, why="the node has not picked up the change yet", seconds=seconds_to_acknowledge)
    # Only a reboot can apply the change now. It interrupts serving, so a user must have approved it.
    if context.may_reset:
        return Reset(replica=replica, name=attempt.name, boot=status.desired_server)
    return GiveUp(replica=replica, error=_not_acknowledged(status))


def _follow_undo(status: ServerStatus) -> Step:
    """Wait until the previous server serves again or has failed as well: only then the change has ended."""
    attempt, replica, report = status.attempt, status.replica, status.report
    # The node completed a prompt itself. A probe from here may use a key that the previous server does not know.
    if report is not None and report.phase is BootPhase.SERVING:
        return GiveUp(replica=replica, error=_rolled_back(status), name=attempt.name, serves=True)
    failure = status.failure()
    if not failure:
        why = "the change failed; the previous server starts again"
        return Wait(replica=replica, why=why, seconds=status.seconds_left())
    # A node that reports this failure names both causes in it. Otherwise the time is over, and the first one is added.
    if report is None or report.phase is not BootPhase.FAILED:
        failure = f"{status.undo_cause()} (the server before did not come back either: {failure})"
    endpoint = "Nothing serves on the slice, so its endpoint is withdrawn until a server does.\n"
    if status.context.others_serve:
        endpoint = "Nothing serves on the slice; the other replicas take its requests until a server does.\n"
    return GiveUp(replica=replica, error=_not_serving(status, failure, endpoint), name=attempt.name)


def _not_serving(status: ServerStatus, cause: str, endpoint: str = "") -> ServingError:
    deployment, attempt = status.deployment, status.attempt
    where = address(deployment.name, status.replica)
    price = prices.usd_per_hour(attempt)
    cost = "an unknown price" if price is None else f"about ${price:.2f}/h"
    machine = f"The slice {attempt.name} in {attempt.zone} is kept, at {cost}.\n"
    next_step = (
        "Fix the cause and run `tpudeploy apply` again: it restarts the server and keeps the chips.\n"
        "Or delete the slice with `tpudeploy destroy`."
    )
    if status.replica == ROUTER:
        machine = f"The VM {attempt.name} in {attempt.zone} is kept, at {cost}. The replicas serve without it.\n"
        next_step = (
            "Fix the cause and run `tpudeploy apply` again: it starts the router again on the same VM.\n"
            f"Or run `tpudeploy apply -replace '{where}'`: it starts the router on another VM."
        )
    return ServingError(
        f"{where} does not serve: {cause}", hint=f"{remedy(deployment, cause)}{endpoint}{machine}{next_step}"
    )


def _rolled_back(status: ServerStatus) -> RolledBack:
    """Return the error that ends a run whose change was undone. Only for a node whose previous server serves again."""
    cause = status.undo_cause()
    return RolledBack(
        f"{address(status.deployment.name, status.replica)} runs the previous server again, because the change failed:"
        f" {cause}",
        hint=f"{remedy(status.deployment, cause)}The previous server serves on the same chips, and its endpoint is"
        " unchanged.\nFix the cause and run `tpudeploy apply` again. `tpudeploy plan` shows what changes.",
    )


def _not_acknowledged(status: ServerStatus) -> ChangeNotAcknowledged:
    patience = status.context.patience
    replica = address(status.deployment.name, status.replica)
    message = (
        f"{replica} still runs the previous server: its node did not pick up the change within"
        f" {patience.acknowledge / 60:.0f} min."
    )
    if status.report is None:
        message = (
            f"{replica} may still run the previous server: its node does not report whether it picked up the change"
            " (guest attributes)."
        )
    serving, machine = "nothing serves", "the chips are kept"
    if status.replica == ROUTER:
        serving, machine = "the router takes no request", "the VM is kept"
    elif status.context.others_serve:
        serving = "only the other replicas serve"
    return ChangeNotAcknowledged(
        message,
        hint=f"A reset reboots {status.attempt.name} into the changed server: {serving} for about"
        f" {patience.restart / 60:.0f} min, and {machine}.\nThe change stays in the node's metadata."
        " `tpudeploy apply -auto-approve` resets the node and continues.",
    )


def remedy(deployment: Deployment, cause: str) -> str:
    """Return a line that says what to do about the cause, or "" if the cause is not known."""
    budget = deployment.budget
    known_cause = cause_of(cause, budget=budget if isinstance(budget, HbmBudget) else None)
    return "" if known_cause is None else f"{known_cause.remedy}\n"
