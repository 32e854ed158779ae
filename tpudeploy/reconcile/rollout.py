"""From a standing slice to a serving one: update it, change its server, wait for a real completion, or say why not.

told ──▶ the metadata show it ──▶ taken over ──▶ serving
│                                     └▶ failed: the server before is started again ──▶ it serves, or it failed too
└▶ not heard in time ──▶ reset, where that is approved

Why: decision 46 in docs/decisions.md.
"""

from __future__ import annotations

from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.errors import ChangeNotAcknowledged, RolledBack, ServingError, TpudeployError
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import address
from tpudeploy.domain.slices import BootPhase, BootReport, Health
from tpudeploy.domain.state import Attempt
from tpudeploy.domain.step import Adopt, Done, GiveUp, PatchMetadata, PushChange, Reset, Step, Wait
from tpudeploy.node.fingerprint import live_attributes, server_print, text_print
from tpudeploy.node.node_facts import CHANGE_KEY, SCRIPT_KEY, SPEC_KEY, differing
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.attempt_status import DecisionContext
from tpudeploy.reconcile.desired import desired_attributes

# Times health.timeout until a node that took over a change, and says nothing of its end, is given up from here.
_NODE_DECIDES = 2.0


@frozen
class ServerStatus:
    """A slice that is up and fits, in one moment."""

    deployment: Deployment
    replica: int
    attempt: Attempt
    context: DecisionContext

    @property
    def attributes(self) -> dict[str, Json]:
        """What the slice should be."""
        return desired_attributes(self.deployment, self.attempt)

    @property
    def desired_server(self) -> str:
        """The fingerprint of the server that must run."""
        return server_print(self.attributes)

    @property
    def report(self) -> BootReport | None:
        return self.context.observed.reports.get(self.attempt.name)

    @property
    def health(self) -> Health | None:
        return self.context.observed.health.get(self.attempt.name)

    @property
    def has_current_metadata(self) -> bool:
        return self.knows_server and not self.has_other_script

    @property
    def knows_server(self) -> bool:
        """Whether the node's metadata name the server that must run."""
        return self.context.observed.slices[self.attempt.name].metadata.get(SPEC_KEY) == self.desired_server

    @property
    def has_other_script(self) -> bool:
        """Whether somebody else gave the node another startup script than it was given here."""
        shown = self.context.observed.slices[self.attempt.name].metadata.get(SCRIPT_KEY)
        return bool(self.attempt.script) and shown is not None and text_print(shown) != self.attempt.script

    @property
    def is_updating(self) -> bool:
        """Whether the node was told a moment ago: a patch takes seconds to show."""
        update = self.attempt.update
        if update is None or update.server != self.desired_server:
            return False
        return self.context.now - update.at < self.context.patience.update_again

    @property
    def shows_update(self) -> bool:
        """Whether the node shows what it was told a moment ago. One that never does is told of as drift."""
        found = self.context.observed.slices[self.attempt.name]
        return not self.is_updating or not any(differing(self.attempt, found))

    @property
    def is_told(self) -> bool:
        """Whether the node shows the change that it is to take over."""
        shown = self.context.observed.slices[self.attempt.name].metadata.get(CHANGE_KEY)
        return self.knows_server and self.attempt.change is not None and shown == self.attempt.change.name

    @property
    def undone(self) -> str:
        """Why the node goes back, or went back, from what it was told; "" where it does not."""
        if self.report is None or not self.attempt.is_undone_by(self.report):
            return ""
        return self.report.cause

    @property
    def is_taken_over(self) -> bool:
        """Whether the node has begun with the change that it was last told, by any of its words so far."""
        change, booted_at = self.attempt.change, self.attempt.boot.at
        return change is not None and booted_at is not None and booted_at >= change.sent_at

    @property
    def hearing_left(self) -> float:
        """Seconds in which the node may still acknowledge the change.

        A node without a report gets the same time: above its limit Google may remove a report, and the node writes it
        again within half a minute.
        """
        sent_at = 0.0 if self.attempt.change is None else self.attempt.change.sent_at
        return sent_at + self.context.patience.acknowledge - self.context.now

    @property
    def is_current(self) -> bool:
        """Whether what runs now is the server we want, and not the one before a restart.

        The machine's own word decides. Where it gives none (guest attributes are unverified on TPU VMs), the time
        that a reboot takes must have passed.
        """
        if self.attempt.boot.server != self.desired_server or not self.attempt.boot.is_sent:
            return False
        if self.report is not None and self.report.spec:
            return self.report.spec == self.desired_server
        rebooted = self.attempt.boot.at
        return rebooted is None or self.context.now - rebooted >= self.context.patience.restart

    @property
    def is_serving(self) -> bool:
        return self.is_current and self.health is not None and self.health.serving

    @property
    def must_restart(self) -> bool:
        if self.attempt.boot.server != self.desired_server or not self.attempt.boot.is_sent:
            return True
        stale = self.report is not None and self.report.spec not in {"", self.desired_server}
        rebooted = self.attempt.boot.at
        # Asked, yet the machine still runs the old server: that request was lost.
        return stale and rebooted is not None and self.context.now - rebooted >= self.context.patience.restart_again

    @property
    def failure(self) -> str:
        """Why this server will not come up by itself, "" while it may, or has."""
        if self.is_serving:
            return ""
        attempt, now, patience = self.attempt, self.context.now, self.context.patience
        is_ours = self.report is not None and (self.answers_change or self.report.spec in {"", self.desired_server})
        current = self.report if is_ours else None
        # Right after a restart into the same server, a failure may still be the word of the boot before.
        is_settled = attempt.boot.at is None or now - attempt.boot.at >= patience.restart
        is_fresh = self.answers_change or attempt.boot.previous != self.desired_server or is_settled
        if current is not None and current.phase is BootPhase.FAILED and is_fresh:
            return current.detail
        if self.seconds_left > 0:
            return ""
        minutes = self.start_timeout / 60
        said = current.phase if current is not None else "nothing"
        probed = f"; the endpoint: {self.health.detail}" if self.health is not None else ""
        return f"{minutes:.0f} min have passed; the machine last said: {said}{probed}"

    @property
    def answers_change(self) -> bool:
        """Whether the node's report speaks of the change that it was last told."""
        return self.attempt.is_answered_by(self.report)

    @property
    def start_timeout(self) -> float:
        """Seconds that a start may take.

        A node at work on a change ends it by itself: it gives the new server `health.timeout`, counted from the start
        of its container, and then goes back to the server before. So it is given the time to say so.
        """
        timeout = self.deployment.health.timeout_seconds
        return _NODE_DECIDES * timeout if self.answers_change else timeout

    @property
    def seconds_left(self) -> float:
        """Seconds until the start that is under way has taken `start_timeout`."""
        began = self.attempt.boot.at or self.attempt.granted_at or self.context.now
        return began + self.start_timeout - self.context.now


