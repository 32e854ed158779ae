"""A scenario: what kind of cloud this is and what goes wrong in it. YAML, JSON or a mapping.

    seed: 7                         # of `chance` and of `jitter`
    jitter: 0.1                     # every duration is up to this share longer or shorter; 0 makes all exact
    nodes: simulated                # no bash, no processes; `real` (the default) runs the startup script
    timings: {queued: 10, waiting: 20, provisioning: 120, boot: 60}     # timings.py
    boot: {image_pull: 5}           # Behaviour of every machine (machine/facts.py)
    quota:                          # in chips; what no row names is plenty; the other class is on-demand
      - {class: preemptible, region: us-east5, limit: 16}       # or zone: us-east5-b; "*" is any
      - {class: on-demand, region: "*", limit: 0, api: compute}     # Compute Engine's, which is another pool
    creates_per_minute: 91          # a project's rate limit
    page_most: 1000                 # what one page of a list holds at most
    offers: {us-west4-a: [v5litepod-4]}     # what a zone has, instead of the catalogue's word
    secrets: {hf-token: made-up}    # only these exist; without the key any secret does
    denied_secrets: [other]
    buckets: [my-states]            # only these exist in Cloud Storage; without the key any bucket does
    versioned_buckets: [my-states]  # object versioning is on in these
    project: {apis_off: [secretmanager.googleapis.com]}     # what surrounds the TPUs: ScenarioProject
    compute_engine: {shows_pending: false}      # what is unverified about instances: ComputeEngineFacts
    keeps_operations: 0             # seconds in which lists have what is over, 14 days without the key: not verified
    billed_from: ready              # not from the creation of a machine: which of the two is true is not verified
    habits:                         # what a zone does every time: habits.py
      - {habit: early-preemption, zone: us-east5-a, after: 300}
    trouble:
      - {fault: stockout, zone: us-east5-b, attempt: 1}         # the first create in that zone
      - {fault: stockout, zone: us-east5-a, attempt: 2-, layer: L3}
      - {fault: lost-reply, call: 3}                            # the third create anywhere
      - {fault: unavailable, method: queuedResources.get, times: 2}
      - {fault: preempt, zone: "*", after: 900, chance: 0.1}

A row of trouble strikes when everything it names fits: `zone`, `method`, `name`, `type`, `model`, `api` (shell
patterns; `api` is `tpu`, `compute` or another service), `attempt` (n-th call of that method in that zone), `call` (n-th
of that method anywhere), `times` (at most so often), `chance`, `since` and `until` (seconds of the cloud's life),
`hours` (of the day, UTC: `6-22`, `22-6`). A row that names no method strikes what its fault is about in both APIs.
Faults and their own options: faults.FAULTS. All rows that fit strike; of refusals, the first. Rows of `trouble` precede
those of `habits`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tpudeploy.emulator.machine.facts import Behaviour
from tpudeploy.emulator.timings import Jitter, Timings, draw
from tpudeploy.emulator.trouble import Trouble

# The default network, as Google makes it: only ssh, RDP and ping come in.
_DEFAULT_RULES: tuple[Mapping[str, Any], ...] = (
    {"name": "default-allow-icmp", "allowed": [{"IPProtocol": "icmp"}], "sourceRanges": ["0.0.0.0/0"]},
    {
        "name": "default-allow-internal",
        "allowed": [{"IPProtocol": "tcp", "ports": ["0-65535"]}, {"IPProtocol": "udp", "ports": ["0-65535"]}],
        "sourceRanges": ["10.128.0.0/9"],
    },
    {"name": "default-allow-rdp", "allowed": [{"IPProtocol": "tcp", "ports": ["3389"]}], "sourceRanges": ["0.0.0.0/0"]},
    {"name": "default-allow-ssh", "allowed": [{"IPProtocol": "tcp", "ports": ["22"]}], "sourceRanges": ["0.0.0.0/0"]},
)
_ADDRESSES = 8  # what small projects have
_HYPERDISK_GB = 10_000  # UNVERIFIED


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioProject:
    """The project around the TPUs: the scenario's key `project`. Without it everything exists and is allowed.

    project:
      apis_off: [secretmanager.googleapis.com]        # Service Usage says that they are off; calls to them are refused
      denied_permissions: [tpu.nodes.create]          # what the caller lacks
      denied_machine_permissions: [tpu.nodes.delete]  # what the machines' own service account lacks
      service_accounts: [vllm@p.iam.gserviceaccount.com]      # only these exist
      secret_readers: [vllm@p.iam.gserviceaccount.com]        # only these may read secrets
      networks: {default: {us-east5: {private_access: false, nat: false}}}    # where each has a subnetwork
      firewalls: [{name: allow-vllm, ...}]            # as Compute Engine lists them, instead of the default network's
      addresses: {us-east5: 0}                        # the quota IN_USE_ADDRESSES, by region; "*" is any
      hyperdisk_gb: {us-east5: 100}                   # the quota HDB_TOTAL_GB, likewise
      images: ["vllm/vllm-tpu:v0.32.0"]               # only these are in a registry
      labels: {"vllm/vllm-tpu:nightly": {org.opencontainers.image.version: 0.31.0}}  # of images; others have none
      models: [google/gemma-4-E2B-it]                 # only these are on the hub
      checkpoints: {a/b: {config: {...}, tensors: {BF16: 8000000000}}}    # what the hub says of a model
      pushes: {"vllm/vllm-tpu:nightly": 86400}        # seconds after which the tag, or the model, is pushed again
      prices: {us-east5: {spot: 2.5}}                 # USD per chip-hour in the billing catalogue
      quota_metrics: {preemptible: tpu-v6e-spot}      # another spelling of the metric of v6e chips
      v5e_quota: training                             # the pool that limits v5e slices; by default that of serving
      flex_start_zones: {v5e: [us-south1-a]}          # where a generation has flex-start, not by the catalogue
    """

    apis_off: Sequence[str] = ()
    denied_permissions: Sequence[str] = ()
    denied_machine_permissions: Sequence[str] = ()
    service_accounts: Sequence[str] | None = None
    secret_readers: Sequence[str] | None = None
    networks: Mapping[str, Mapping[str, Mapping[str, bool]]] | None = None
    firewalls: Sequence[Mapping[str, Any]] = _DEFAULT_RULES
    addresses: Mapping[str, int] = field(default_factory=dict)
    hyperdisk_gb: Mapping[str, int] = field(default_factory=dict)
    images: Sequence[str] | None = None
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    models: Sequence[str] | None = None
    checkpoints: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pushes: Mapping[str, float] = field(default_factory=dict)
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    quota_metrics: Mapping[str, str] = field(default_factory=dict)
    v5e_quota: Literal["serving", "training"] = "serving"
    flex_start_zones: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def address_limit(self, region: str) -> int:
        return self.addresses.get(region, self.addresses.get("*", _ADDRESSES))

    def hyperdisk_limit(self, region: str) -> int:
        return self.hyperdisk_gb.get(region, self.hyperdisk_gb.get("*", _HYPERDISK_GB))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioQuota:
    """A quota: `place` is a zone or a region, "*" any; `api` is tpu or compute."""

    class_: str
    zonal: bool
    place: str
    chips: int
    api: str = "tpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeEngineFacts:
    """What is not verified about Compute Engine: a test can play either truth. Each fact has a key with its default:

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    seed: int = 0
    jitter: float = 0.0
    simulated: bool = False
    timings: Timings = field(default_factory=Timings)
    boot: Behaviour = field(default_factory=Behaviour)
    quota: tuple[ScenarioQuota, ...] = ()
    creates_per_minute: int | None = None
    page_most: int = 1000
    offers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    secrets: Mapping[str, str] | None = None
    denied_secrets: tuple[str, ...] = ()
    buckets: tuple[str, ...] | None = None
    versioned_buckets: tuple[str, ...] = ()
    project: ScenarioProject = field(default_factory=ScenarioProject)
    compute_engine: ComputeEngineFacts = field(default_factory=ComputeEngineFacts)
    keeps_operations: float = 14 * 86400.0  # seconds
    billed_from: Literal["created", "ready"] = "created"  # of a machine; which of the two is not verified
    trouble: tuple[Trouble, ...] = ()
    engine: tuple[str, ...] = ()  # no key of a file: a scenario names no program to run

    def draw(self, *what: object) -> float:
        """Return a number in [0, 1) that depends on the seed and on `what` alone, not on the order of draws."""
        return draw(self.seed, *what)

    def jitter_of(self, *what: object) -> Jitter:
        """Return how the durations of `what` vary."""
        return Jitter(share=self.jitter, source=(self.seed, *what))
