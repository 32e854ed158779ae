"""Through which doors the endpoint will be looked at: what must be open for that."""

from __future__ import annotations

from ipaddress import ip_network

from tpudeploy.catalog.access import IAP_RANGE
from tpudeploy.domain.deployment import Deployment, Via
from tpudeploy.domain.surroundings import Firewall

_SSH = 22
_EVERYWHERE = {"0.0.0.0/0", "::/0"}
_INSIDE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")  # RFC 1918 and 4193
_TCP = {"tcp", "6", "all"}


def has_public(of: Deployment) -> bool:
    """Whether its address is knocked at from outside."""
    return of.network.external_ip and of.health.via in {Via.AUTO, Via.EXTERNAL}


def has_tunnel(of: Deployment) -> bool:
    """Whether a tunnel through IAP is how a person reaches it."""
    return of.health.via is Via.IAP or (of.health.via is Via.AUTO and not of.network.external_ip)


def wanted(of: Deployment) -> tuple[int, str] | None:
    """The port that must be open, and the range that must get through, "" for any; None where no door needs one."""
    if has_public(of):
        return of.container.port, ""
    return (_SSH, IAP_RANGE) if has_tunnel(of) else None


def openers(rules: tuple[Firewall, ...], of: Deployment, email: str) -> tuple[Firewall, ...]:
    """The rules that open its door: about this machine, and overruled by none that denies."""
    door = wanted(of)
    if door is None:
        return ()
    port, source = door
    about = [r for r in rules if _is_about(r, of, email) and _has_port(r, port)]
    closed = min((r.priority for r in about if not r.allows and set(r.sources) & _EVERYWHERE), default=None)
    heard = (r for r in about if r.allows and (closed is None or r.priority < closed))
    return tuple(r for r in heard if any(_covers(s, source) if source else _is_public(s) for s in r.sources))


def _is_about(rule: Firewall, of: Deployment, email: str) -> bool:
    if not rule.tags and not rule.accounts:
        return True
    return bool(set(rule.tags) & set(of.network.tags)) or email in rule.accounts


def _has_port(rule: Firewall, port: int) -> bool:
    return any(p.protocol in _TCP and any(first <= port <= last for first, last in p.ports) for p in rule.ports)


def _is_public(source: str) -> bool:
    """Whether somebody outside can be in it: the default network lets its own machines reach each other."""
    return not any(_covers(own, str(ip_network(source, strict=False))) for own in _INSIDE)


def _covers(wide: str, narrow: str) -> bool:
    outer, inner = ip_network(wide, strict=False), ip_network(narrow)
    return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]  # of one version, as was just seen
