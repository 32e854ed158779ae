"""What surrounds the TPUs of a project: the scenario's key `project`. Without it everything is there and allowed.

project:
  apis_off: [secretmanager.googleapis.com]        # switched off: Service Usage says so, and their calls are refused
  denied_permissions: [tpu.nodes.create]          # what the caller lacks
  service_accounts: [vllm@p.iam.gserviceaccount.com]      # only these exist
  secret_readers: [vllm@p.iam.gserviceaccount.com]        # only these may read secrets
  networks: {default: {us-east5: {private_access: false, nat: false}}}    # where each has a subnetwork
  firewalls: [{name: allow-vllm, ...}]            # as Compute Engine lists them, instead of the default network's
  addresses: {us-east5: 0}                        # the quota IN_USE_ADDRESSES, by region; "*" is any
  images: ["vllm/vllm-tpu:v0.32.0"]               # only these are in a registry
  models: [google/gemma-4-E2B-it]                 # only these are on the hub
  pushes: {"vllm/vllm-tpu:nightly": 86400}        # every so many seconds the tag, or the model, is something newer
  prices: {us-east5: {spot: 2.5}}                 # USD per chip-hour in the billing catalogue, by provisioning model
  quota_metrics: {preemptible: tpu-v6e-spot}      # another spelling of the metric of v6e chips
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any, Self

# The default network, as Google makes it: nobody comes in but by ssh, RDP and ping.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """None: whatever is asked for exists."""

    apis_off: Sequence[str] = ()
    denied_permissions: Sequence[str] = ()
    service_accounts: Sequence[str] | None = None
    secret_readers: Sequence[str] | None = None
    networks: Mapping[str, Mapping[str, Mapping[str, bool]]] | None = None
    firewalls: Sequence[Mapping[str, Any]] = _DEFAULT_RULES
    addresses: Mapping[str, int] = field(default_factory=dict)
    images: Sequence[str] | None = None
    models: Sequence[str] | None = None
    pushes: Mapping[str, float] = field(default_factory=dict)
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    quota_metrics: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, written: Mapping[str, Any]) -> Self:
        """Raise ValueError for an unknown key."""
        known = [f.name for f in fields(cls)]
        for key in written:
            if key not in known:
                close = get_close_matches(key, known, n=1)
                raise ValueError(f"`project` takes no `{key}`" + (f"; did you mean `{close[0]}`?" if close else ""))
        return cls(**written)

    def address_limit(self, region: str) -> int:
        return self.addresses.get(region, self.addresses.get("*", _ADDRESSES))
