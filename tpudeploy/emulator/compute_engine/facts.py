"""What is not verified about Compute Engine: a scenario's key `compute_engine`, by which either truth can be played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeEngineFacts:
    """Each fact has a key with its default:

    compute_engine:
      shows_pending: true             # a flex-start instance is visible as PENDING before the grant
      lapse_has_error: false          # the operation of a request that lapsed ends with an error
      remembers_request_id: 3600      # for how many seconds a repeated request id is answered with the first operation
      takes_host_reports: true        # a host under a TPU can be reported as faulty
      quota_metrics: {preemptible: preemptible_tpu_ct6e}      # another spelling of a metric of chips; "" for none
      machines: {us-east5-a: [ct6e-standard-4t]}      # what a zone has of its types, instead of the catalogue's word
      shows_run_end: true             # a running instance shows when its run ends
      ends_runs: true                 # its run is ended then
      stopped_state: TERMINATED       # or STOPPED: the state of a machine that is gone while its instance stays
    """

    shows_pending: bool = True
    lapse_has_error: bool = False
    remembers_request_id: float = 3600.0
    stopped_state: str = "TERMINATED"
    takes_host_reports: bool = True
    quota_metrics: Mapping[str, str] = field(default_factory=dict)
    machines: Mapping[str, Sequence[str]] = field(default_factory=dict)
    shows_run_end: bool = True
    ends_runs: bool = True