def serve(standing: ServerStatus) -> Step:
    """The next step for a slice that fits."""
    attempt, replica, name = standing.attempt, standing.replica, standing.attempt.name
    if live_attributes(attempt.spec) != live_attributes(standing.attributes) or not standing.has_current_metadata:
        if standing.is_updating:
            return Wait(replica=replica, why="the node takes its metadata")
        if standing.must_restart:
            return PushChange(replica=replica, name=name, boot=standing.desired_server)
        return PatchMetadata(replica=replica, name=name, boot=standing.desired_server)
    if not standing.shows_update:
        return Wait(replica=replica, why="the node takes its labels and tags")
    if standing.must_restart:
        return _change(standing)
    if standing.is_serving:
        if dict(attempt.spec) != standing.attributes:
            return Adopt(replica=replica, name=name)
        return Done(replica=replica, name=name, health=standing.health)
    return _wait(standing)


def _change(standing: ServerStatus) -> Step:
    attempt, replica, context = standing.attempt, standing.replica, standing.context
    if standing.undone:
        return _follow_undo(standing)
    if not standing.is_told:
        if attempt.change is not None and context.now - attempt.change.sent_at < context.patience.update_again:
            return Wait(replica=replica, why="the node takes its metadata")
        return PushChange(replica=replica, name=attempt.name, boot=standing.desired_server)
    if standing.report is None and standing.is_taken_over and standing.seconds_left > 0:
        # A report can be lost. This node took the change over and was undoing it: a reset would cut that short.
        return Wait(replica=replica, why="the node says nothing for now", seconds=standing.seconds_left)
    left = standing.hearing_left
    if left > 0:
        return Wait(replica=replica, why="the node has yet to take over the change", seconds=left)
    if context.may_reset:
        return Reset(replica=replica, name=attempt.name, boot=standing.desired_server)
    return GiveUp(replica=replica, error=_unheard(standing))


