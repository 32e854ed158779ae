"""Ask a person to approve what ends, restarts or buys anything, through the client and out of the model's reach."""

from __future__ import annotations

from mcp.server.mcpserver import AcceptedElicitation, Elicit, ElicitationResult
from pydantic import BaseModel, Field

from tpudeploy.domain.errors import NotApproved, UsageError
from tpudeploy.domain.excerpt import plain
from tpudeploy.domain.plan import Action, Change
from tpudeploy.features.agents.plans import StoredPlan
from tpudeploy.features.agents.session import AgentSession, Call, session

_CEILING = "or start the server with a ceiling: `tpudeploy mcp -allow-writes -max-cost 5`"
_VERBS = {Action.DESTROY: "destroys", Action.REPLACE: "replaces", Action.RESTART: "restarts"}


class Consent(BaseModel):
    """What a client asks a person for. It is not an argument of a tool, so a model can neither see nor give it."""

    approve: bool = Field(description="Do it. There is no undo.")


class ConsentToRestart(Consent):
    """The same for a change that a running node has to acknowledge, which may fail."""

    reset: bool = Field(
        default=False,
        description="Reboot a machine that has not acknowledged the change after three minutes. The slice is kept.",
    )


def consent(plan_id: str, ctx: Call) -> Consent | Elicit[Consent]:
    """Return the question for a plan that needs approval, if the client can ask it; otherwise no consent."""
    plan = session(ctx).plans.get(plan_id)
    if plan is None or not needs_yes(plan, session(ctx)) or not can_ask(ctx):
        return Consent(approve=False)
    restarts = any(change.action is Action.RESTART for change in plan.ends)
    form: type[Consent] = ConsentToRestart if restarts else Consent
    return Elicit(plain(_question(plan)), form)


def needs_yes(plan: StoredPlan, agents: AgentSession) -> bool:
    """Return whether a person has to approve: what ends or restarts a server, and a purchase without a ceiling."""
    return bool(plan.ends) or (bool(plan.buys) and agents.max_cost is None)


def consent_to_spend(question: str, ctx: Call, *, ends: bool) -> Consent | Elicit[Consent]:
    """Return the question for a run that requests slices, or with `ends` restarts a server, if one is due."""
    if not needs_yes_to_spend(session(ctx), ends=ends) or not can_ask(ctx):
        return Consent(approve=False)
    form: type[Consent] = ConsentToRestart if ends else Consent
    return Elicit(plain(question), form)


def needs_yes_to_spend(agents: AgentSession, *, ends: bool) -> bool:
    """Return whether a person has to approve such a run, by the rules of `needs_yes`."""
    return ends or agents.max_cost is None


def require_yes_to_spend(deed: str, answer: ElicitationResult[Consent], ctx: Call, *, ends: bool) -> None:
    """Raise `errors.NotApproved` if such a run needs approval and did not get it."""
    if ends:
        require_yes(f"{deed} ends or restarts a server", answer, ctx)
    elif needs_yes_to_spend(session(ctx), ends=ends):
        require_yes(f"{deed} buys a slice", answer, ctx, otherwise=_CEILING)


def check_ceiling(usd: float, agents: AgentSession) -> None:
    """Raise `errors.UsageError` for a run that may cost more than the server's ceiling."""
    if agents.max_cost is not None and usd > agents.max_cost:
        raise UsageError(
            f"${usd:.2f} is above the ceiling of this server, ${agents.max_cost:.2f}. Nothing was done.",
            hint="Propose it with less, or let the person start the server with a higher --max-cost.",
        )


def consent_to_report(address: str, ctx: Call) -> Consent | Elicit[Consent]:
    """Return the same for the report of a host, which ends what runs there."""
    if not can_ask(ctx):
        return Consent(approve=False)
    text = f"tpudeploy: report the host of {address} to Google as faulty? Its machine stops, or the slice is deleted."
    return Elicit(plain(f"{text}\nThere is no undo."), Consent)


def require(plan: StoredPlan, answer: ElicitationResult[Consent], ctx: Call) -> None:
    """Raise `errors.NotApproved` if a plan needs approval and did not get it."""
    if plan.ends:
        require_yes(f"{plan.id} ends or restarts a server", answer, ctx)
    elif needs_yes(plan, session(ctx)):
        require_yes(f"{plan.id} buys a slice", answer, ctx, otherwise=_CEILING)


def require_yes(
    deed: str,
    answer: ElicitationResult[Consent],
    ctx: Call,
    *,
    otherwise: str = "or run the command `tpudeploy` of the same name at a terminal",
) -> None:
    """Raise `errors.NotApproved` unless a person approved."""
    if isinstance(answer, AcceptedElicitation) and answer.data.approve:
        return
    if not can_ask(ctx):
        raise NotApproved(
            f"{deed}, and this client cannot ask a person. Nothing was done.",
            hint=f"Use a client with elicitation, {otherwise}.",
        )
    raise NotApproved("The person did not approve. Nothing was done.")


def may_reset(answer: ElicitationResult[Consent]) -> bool:
    """Return whether the person also approved a reset."""
    return isinstance(answer, AcceptedElicitation) and isinstance(answer.data, ConsentToRestart) and answer.data.reset


def _question(plan: StoredPlan) -> str:
    """Return the question, which is the same each time for one plan, because the answer applies to this text."""
    return "\n".join(
        [f"tpudeploy: carry out {plan.id}?", *map(_line, plan.ends), *map(_purchase, plan.buys), "There is no undo."]
    )


def _line(change: Change) -> str:
    where = ", ".join(word for word in (change.slice_name, change.zone) if word)
    return f"- {_VERBS.get(change.action, change.action)} {change.address}{f' ({where})' if where else ''}"


def _purchase(change: Change) -> str:
    price = change.usd_per_hour_after
    cost = "at an unknown price" if price is None else f"for up to ${price:.2f}/h"
    end = change.after.get("lifecycle.end")
    return f"- buys a slice for {change.address} {cost}, {f'until its end ({end})' if end else 'and nothing ends it'}"


def can_ask(ctx: Call) -> bool:
    """Return whether the client supports forms. One that names neither forms nor URLs supports forms."""
    capabilities = ctx.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)
