"""How long we wait for what: every number of that kind, in one place. All in seconds."""

from __future__ import annotations

from tpudeploy.domain.frozen import frozen


@frozen
class Patience:
    """Defaults from the field.

    * `poll_first`/`poll_most`: quick while things move, calm while they wait; 60 s is the field's calm poll
      (MLA, AXLearn, Levanter), 30 s keeps a person's patience.
    * `grace`: a request whose name is not visible yet may still exist; 120 s holds under every fault script,
      20 s does not (tests/promises).
    * `provisioning`: v6e takes 2-5 minutes; a spot slice can loop for ever in PROVISIONING (HUNT: 2400-5400 s).
    * `release_again`: a delete during PROVISIONING is accepted and fails later (SPRAY).
    * `faults_at_plan`: the same while a person waits for a plan.
    * `update_again`: a node that does not show its new metadata for so long is told once more.
    * `refused`: a verdict that stands longer (no quota, no such zone) is not waited for.
    * `restart`: a reset takes about 4 minutes; without the machine's own word, what answers earlier is the old server.
    * `restart_again`: a reboot that shows no effect for so long was lost.
    * `faults`: how long a cloud that does not answer is asked again before we say so.
    """

    poll_first: float = 1.0
    poll_most: float = 30.0
    grace: float = 120.0
    provisioning: float = 2400.0
    release_again: float = 20.0
    faults: float = 300.0
    faults_at_plan: float = 10.0
    fault_first: float = 1.0
    fault_most: float = 30.0
    call_timeout: float = 60.0
    update_again: float = 60.0
    refused: float = 7200.0
    restart: float = 240.0
    restart_again: float = 600.0

    def poll(self, quiet_looks: int) -> float:
        """Seconds to the next look after `quiet_looks` looks that showed nothing new."""
        return float(min(self.poll_first * 1.5 ** min(quiet_looks, 40), self.poll_most))
