"""What surrounds a slice in its project: identity, roles, secrets, network, image. Each as it is, or why unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tpudeploy.domain.facts import Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The service account that machines run as. `may_act`: whether we may let them."""

    email: str
    is_disabled: bool
    may_act: bool | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """One secret's version; never its value. `state` is Google's word.

    `readers` are the members that its own policy and the project's let read it, as policies write them.
    """

    state: str
    is_ours_to_read: bool | Unknown
    readers: frozenset[str] | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """`project` is its owner, another one for a shared network; `subnetworks` by region, by name."""

    project: str
    name: str
    subnetworks: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subnetwork:
    """`has_private_access`: machines without an address reach Google's services from it."""

    name: str
    has_private_access: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Ranges of ports, both ends included, of one protocol; `all` is every one."""

    protocol: str
    ports: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Firewall:
    """One enabled rule for what comes in. The smallest `priority` is heard first; of equals, the one that denies.

    `tags` and `accounts` say whom it is about; both empty: every machine of the network.
    """

    name: str
    priority: int
    allows: bool
    ports: tuple[Ports, ...]
    sources: tuple[str, ...]
    tags: tuple[str, ...]
    accounts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A quota of Compute Engine in one region."""

    limit: float
    used: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """Whether a registry has it. `digest` as the registry tells it, or "" ."""

    is_there: bool
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who may do what. None in place of a thing: it does not exist. Secrets are by environment variable."""

    identity: str | Unknown
    apis: Mapping[str, bool] | Unknown
    permissions: frozenset[str] | Unknown
    account: Account | Unknown | None
    secrets: Mapping[str, Secret | Unknown | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """The network, by regions of the candidates. None in place of a thing: it does not exist.

    `has_nat` is looked at where machines have no address, `addresses` where they have; else they are empty, as is what
    belongs to a network that is not known.
    """

    network: Network | Unknown | None
    subnetworks: Mapping[str, Subnetwork | Unknown | None]
    has_nat: Mapping[str, bool | Unknown]
    firewalls: tuple[Firewall, ...] | Unknown
    addresses: Mapping[str, Room | Unknown]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    access: Access
    wiring: Wiring
    image: Image | Unknown
