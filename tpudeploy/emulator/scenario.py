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
    project: {apis_off: [secretmanager.googleapis.com]}     # what surrounds the TPUs: ProjectFacts
    compute_engine: {shows_pending: false}      # what is unverified about instances: ComputeEngineFacts
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

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from inspect import signature
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from tpudeploy.domain.errors import ScenarioInvalid
from tpudeploy.emulator import habits
from tpudeploy.emulator.machine.facts import Behaviour
from tpudeploy.emulator.timings import Jitter, Timings, draw
from tpudeploy.emulator.trouble import Trouble, suggest

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
class ProjectFacts:
    """The project around the TPUs: the scenario's key `project`. Without it everything exists and is allowed.

    project:
      apis_off: [secretmanager.googleapis.com]        # Service Usage says that they are off; calls to them are refused
      denied_permissions: [tpu.nodes.create]          # what the caller lacks
      service_accounts: [vllm@p.iam.gserviceaccount.com]      # only these exist
      secret_readers: [vllm@p.iam.gserviceaccount.com]        # only these may read secrets
      networks: {default: {us-east5: {private_access: false, nat: false}}}    # where each has a subnetwork
      firewalls: [{name: allow-vllm, ...}]            # as Compute Engine lists them, instead of the default network's
      addresses: {us-east5: 0}                        # the quota IN_USE_ADDRESSES, by region; "*" is any
      hyperdisk_gb: {us-east5: 100}                   # the quota HDB_TOTAL_GB, likewise
      images: ["vllm/vllm-tpu:v0.32.0"]               # only these are in a registry
      models: [google/gemma-4-E2B-it]                 # only these are on the hub
      pushes: {"vllm/vllm-tpu:nightly": 86400}        # seconds after which the tag, or the model, is pushed again
      prices: {us-east5: {spot: 2.5}}                 # USD per chip-hour in the billing catalogue
      quota_metrics: {preemptible: tpu-v6e-spot}      # another spelling of the metric of v6e chips
      v5e_quota: training                             # the pool that limits v5e slices; by default that of serving
    """

    apis_off: Sequence[str] = ()
    denied_permissions: Sequence[str] = ()
    service_accounts: Sequence[str] | None = None
    secret_readers: Sequence[str] | None = None
    networks: Mapping[str, Mapping[str, Mapping[str, bool]]] | None = None
    firewalls: Sequence[Mapping[str, Any]] = _DEFAULT_RULES
    addresses: Mapping[str, int] = field(default_factory=dict)
    hyperdisk_gb: Mapping[str, int] = field(default_factory=dict)
    images: Sequence[str] | None = None
    models: Sequence[str] | None = None
    pushes: Mapping[str, float] = field(default_factory=dict)
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    quota_metrics: Mapping[str, str] = field(default_factory=dict)
    v5e_quota: Literal["serving", "training"] = "serving"

    def address_limit(self, region: str) -> int:
        return self.addresses.get(region, self.addresses.get("*", _ADDRESSES))

    def hyperdisk_limit(self, region: str) -> int:
        return self.hyperdisk_gb.get(region, self.hyperdisk_gb.get("*", _HYPERDISK_GB))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
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
    quota: tuple[Limit, ...] = ()
    creates_per_minute: int | None = None
    page_most: int = 1000
    offers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    secrets: Mapping[str, str] | None = None
    denied_secrets: tuple[str, ...] = ()
    buckets: tuple[str, ...] | None = None
    versioned_buckets: tuple[str, ...] = ()
    project: ProjectFacts = field(default_factory=ProjectFacts)
    compute_engine: ComputeEngineFacts = field(default_factory=ComputeEngineFacts)
    trouble: tuple[Trouble, ...] = ()
    engine: tuple[str, ...] = ()  # no key of a file: a scenario names no program to run

    def draw(self, *what: object) -> float:
        """Return a number in [0, 1) that depends on the seed and on `what` alone, not on the order of draws."""
        return draw(self.seed, *what)

    def jitter_of(self, *what: object) -> Jitter:
        """Return how the durations of `what` vary."""
        return Jitter(share=self.jitter, source=(self.seed, *what))

    @classmethod
    def load(cls, source: Mapping[str, Any] | Path | str | None, *, timings: Timings) -> Self:
        """Raise ScenarioInvalid; `timings` are those that the scenario does not name."""
        tree = dict(source) if isinstance(source, Mapping) else _read(source)
        try:
            return cls(**_settings(tree, timings))
        except (TypeError, ValueError, KeyError, AttributeError) as cause:
            raise ScenarioInvalid(
                f"The scenario cannot be played: {cause}", hint="its format stands in tpudeploy/emulator/scenario.py"
            ) from cause


