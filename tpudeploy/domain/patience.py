"""All waiting times, in one place, in seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The waiting times. The defaults come from experience in the field.

    * `poll_first`/`poll_most`: the intervals while things change and while they wait; others poll every 60 s
      (MLA, AXLearn, Levanter), and 30 s suits an interactive user. `poll_many`: the minimum for several slices.
    * `grace`: a request whose name is not visible yet may still exist; 120 s holds under every fault script,
      20 s does not (tests/promises).
    * `creating`: Google takes about 10 s to put a request into a queue, with large slices minutes (MARIN: 900-1800 s).
    * `lateness`: we end a request that outlives its own end by this time.
    * `landing`: v6e takes 2-5 minutes from PROVISIONING to usable; until then no other request is made.
    * `provisioning`: a spot slice can loop for ever in PROVISIONING (HUNT: 2400-5400 s).
    * `husk`: a preempted slice disappears within a minute and uses quota until then; it is not requested again before.
    * `release_again`: a delete during PROVISIONING is accepted and fails later (SPRAY).
    * `faults_at_plan`: as `faults`, while a user waits for a plan.
    * `update_again`: the update is sent again to a node that does not show its new metadata after this time.
    * `refused`: a refusal that holds longer (no quota, no such zone) is not waited for; `closed` is such a time.
    * `lapsed`: a refusal is kept in the state for this time after it has lapsed.
    * `create_every`: Google accepts 91 creates per minute from a project; we stay below, at marin's 60.
    * `acknowledge`: a node that has not picked up a change after this time will not (that a running TPU VM sees a
      change of its metadata is unverified); the watcher polls every 10 s without an answer, and a patch takes seconds.
    * `takeover`: from the end of one container to the start of the next on the chip.
    * `restart`: a reset takes about 4 minutes; without a report of the machine, an earlier answer is the old server's.
    * `restart_again`: a reboot that shows no effect after this time was lost.
    * `watch`: the interval between observations of serving slices under `apply --watch`.
    * `leaving`: a released slice that loops in PROVISIONING cannot be deleted for up to 90 min (HUNT); a run that waits
      for nothing else ends after this time, and names the remaining slices.
    * `deletion`: the longest observed delete (SPRAY: 12 min 38 s); a second grant may be billed for this time.
    * `removal`: how long `gc` waits for its deletions; one delete took 12 min 38 s (SPRAY).
    * `lock`: how long a run waits for another run's lock before it begins; one step lasts seconds.
    * `held`: the maximum time for which a client may use an `endpoints/NAME.json` that it has read.
    * `drained`: the maximum wait for a slice that clients were sent away from, whatever it still runs, unless the
      profile sets `lifecycle.drain_timeout`.
    * `acquisition`: a successor is expected to take as long as the longest recent grant, and at least this time: a run
      every half hour then still notices in time that a slice's run ends.
    * `stray`: how long a run looks by our label for a slice of a request that it has forgotten without ever seeing it.
    * `faults`: how long a cloud that does not answer is polled before the run fails.
    """

    poll_first: float = 1.0
    poll_many: float = 5.0
    poll_most: float = 30.0
    grace: float = 120.0
    creating: float = 900.0
    lateness: float = 120.0
    landing: float = 600.0
    provisioning: float = 2400.0
    husk: float = 60.0
    release_again: float = 20.0
    faults: float = 300.0
    faults_at_plan: float = 10.0
    fault_first: float = 1.0
    fault_most: float = 30.0
    call_timeout: float = 60.0
    update_again: float = 60.0
    refused: float = 7200.0
    closed: float = 86400.0
    lapsed: float = 3600.0
    create_every: float = 1.0
    acknowledge: float = 180.0
    takeover: float = 30.0
    restart: float = 240.0
    restart_again: float = 600.0
    watch: float = 60.0
    leaving: float = 7200.0
    deletion: float = 780.0
    removal: float = 1800.0
    stray: float = 1800.0
    lock: float = 0.0
    held: float = 30.0
    drained: float = 900.0
    acquisition: float = 3600.0

    @property
    def drain(self) -> float:
        """How long a slice continues to serve at least after clients were sent elsewhere: twice `held`."""
        return 2 * self.held

    def poll(self, quiet_looks: int, outstanding: int = 1) -> float:
        """Return the seconds to the next observation of `outstanding` slices, after `quiet_looks` without changes."""
        least = self.poll_first if outstanding <= 2 else self.poll_many  # noqa: PLR2004 - a pair is not many
        return float(min(max(least, self.poll_first * 1.5 ** min(quiet_looks, 40)), self.poll_most))
