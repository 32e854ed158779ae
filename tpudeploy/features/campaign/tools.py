"""The tools of agents that propose a campaign and run it.

An agent writes the grid and its profile, so both are untrusted here, and have to be inside the project.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import Elicit, ElicitationResult, Resolve
from pydantic import Field

from tpudeploy.cli.documents import Document
from tpudeploy.config.trust import TRUSTED
from tpudeploy.domain.errors import Unapproved, UsageError
from tpudeploy.domain.events import Event
from tpudeploy.features.accuracy.questions import ARITHMETIC
from tpudeploy.features.agents import answers
from tpudeploy.features.agents.consent import (
    Consent,
    check_ceiling,
    consent_to_spend,
    needs_yes_to_spend,
    require_yes_to_spend,
)
from tpudeploy.features.agents.operation import EmitEvent, OperationOutcome, Stops
from tpudeploy.features.agents.operation_tool import Response, ToolCall
from tpudeploy.features.agents.project import Project
from tpudeploy.features.agents.session import Call, session
from tpudeploy.features.campaign.grid import CampaignGrid
from tpudeploy.features.campaign.live import event_line
from tpudeploy.features.campaign.operation import CampaignProposal, CampaignResult
from tpudeploy.features.campaign.progress import Board, CampaignEvent
from tpudeploy.features.campaign.service import CampaignListener, Campaigns
from tpudeploy.loading import Profile
from tpudeploy.operations.declaration import Operation
from tpudeploy.views import jsonl


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedCampaign:
    """A campaign that was proposed."""

    id: str
    proposal: CampaignProposal
    load: Callable[[Path], Profile]


def _keep_campaign(call: ToolCall) -> Document:
    """Return the proposal of a campaign, which this server keeps under an id of its own."""
    project = call.session.project
    file, folder = project.file(call.values["grid"]), project.context.folder
    if replace(project.context, trust=TRUSTED).is_untrusted(folder / file):
        raise UsageError("A campaign of an untrusted project is refused.", hint="Its settings say `untrusted = true`.")
    campaigns = Campaigns(call.opened.workspace)
    grid = campaigns.grid(file, folder, project.context.trust)
    _check_grid(grid, project)
    check_ceiling(grid.spec.budget or 0.0, call.session)
    load = partial(Profile.load, untrusted=True, allow_env=project.context.trust.allowed, folder=folder)
    plan = campaigns.propose(grid, folder, retry=call.values["retry"], load=load)
    stored = call.session.store(ProposedCampaign).keep(
        lambda number: ProposedCampaign(id=f"campaign-{number}", proposal=CampaignProposal(plan=plan), load=load)
    )
    asks = needs_yes_to_spend(call.session, ends=False)
    document = stored.proposal
    return {**document.to_dict(), "proposal_id": stored.id, "needs_consent": asks, "text": str(document)}


def _check_grid(grid: CampaignGrid, project: Project) -> None:
    """Raise `errors.UsageError` for a grid that would reach out of the project, or has no budget."""
    base = Path(grid.file).parent / grid.spec.base
    project.file(str(base))
    if grid.spec.budget is None:
        raise UsageError(f"`{grid.file}` has no budget.", hint="Add one: `budget: 20`, in USD.")
    if grid.spec.accuracy not in {None, ARITHMETIC}:
        raise UsageError(
            f"Questions for an agent are `{ARITHMETIC}`.",
            hint="A person can name a file or a task: `tpudeploy campaign`.",
        )


def consent_to_campaign(proposal_id: str, ctx: Call) -> Consent | Elicit[Consent]:
    stored = session(ctx).store(ProposedCampaign).get(proposal_id)
    if stored is None:
        return Consent(approve=False)
    return consent_to_spend(f"tpudeploy: carry out {stored.id}?\n{stored.proposal}", ctx, ends=False)


CampaignId = Annotated[str, Field(min_length=1, description="the proposal_id that campaign_propose returned")]
CampaignApproval = Annotated[ElicitationResult[Consent], Resolve(consent_to_campaign)]


def campaign(ctx: Call, proposal_id: CampaignId, approval: CampaignApproval) -> Document:
    """Run a campaign in the background, which may take hours: poll the operation. It deletes its slices at the end.

    A person has to approve, unless the server has a ceiling. Cancelled, its slices run until their ends; proposed and
    run again, it continues and measures nothing twice.
    """
    agents = session(ctx)
    stored = agents.store(ProposedCampaign).get(proposal_id)
    if stored is None:
        raise Unapproved(
            f"There is no proposed campaign `{proposal_id}`. Nothing was done.",
            hint="Propose one with `campaign_propose`, and pass its proposal_id, valid until this server ends.",
        )
    require_yes_to_spend(stored.id, approval, ctx, ends=False)
    plan, clock, stops = stored.proposal.plan, agents.project.clock(), Stops()
    names = frozenset(lane.name for lane in plan.lanes)

    def work(tell: EmitEvent) -> OperationOutcome:
        with agents.project.workspace([plan.grid.file], backend="", clock=clock) as workspace:
            stops.add(workspace.adapters.stop)
            campaigns = Campaigns(workspace)
            record = campaigns.run(
                plan,
                agents.project.context.folder,
                listener=_listener(tell),
                outer=agents.ceiling(names),
            )
            measured, place = campaigns.measured(record.name), campaigns.records.place(record.name)
            return OperationOutcome(document=CampaignResult(record=record, measured=measured, place=place).to_dict())

    about = {"does": "campaign", "name": plan.grid.spec.name, "proposal_id": stored.id}
    return agents.operations.begin(work, about=about, names=names, stop=stops.stop).document()


def _listener(tell: EmitEvent) -> CampaignListener:
    def event(event_: Event) -> None:
        tell(json.loads(jsonl.line(event_)))

    def progress(event_: CampaignEvent, board: Board) -> None:
        del board
        tell(dict(event_line(event_)))

    return CampaignListener(on_event=event, on_progress=progress)


ROWS: tuple[Operation, ...] = ()  # the library has all of them
RESPONSES: dict[str, Response] = {"campaign_propose": _keep_campaign}
ANSWERS: dict[str, type[answers.ToolDocument]] = {"campaign_propose": answers.CampaignProposalDocument}
WRITING = (campaign,)
RESOURCES = ()  # the result of a campaign is a tool
