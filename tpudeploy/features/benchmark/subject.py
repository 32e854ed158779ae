"""The subject of a run: a deployment with its state, or an address with the user's description of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from tpudeploy.catalog import families
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.state import Attempt
from tpudeploy.features.benchmark.roofline import Roofline
from tpudeploy.features.benchmark.run import Subject
from tpudeploy.node.fingerprint import fingerprint
from tpudeploy.node.serving import served_model
from tpudeploy.pins import COMMIT, DIGEST
from tpudeploy.reconcile import prices

# A changed price, or the cache of a restarted engine, makes no other subject.
_MAY_CHANGE = {"engine", "usd_per_hour"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The subject of a run, and the facts that show which figures are possible.

    `servers` are the replicas behind a router with their URLs, by their addresses; none for a single server.
    `is_emulated` is what the server itself reports: its address does not show it.
    """

    subject: Subject
    servers: Mapping[str, str] = field(default_factory=dict)
    budget: HbmBudget | Unsized | None = None
    roofline: Roofline | None = None
    api_key: str | None = field(default=None, repr=False)
    is_emulated: bool = False


def differences(one: Subject, other: Subject) -> tuple[str, ...]:
    """Return the fields that make two subjects different things to measure."""
    names = (f.name for f in fields(one) if f.name not in _MAY_CHANGE)
    return tuple(name for name in names if getattr(one, name) != getattr(other, name))


def of_deployment(
    deployment: Deployment,
    attempts: Sequence[Attempt],
    url: str,
    engine: Mapping[str, str],
    *,
    replicas: tuple[str, ...] = (),
) -> Subject:
    """Return the subject. `engine` is the engine's report; without attempts, place and price are unknown.

    `replicas` are those that a router at `url` sends requests to, and `attempts` their slices.
    """
    attributes = deployment.attributes
    image, _, digest = str(attributes["serving.image"]).partition("@")
    prices_per_hour = [prices.usd_per_hour(attempt) for attempt in attempts]
    known_prices = [price for price in prices_per_hour if price is not None]
    servers = max(1, len(replicas))
    return Subject(
        model=served_model(deployment),
        url=url,
        deployment=deployment.name,
        profile_fingerprint=fingerprint(deployment),
        spec_fingerprint=attempts[0].boot.server if attempts else "",
        model_id=deployment.model_id,
        model_revision=str(attributes.get(COMMIT) or attributes.get("model.revision") or ""),
        image=image,
        image_digest=str(attributes.get(DIGEST) or digest),
        engine=engine,
        accelerator_type=deployment.accelerator.name,
        chips=deployment.accelerator.chips * servers,
        zone=", ".join(dict.fromkeys(str(attempt.zone) for attempt in attempts)),
        provisioning=", ".join(dict.fromkeys(str(attempt.provisioning) for attempt in attempts)),
        usd_per_hour=sum(known_prices) if len(known_prices) == servers else None,
        replicas=replicas,
    )


def of_address(
    url: str,
    model: str,
    engine: Mapping[str, str],
    *,
    root: str = "",
    kind: AcceleratorType | None = None,
    usd_per_hour: float | None = None,
) -> Subject:
    """Return the subject. `root` is the model behind the served name, if the server reports it."""
    return Subject(
        model=model,
        url=url,
        model_id=model if families.known_model(model) is not None else root or model,
        engine=engine,
        accelerator_type="" if kind is None else kind.name,
        chips=None if kind is None else kind.chips,
        usd_per_hour=usd_per_hour,
    )