def _read(source: Path | str | None) -> dict[str, Any]:
    if source is None:
        return {}
    import yaml

    path = Path(source)
    if path.exists() and not path.is_file():  # a FIFO or a device may never end
        raise ScenarioInvalid(f"The scenario `{path}` is not a regular file")
    try:
        text = path.read_text("utf-8")
        parsed = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text) or {}
    except (OSError, ValueError, yaml.YAMLError) as cause:
        reason = getattr(cause, "strerror", None) or cause  # without the number and the path of an OSError
        raise ScenarioInvalid(f"The scenario `{path}` cannot be read: {reason}") from cause
    if not isinstance(parsed, dict):
        raise ScenarioInvalid(f"The scenario `{path}` is not a mapping of settings")
    return parsed


def _settings(tree: dict[str, Any], timings: Timings) -> dict[str, Any]:
    nodes = tree.pop("nodes", "real")
    if nodes not in ("real", "simulated"):
        raise ValueError(f"`nodes` is real or simulated, not {nodes!r}")
    settings: dict[str, Any] = {"simulated": nodes == "simulated"}
    for key, value in tree.items():
        if key not in _READERS:
            raise ValueError(f"unknown key `{key}`{suggest(key, (*_READERS, 'nodes'))}")
        settings[key] = _READERS[key](value)
    changes = {key: float(value) for key, value in tree.get("timings", {}).items()}
    settings["timings"] = replace(timings, **changes)
    settings["trouble"] = settings.get("trouble", ()) + settings.pop("habits", ())
    boot = tree.get("boot", {})
    own_load = {"load": dict(boot["load"])} if isinstance(boot.get("load"), Mapping) else {}
    settings["boot"] = Behaviour(**{"boot_seconds": settings["timings"].boot, **boot, **own_load})
    return settings


T = TypeVar("T")


def _parse(kind: Callable[..., T], key: str, settings: Mapping[str, Any]) -> T:
    """Return the facts of one key. Raise ValueError for an unknown name among them."""
    names = list(signature(kind).parameters)
    for name in settings:
        if name not in names:
            raise ValueError(f"`{key}` takes no `{name}`{suggest(name, names)}")
    return kind(**settings)


def _limit(row: Mapping[str, Any]) -> Limit:
    zonal, api = "zone" in row, row.get("api", "tpu")
    keys = {"class", "zone" if zonal else "region", "limit"}
    if set(row) - {"api"} != keys or row["class"] not in CLASSES or (api != "tpu" and (zonal or api != "compute")):
        raise ValueError(f"a quota row is {{class: {'|'.join(CLASSES)}, zone or region: …, limit: …}}, not {dict(row)}")
    place = row["zone" if zonal else "region"]
    return Limit(class_=row["class"], zonal=zonal, place=place, chips=int(row["limit"]), api=api)


def _trouble(row: Mapping[str, Any]) -> Trouble:
    """Return a row of trouble. Raise ValueError where it could never strike, because no method has its name."""
    trouble = Trouble.parse(row)
    from tpudeploy.emulator.service import method_names  # everything else of the emulator is above its scenario

    names = method_names()
    for pattern in trouble.patterns["method"].split("|"):
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ValueError(f"no method fits `{pattern}`{suggest(pattern, names)}")
    return trouble


CLASSES = ("preemptible", "on-demand")
_READERS: Mapping[str, Any] = {
    "seed": int,
    "jitter": float,
    "timings": dict,
    "boot": dict,
    "quota": lambda rows: tuple(_limit(row) for row in rows),
    "creates_per_minute": int,
    "page_most": int,
    "offers": lambda zones: {zone: tuple(types) for zone, types in zones.items()},
    "secrets": dict,
    "denied_secrets": tuple,
    "buckets": tuple,
    "versioned_buckets": tuple,
    "project": lambda settings: _parse(ProjectFacts, "project", settings),
    "compute_engine": lambda settings: _parse(ComputeEngineFacts, "compute_engine", settings),
    "habits": lambda rows: tuple(Trouble.parse(row) for habit in rows for row in habits.troubles(habit)),
    "trouble": lambda rows: tuple(_trouble(row) for row in rows),
}