def _follow_undo(standing: ServerStatus) -> Step:
    """Wait until the server before serves again, or has failed as well: the change has an end only then."""
    attempt, replica, report = standing.attempt, standing.replica, standing.report
    if report is not None and report.phase is BootPhase.SERVING:
        # The node completed a prompt itself. Our own probe may hold a key that this server does not know.
        return GiveUp(replica=replica, error=_rolled_back(standing), name=attempt.name, serves=True)
    failure = standing.failure
    if not failure:
        why = "the change failed; the previous server starts again"
        return Wait(replica=replica, why=why, seconds=standing.seconds_left)
    if report is None or report.phase is not BootPhase.FAILED:  # a node that reports this failure names both causes
        failure = f"{standing.undone} (the server before did not come back either: {failure})"
    endpoint = "Nothing serves on it, so its endpoint is withdrawn until it does.\n"
    return GiveUp(replica=replica, error=_failed(standing, failure, endpoint), name=attempt.name)


def _wait(standing: ServerStatus) -> Step:
    failure = standing.failure
    if failure:
        return GiveUp(replica=standing.replica, error=_failed(standing, failure), name=standing.attempt.name)
    return Wait(replica=standing.replica, why="it boots", seconds=standing.seconds_left)


def _failed(standing: ServerStatus, cause: str, endpoint: str = "") -> ServingError:
    """The slice is kept: a chip is too scarce to give back because a flag was wrong."""
    deployment, attempt = standing.deployment, standing.attempt
    price = prices.usd_per_hour(attempt)
    cost = "an unknown price" if price is None else f"about ${price:.2f}/h"
    return ServingError(
        f"{address(deployment.name, standing.replica)} does not serve: {cause}",
        hint=f"{remedy(deployment, cause)}{endpoint}The slice {attempt.name} in {attempt.zone} is kept, at {cost}.\n"
        "Mend the cause and run `tpudeploy apply` again: it restarts the server and keeps the chips.\n"
        "Or give it back with `tpudeploy destroy`.",
    )


def _rolled_back(standing: ServerStatus) -> TpudeployError:
    """Return the error that ends a run whose change was undone. Only for a node whose server before serves again."""
    where = address(standing.deployment.name, standing.replica)
    return RolledBack(
        f"{where} was changed, and changed back: {standing.undone}",
        hint=f"{remedy(standing.deployment, standing.undone)}The server before serves again on the same chips, and its"
        " endpoint is unchanged.\nFix the cause and run `tpudeploy apply` again. `tpudeploy plan` shows what changes.",
    )


def _unheard(standing: ServerStatus) -> TpudeployError:
    attempt, patience = standing.attempt, standing.context.patience
    where = address(standing.deployment.name, standing.replica)
    what = f"{where} runs on as it was: its node did not take over the change in {patience.acknowledge / 60:.0f} min."
    if standing.report is None:
        what = f"Whether {where} takes over the change cannot be known: its node says nothing (guest attributes)."
    return ChangeNotAcknowledged(
        what,
        hint=f"A reset of {attempt.name} reboots it into the changed server: nothing serves for about"
        f" {patience.restart / 60:.0f} min more, and the chips stay.\nThe change waits in the node's metadata."
        " `tpudeploy apply -auto-approve` resets the node, and goes on.",
    )


def remedy(deployment: Deployment, said: str) -> str:
    """What to do about it, a line, where the words are known."""
    from tpudeploy.boot_log.read import cause_of  # thirty patterns, needed only where something died

    budget = deployment.budget
    found = cause_of(said, budget=budget if isinstance(budget, HbmBudget) else None)
    return "" if found is None else f"{found.remedy}\n"
