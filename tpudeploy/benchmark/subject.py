"""What is measured, written down: from a deployment with its state, or from an address and what a person says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields

from tpudeploy import catalog
from tpudeploy.benchmark.roofline import Roofline
from tpudeploy.catalog import families
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.benchmark import Subject
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.model import NotCovered
from tpudeploy.domain.state import Attempt, State
from tpudeploy.node.fingerprint import fingerprint, server_print
from tpudeploy.node.serving import served_model
from tpudeploy.pins.pins import COMMIT, DIGEST
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.wanted import wanted


@frozen
class Target:
    """What can be measured: the subject, and what is known of it that tells possible figures from impossible ones.

    `is_emulated` as in `Subject`, by the server's own word: an address does not show whose it is.
    """

    subject: Subject
    budget: HbmBudget | Unsized | None = None
    roofline: Roofline | None = None
    api_key: str | None = field(default=None, repr=False)
    is_emulated: bool = False


# What a person may have changed of the price, or a restarted engine of its cache, makes no other subject.
_MAY_CHANGE = {"engine", "usd_per_hour"}


def differences(one: Subject, other: Subject) -> tuple[str, ...]:
    """The fields in which two subjects are not the same thing to measure."""
    names = (f.name for f in fields(one) if f.name not in _MAY_CHANGE)
    return tuple(name for name in names if getattr(one, name) != getattr(other, name))


def serving_attempt(state: State | None) -> Attempt | None:
    """The slice that clients are sent to; in states that do not say which, the first that has served."""
    if state is None:
        return None
    served = [a for a in state.attempts if a.granted_at is not None and a.releasing_at is None and a.served]
    published = (a for a in served if a.name == state.published)
    return next(published, served[0] if served else None)


def runs_as_declared(deployment: Deployment, attempt: Attempt) -> bool:
    """Whether the slice's server is the one that the profile says now."""
    return attempt.booted == server_print(wanted(deployment, attempt))


def of_deployment(deployment: Deployment, attempt: Attempt | None, url: str, engine: Mapping[str, str]) -> Subject:
    """`engine` is what it says of itself. Without an attempt, nobody knows where it runs and what it costs."""
    written = deployment.attributes
    image, _, digest = str(written["serving.image"]).partition("@")
    return Subject(
        model=served_model(deployment),
        url=url,
        deployment=deployment.name,
        profile_fingerprint=fingerprint(deployment),
        spec_fingerprint="" if attempt is None else attempt.booted,
        model_id=deployment.model_id,
        model_revision=str(written.get(COMMIT) or written.get("model.revision") or ""),
        image=image,
        image_digest=str(written.get(DIGEST) or digest),
        engine=engine,
        accelerator_type=deployment.accelerator.name,
        chips=deployment.accelerator.chips,
        zone="" if attempt is None else str(attempt.zone),
        provisioning="" if attempt is None else str(attempt.provisioning),
        usd_per_hour=None if attempt is None else prices.usd_per_hour(attempt),
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
    """`root` is the model behind the served name, where the server tells it."""
    return Subject(
        model=model,
        url=url,
        model_id=model if families.find_model(model) is not None else root or model,
        engine=engine,
        accelerator_type="" if kind is None else kind.name,
        chips=None if kind is None else kind.chips,
        usd_per_hour=usd_per_hour,
    )


def roofline(of: Subject, deployment: Deployment | None) -> Roofline | None:
    """None where the model or the chips are not known. Of an address, bfloat16 on all chips together is assumed."""
    kind = catalog.accelerator_type(of.accelerator_type)
    if kind is None:
        return None
    if deployment is not None:
        budget = deployment.budget
        if not isinstance(budget, HbmBudget):
            return None
        engine = budget.engine
        return Roofline(
            model=budget.model,
            accelerator=kind,
            chips=engine.tensor_parallel,
            ranks=engine.data_parallel,
            dtype=engine.dtype,
        )
    try:
        model = families.find_model(of.model_id)
    except NotCovered:
        return None
    return None if model is None else Roofline(model=model, accelerator=kind, chips=kind.chips)
