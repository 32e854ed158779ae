"""A person's yes to what ends or restarts anything: asked by the client, out of the model's reach."""

from __future__ import annotations

from mcp.server.mcpserver import AcceptedElicitation, Elicit, ElicitationResult
from pydantic import BaseModel, Field

from tpudeploy.cli.mcp.plans import Kept
from tpudeploy.cli.mcp.session import Asked, session
from tpudeploy.domain.errors import NotApproved
from tpudeploy.domain.plan import Action, Change
from tpudeploy.views.ab import proposal
from tpudeploy.views.paint import Paint

_DOES = {Action.DESTROY: "destroys", Action.REPLACE: "replaces", Action.RESTART: "restarts"}


class Consent(BaseModel):
    """What a client asks a person for. No argument of a tool: a model can neither see it nor give it."""

    approve: bool = Field(description="Do it. There is no undo.")


class ConsentToRestart(Consent):
    """The same where a running node is to take a change over, which it may not hear of."""

    reset: bool = Field(
        default=False,
        description="Reboot a machine that has not taken the change over after three minutes. The chips stay.",
    )


def consent(plan_id: str, ctx: Asked) -> Consent | Elicit[Consent]:
    """The question, where a plan needs one that can be asked. Without an answer there is no consent."""
    kept = session(ctx).plans.get(plan_id)
    if kept is None or not kept.ends or not _can_ask(ctx):
        return Consent(approve=False)
    restarts = any(change.action is Action.RESTART for change in kept.ends)
    asked: type[Consent] = ConsentToRestart if restarts else Consent
    return Elicit(_question(kept), asked)


def consent_to_trial(ab_id: str, ctx: Asked) -> Consent | Elicit[Consent]:
    """The same of an A/B, which always restarts what serves."""
    trial = session(ctx).trials.get(ab_id)
    if trial is None or not _can_ask(ctx):
        return Consent(approve=False)
    text = proposal(trial.proposal, Paint())
    asked: type[Consent] = ConsentToRestart
    return Elicit(f"tpudeploy: carry out {trial.id}?\n{text}", asked)


def require(kept: Kept, given: ElicitationResult[Consent], ctx: Asked) -> None:
    """Raise `errors.NotApproved` where a plan needs a yes, and there is none."""
    if kept.ends:
        require_yes(kept.id, given, ctx)


def require_yes(id_: str, given: ElicitationResult[Consent], ctx: Asked) -> None:
    """Raise `errors.NotApproved` where there is none."""
    if isinstance(given, AcceptedElicitation) and given.data.approve:
        return
    if not _can_ask(ctx):
        raise NotApproved(
            f"{id_} ends or restarts what runs, and this client cannot ask a person. Nothing was done.",
            hint="Use a client with elicitation, or run the command `tpudeploy` of the same name at a terminal.",
        )
    raise NotApproved("The person who was asked did not say yes. Nothing was done.")


def may_reset(given: ElicitationResult[Consent]) -> bool:
    """Whether the person said so, beside their yes."""
    return isinstance(given, AcceptedElicitation) and isinstance(given.data, ConsentToRestart) and given.data.reset


def _question(kept: Kept) -> str:
    """The same for one plan however often it is made: the answer counts for these very words."""
    return "\n".join([f"tpudeploy: carry out {kept.id}?", *map(_line, kept.ends), "There is no undo."])


def _line(change: Change) -> str:
    where = ", ".join(word for word in (change.slice_name, change.zone) if word)
    return f"- {_DOES.get(change.action, change.action)} {change.address}{f' ({where})' if where else ''}"


def _can_ask(ctx: Asked) -> bool:
    """By a form, as the SDK asks: a client that says nothing of forms has them, unless it says it has URLs alone."""
    known = ctx.client_capabilities
    asks = known.elicitation if known is not None else None
    return asks is not None and (asks.form is not None or asks.url is None)
