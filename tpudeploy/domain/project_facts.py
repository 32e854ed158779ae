"""The project facts around a slice: identity, roles, secrets, network and image, or why they are unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.names import Zone


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The service account that machines run as. `may_be_attached`: whether the caller may attach it to machines."""

    email: str
    is_disabled: bool
    may_be_attached: bool | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """One version of a secret, never its value. `state` is Google's.

    `readers` are the members that can read it by its own policy and by the project's, in the form of policies.
    """

    state: str
    is_ours_to_read: bool | Unknown
    readers: frozenset[str] | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectNetwork:
    """A network. `project` is its owner, another project for a shared network; `subnetworks` are names by region."""

    project: str
    name: str
    subnetworks: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subnetwork:
    """A subnetwork. `has_private_access`: machines without an external address can reach Google's services from it.

    `addresses` is the range of its machines, "" where Google names none.
    """

    name: str
    has_private_access: bool
    addresses: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Inclusive ranges of ports of one protocol; the protocol `all` means every one."""

    protocol: str
    ports: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Firewall:
    """One enabled ingress rule. The smallest `priority` wins; of equals, the one that denies.

    `tags` and `accounts` select its machines; if both are empty, it applies to all machines of the network.
    """

    name: str
    priority: int
    allows: bool
    ports: tuple[Ports, ...]
    sources: tuple[str, ...]
    tags: tuple[str, ...]
    accounts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """A quota of Compute Engine in one region."""

    limit: float
    used: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """Whether a registry has an image. `digest` is from the registry, or ""."""

    exists: bool
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectAccess:
    """Access in the project. None in place of a resource means that it does not exist. Secrets are by variable.

    `permissions_of_members` are those to end a machine, by member as policies write it, for a deployment with an end.
    """

    identity: str | Unknown
    apis: Mapping[str, bool] | Unknown
    permissions: frozenset[str] | Unknown
    account: Account | Unknown | None
    secrets: Mapping[str, Secret | Unknown | None]
    permissions_of_members: Mapping[str, frozenset[str]] | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFacts:
    """The network facts by region of the candidates. None in place of a resource means that it does not exist.

    `has_nat` is read if machines have no external address, `addresses` if they have one; otherwise they are empty, as
    are all facts of an unknown network.
    """

    network: ProjectNetwork | Unknown | None
    subnetworks: Mapping[str, Subnetwork | Unknown | None]
    has_nat: Mapping[str, bool | Unknown]
    firewalls: tuple[Firewall, ...] | Unknown
    addresses: Mapping[str, QuotaUse | Unknown]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFacts:
    """The facts around a slice. `runtimes` are the runtime versions by zone, where the TPU API is asked for it."""

    access: ProjectAccess
    wiring: NetworkFacts
    image: Image | Unknown
    runtimes: Mapping[Zone, frozenset[str] | Unknown]
