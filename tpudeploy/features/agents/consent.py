"""Ask a person to approve what ends, restarts or spends more, through the client and out of the model's reach."""

from __future__ import annotations

from collections.abc import Mapping

from mcp.server.mcpserver import AcceptedElicitation, Elicit, ElicitationResult
from pydantic import BaseModel, Field

from tpudeploy.domain.deployment import Json
from tpudeploy.domain.errors import NotApproved, UsageError
from tpudeploy.domain.excerpt import plain
from tpudeploy.domain.plan import Action
from tpudeploy.features.agents.plans import StoredPlan
from tpudeploy.features.agents.session import AgentSession, Call, session
from tpudeploy.planning.effects import ChangeEffects
from tpudeploy.text import words
from tpudeploy.views.plan import costs

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
    restarts = any(change.action is Action.RESTART for change in plan.plan.changes)
    form: type[Consent] = ConsentToRestart if restarts else Consent
    return Elicit(plain(_question(plan)), form)


def needs_yes(plan: StoredPlan, agents: AgentSession) -> bool:
    """Return whether a person has to approve: what ends or restarts a server, and what the ceiling does not cover.

    The ceiling itself refuses a purchase beyond it, also one that becomes too expensive later.
    """
    return plan.interrupts or (plan.buys and agents.max_cost is None) or (plan.loosens and not agents.covers(plan))


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
    if plan.interrupts:
        require_yes(f"{plan.id} ends or restarts a server", answer, ctx)
    elif needs_yes(plan, session(ctx)):
        deed = "buys a slice" if plan.buys else "lets a deployment cost more"
        require_yes(f"{plan.id} {deed}", answer, ctx, otherwise=_CEILING)


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
    """Return the question, which is the same each time for one plan, because the answer applies to this text.

    Its figures are those of the plan's text.
    """
    lines = (line for each in plan.effects for line in _lines(each))
    total = f"{words.billed_at_once(plan.plan.ceiling)}, at list price."
    totals = [total] if any(each.spends_more for each in plan.effects) else []
    return "\n".join([f"tpudeploy: carry out {plan.id}?", *lines, *totals, "There is no undo."])


def _lines(effects: ChangeEffects) -> list[str]:
    change = effects.change
    where = ", ".join(word for word in (change.slice_name, change.zone) if word)
    place = f" ({where})" if where else ""
    if effects.interrupts:
        deed = f"{_VERBS.get(change.action, change.action)} {change.address}{place}"
    elif effects.buys:
        deed = f"buys a slice for {change.address}"
    else:
        deed = f"lets {change.address}{place} cost more"
    values = (f"{path} = {_value(change.before, path)} -> {_value(change.after, path)}" for path in effects.loosens)
    return [f"- {deed}", *(f"  {line}" for line in (*values, *costs(effects)) if effects.spends_more)]


def _value(attributes: Mapping[str, Json], path: str) -> str:
    return words.value(attributes[path]) if path in attributes else "none"


def can_ask(ctx: Call) -> bool:
    """Return whether the client supports forms. One that names neither forms nor URLs supports forms."""
    capabilities = ctx.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)
