"""Which slices take requests: the list that clients and routers read, and who else serves while one is interrupted.

| operation                                 | it leaves the list                      | it comes back                 |
|-------------------------------------------|-----------------------------------------|-------------------------------|
| first start                               |                                         | after its first completion    |
| another server in place, or a reset       | before it drains; then it is changed    | after a completion            |
| a change that its node undoes             | as above                                | once the node reports one     |
| replacement, blue-green, renewal          | when its successor is on the list       | if the successor fails        |
| replacement with destroy-before-create    | before it drains; then it is deleted    |                               |
| fewer replicas, a part that is destroyed  | before it drains; then it is deleted    |                               |
| end of its run, where others serve        | one drain before Google deletes it      |                               |
| preemption with a notice                  | when its machine reports the notice     | if it is up 5 min later       |
| preemption, a machine that is gone        | when the cloud shows it                 |                               |
| a server that does not answer             | while another replica answers           | when it answers a completion  |

A replica that is the only one stays on the list until its server stops: no other one could serve. At most
`lifecycle.max_unavailable` replicas are absent because of a change.

Why: decision 60 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.names import address
from tpudeploy.domain.slices import BootPhase, Observed, Phase
from tpudeploy.domain.state import Attempt, State
from tpudeploy.domain.step import Drain, Forget, PushChange, Release, Reset, Step
from tpudeploy.node.fingerprint import server_print
from tpudeploy.reconcile.attempt_status import is_being_preempted
from tpudeploy.reconcile.desired import desired_attributes

_MOST_NAMES = 3  # of the replicas that another one waits for


def takes_requests(attempt: Attempt, observed: Observed) -> bool:
    """Return whether clients are sent to a slice, as far as the state and the cloud show. Its server is not asked."""
    # It never answered, or it was taken off the list before something is done to it.
    if not attempt.is_announced or attempt.draining_at is not None or attempt.release is not None:
        return False
    current = observed.slices.get(attempt.name)
    # A slice that could not be observed was up when it was last seen: its zone may only be slow to answer.
    return attempt.name in observed.unseen or (current is not None and current.phase is Phase.UP)


def ready_slices(state: State, observed: Observed, leaving: Collection[str] = ()) -> Mapping[str, int]:
    """Return the slices that take requests, each with its replica, without those that are `leaving`."""
    candidates = {
        attempt.name: index
        for index, attempt in state.indexed_slice_attempts
        if attempt.name not in leaving and takes_requests(attempt, observed)
    }
    answering = {name: replica for name, replica in candidates.items() if answers(name, observed)}
    staying = {name: replica for name, replica in answering.items() if not is_being_preempted(name, observed)}
    # Where Google takes back all that answer, they serve until they are gone.
    answering = staying or answering
    # Where no server answers, the network between here and them is more likely to have failed than all of them. Clients
    # may still reach them, so a failed probe takes none off the list. One that reports another start was not probed.
    return answering or {name: replica for name, replica in candidates.items() if name in observed.health}


def leaving_slices(steps: Iterable[Step]) -> set[str]:
    """Return the slices that these steps take off the list, or whose servers they interrupt."""
    return {
        step.name
        for step in steps
        if isinstance(step, Release | Forget | PushChange | Reset) or (isinstance(step, Drain) and step.begins)
    }


def reason_to_hold(
    deployment: Deployment, state: State, ready: Collection[int], replica: int, targets: Collection[int]
) -> str:
    """Return why this replica may not be interrupted now, or "" if it may. `ready` are the replicas that serve.

    Call it only for a replica that serves: one that does not has nothing to interrupt, and a change may repair it.
    `targets` are the replicas that the run brings up. It could wait for ever for another one.
    """
    if replica not in deployment.replica_indexes:
        # It is deleted for good, which is not urgent: those that remain have to serve first.
        return "" if any(other in deployment.replica_indexes for other in ready) else "until another replica serves"
    others = [state.record(index) for index in targets if index != replica]
    failures = [r.index for r in others if any(_has_failed_change(deployment, a) for a in r.attempts)]
    if failures:
        # What failed there would fail here, and a replica that serves would be lost.
        return f"because the change failed at {address(deployment.name, failures[0])}"
    absent = [record.index for record in others if record.index not in ready]
    most = deployment.lifecycle.max_unavailable
    if len(absent) < most:
        return ""
    names = ", ".join(address(deployment.name, other) for other in absent[:_MOST_NAMES])
    return f"until {names} {'serves' if len(absent) == 1 else 'serve'} (lifecycle.max_unavailable: {most})"


def _has_failed_change(deployment: Deployment, attempt: Attempt) -> bool:
    """Return whether the change to the profile's server failed here, and no later run has sent it again."""
    if not attempt.is_failed or attempt.change is None:
        return False
    return attempt.boot.server != server_print(desired_attributes(deployment, attempt))


def answers(name: str, observed: Observed) -> bool:
    """Return whether the server of a slice that takes requests answers, as far as is known."""
    # A slice that could not be observed served when it was last seen.
    if name in observed.unseen:
        return True
    health, report = observed.health.get(name), observed.reports.get(name)
    if health is not None:
        return health.serving
    # It was not probed: its machine reports another start, or a part of the deployment is deleted without a profile.
    return report is None or report.phase is BootPhase.SERVING
