"""How long we wait for what: every number of that kind, in one place. All in seconds."""

from __future__ import annotations

from tpudeploy.domain.frozen import frozen


@frozen
class Patience:
    """Defaults from the field.

    * `poll_first`/`poll_most`: quick while things move, calm while they wait; 60 s is the field's calm poll
      (MLA, AXLearn, Levanter), 30 s keeps a person's patience. `poll_many`: the quickest, where several are looked at.
    * `grace`: a request whose name is not visible yet may still exist; 120 s holds under every fault script,
      20 s does not (tests/promises).
    * `creating`: Google takes about 10 s to put a request into a queue, with large slices minutes (MARIN: 900-1800 s).
    * `lateness`: a request that outlives its own end by so much is ended by us.
    * `landing`: v6e takes 2-5 minutes from PROVISIONING to usable; until then nothing else is asked for.
    * `provisioning`: a spot slice can loop for ever in PROVISIONING (HUNT: 2400-5400 s).
    * `husk`: what was preempted goes within a minute, and holds quota until then; so long it is not asked for again.
    * `release_again`: a delete during PROVISIONING is accepted and fails later (SPRAY).
    * `faults_at_plan`: the same while a person waits for a plan.
    * `update_again`: a node that does not show its new metadata for so long is told once more.
    * `refused`: a verdict that stands longer (no quota, no such zone) is not waited for; `closed` is such a one.
    * `lapsed`: a refusal is remembered so long after it has lapsed.
    * `create_every`: Google takes 91 creates a minute from a project; we stay below, at marin's 60.
    * `acknowledge`: a node that does not take over a change for so long will not (that a running TPU VM sees its
      metadata change is unverified); the watcher asks every 10 s where it gets no answer, and a patch takes seconds.
    * `takeover`: from the end of one container to the start of the next on the chip.
    * `restart`: a reset takes about 4 minutes; without the machine's own word, what answers earlier is the old server.
    * `restart_again`: a reboot that shows no effect for so long was lost.
    * `watch`: from look to look at what serves, while `apply --watch` keeps it alive.
    * `leaving`: what was given up and loops in PROVISIONING cannot be deleted for up to 90 min (HUNT); a run that waits
      for nothing else ends after so long, and says what is left.
    * `deletion`: the longest that one delete took to take (SPRAY: 12 min 38 s); so long a second grant may be billed.
    * `removal`: how long `gc` looks until what it removes is gone; one delete took 12 min 38 s to take (SPRAY).
    * `lock`: how long a lock that somebody holds is waited for before a run begins; one step lasts seconds.
    * `held`: so long a client may go by an `endpoints/NAME.json` that it has read, and not longer.
    * `drained`: what clients were sent away from is not waited for longer, whatever it still runs.
    * `acquisition`: a successor is expected to take as long as the longest grant of late, and so long at least: whoever
      looks every half hour still finds in time that a run ends.
    * `faults`: how long a cloud that does not answer is asked again before we say so.
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
    lock: float = 0.0
    held: float = 30.0
    drained: float = 900.0
    acquisition: float = 3600.0

    @property
    def drain(self) -> float:
        """For so long at least a slice serves on after clients were sent elsewhere: twice what they may hold."""
        return 2 * self.held

    def poll(self, quiet_looks: int, outstanding: int = 1) -> float:
        """Seconds to the next look after `quiet_looks` looks at `outstanding` slices that showed nothing new."""
        least = self.poll_first if outstanding <= 2 else self.poll_many  # noqa: PLR2004 - a pair is not many
        return float(min(max(least, self.poll_first * 1.5 ** min(quiet_looks, 40)), self.poll_most))
