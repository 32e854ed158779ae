"""Measure a grid of models, slices and settings under one budget, resume it, and write it up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from tpudeploy.domain import exits
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.serialization import to_json
from tpudeploy.features.benchmark.report.article import emulated_note, imported_servers
from tpudeploy.features.benchmark.report.article_page import article_page
from tpudeploy.features.benchmark.report.markdown import article_markdown
from tpudeploy.features.benchmark.store import stored_runs
from tpudeploy.features.campaign.article import article_sections, article_servers, cell_rows, current_board
from tpudeploy.features.campaign.measured import Measured
from tpudeploy.features.campaign.progress import Board, CellProgress
from tpudeploy.features.campaign.proposal import CampaignPlan
from tpudeploy.features.campaign.record import CampaignRecord
from tpudeploy.features.campaign.service import CampaignListener, Campaigns
from tpudeploy.features.campaign.view import proposal
from tpudeploy.features.campaign.view import result as view
from tpudeploy.operations.arguments import Agents, Arg
from tpudeploy.operations.declaration import Access, ApprovalForm, Operation
from tpudeploy.operations.written_files import WrittenFiles, write_files
from tpudeploy.results import Result, document, result
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace


@result
class CampaignProposal(Result):
    """What a campaign will do, after every check that is possible without a request. USD may be unknown."""

    FORMAT = "campaign_proposal"
    plan: CampaignPlan

    def values(self) -> dict[str, Any]:
        plan = self.plan
        return {
            "name": plan.grid.spec.name,
            "cells": plan.cells,
            "cells_done": plan.cells_done,
            "cells_failed": plan.cells_failed,
            "cells_left": plan.cells_left,
            "seconds": plan.seconds,
            "usd_likely": plan.likely_usd,
            "usd_most": plan.most_usd,
            "usd_spent": plan.spent,
            "budget": plan.grid.spec.budget,
            "chips": plan.limits.together,
            "quota": dict(plan.limits.by_generation),
            "lanes": [
                {
                    "deployment": lane.name,
                    "type": lane.type,
                    "chips": lane.chips,
                    "usd_per_hour": lane.usd_per_hour,
                    "seconds_likely": plan.needs[lane.name].likely_seconds,
                    "seconds_most": plan.needs[lane.name].most_seconds,
                    "servers": list(dict.fromkeys(turn.server.label for turn in lane.turns)),
                }
                for lane in plan.busy_lanes
            ],
            "obstacles": [{"server": each.label, "why": each.why} for each in plan.obstacles],
            "diagnostics": to_json(plan.diagnostics),
        }

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        lane = {
            **dict.fromkeys(("deployment", "type"), str),
            "chips": int,
            "usd_per_hour": float | None,
            **dict.fromkeys(("seconds_likely", "seconds_most"), float),
            "servers": tuple[str, ...],
        }
        keys: dict[str, Any] = {
            "name": str,
            **dict.fromkeys(("cells", "cells_done", "cells_failed", "cells_left"), int),
            **dict.fromkeys(("seconds", "usd_spent"), float),
            **dict.fromkeys(("usd_likely", "usd_most", "budget"), float | None),
            "chips": {"type": ["integer", "null"], "description": "that all lanes may have at the same time"},
            "quota": {
                "type": "object",
                "additionalProperties": {"type": "integer"},
                "description": "the chips of each generation that Google's quota has free, where it is the limit",
            },
            "lanes": [lane],
            "obstacles": [dict.fromkeys(("server", "why"), str)],
            "diagnostics": tuple[Diagnostic, ...],
        }
        return document("campaign_proposal", keys, optional=("chips", "quota"))

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return proposal(self.plan, paint, width)


@result
class CampaignResult(Result):
    """The result of a campaign so far: every cell with its figures or why it has none, and what it cost."""

    FORMAT = "campaign"
    record: CampaignRecord
    measured: Measured
    place: str  # of the file that keeps it, or its URL

    @property
    def board(self) -> Board:
        return current_board(self.record, self.measured)

    @property
    def cells_left(self) -> int:
        return self.board.count(CellProgress.WAITING)

    @property
    def exit_code(self) -> int:
        if self.cells_left:
            return exits.CHECK_FAILED
        has_figures = self.board.count(CellProgress.MEASURED, CellProgress.DOUBTED)
        return exits.SUCCESS if has_figures or not self.board.states else exits.ERROR

    def values(self) -> dict[str, Any]:
        record = self.record
        return {
            "name": record.name,
            "began_at": record.began_at,
            "ended_at": record.ended_at,
            "usd": record.usd,
            "budget": record.budget,
            "cells_left": self.cells_left,
            "servers": [
                {
                    "key": server.key,
                    "label": server.label,
                    "model": server.model,
                    "type": server.type,
                    "deployment": server.lane,
                    "values": dict(server.values),
                    "failure": record.failures.get(server.key),
                }
                for server in record.servers
            ],
            "cells": to_json(cell_rows(record, self.measured)),
            "obstacles": dict(record.obstacles),
        }

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        server = {
            **dict.fromkeys(("key", "label", "model", "type", "deployment"), str),
            "values": dict[str, str],
            "failure": str | None,
        }
        cell = {
            **dict.fromkeys(("key", "server", "status", "run"), str),
            **dict.fromkeys(("streams", "context", "output", "repeat"), int),
            **dict.fromkeys(("requests_per_second", "output_tokens_per_second", "ttft_p50", "tpot_p50"), float | None),
        }
        keys: dict[str, Any] = {
            "name": str,
            "began_at": float,
            **dict.fromkeys(("ended_at", "usd", "budget"), float | None),
            "cells_left": int,
            "servers": [server],
            "cells": [cell],
            "obstacles": dict[str, str],
        }
        return document("campaign", keys)

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        runs = (each.run for cells in self.measured.values() for each in cells.values())
        is_emulated = any(run.subject.is_emulated for run in runs)
        return "\n" + view(self.record, self.board, paint, place=self.place, width=width, is_emulated=is_emulated)


def campaign(
    workspace: Workspace,
    proposal: CampaignProposal,
    *,
    folder: str | Path = ".",
    listener: CampaignListener | None = None,
) -> CampaignResult:
    """Run a campaign: request its slices, measure each cell once, and delete the slices. It resumes by itself.

    `proposal` is what `campaign_propose` returned, which shows what this does; a file of questions is in `folder`. A
    server that fails is recorded and stops nothing.

    Raise `errors.Interrupted` after `stop`: the slices then run until their ends, and the same call continues.
    """
    campaigns = Campaigns(workspace)
    record = campaigns.run(proposal.plan, Path(folder), listener=listener)
    return CampaignResult(
        record=record, measured=campaigns.measured(record.name), place=campaigns.records.place(record.name)
    )


def campaign_propose(
    workspace: Workspace,
    grid: Annotated[
        str | Path,
        Arg(
            "The grid to measure: a YAML file.",
            positional=True,
            agents=Agents("a grid's path inside the project; it needs a budget"),
        ),
    ],
    *,
    retry: Annotated[bool, Arg("Try the servers again that failed before.")] = False,
    folder: str | Path = ".",
) -> CampaignProposal:
    """Propose a campaign: its cells, what cannot run and why, the likely and the greatest time and cost.

    Changes nothing. `grid` is a file in `folder`. With `retry`, servers that failed before are tried again.

    Raise `errors.ConfigError` for a grid that cannot be used or whose
    likely cost exceeds its budget, with the line; `errors.UsageError` for a file that cannot be read.
    """
    campaigns = Campaigns(workspace)
    return CampaignProposal(plan=campaigns.propose(campaigns.grid(grid, Path(folder)), Path(folder), retry=retry))


def campaign_result(
    workspace: Workspace,
    name: Annotated[str, Arg(positional=True, agents=Agents("a campaign's name, or a prefix of it"))],
) -> CampaignResult:
    """Show a campaign: the figures of each cell, what failed and why, and what it cost.

    `name` is its name or the beginning of it. Raise `errors.UsageError` for an unknown one, `errors.RunUnreadable`.
    """
    campaigns = Campaigns(workspace)
    record = campaigns.records.find(name)
    return CampaignResult(
        record=record, measured=campaigns.measured(record.name), place=campaigns.records.place(record.name)
    )


def campaign_report(workspace: Workspace, name: str, out: str | Path) -> WrittenFiles:
    """Write the article of a campaign: Markdown for a file that ends in .md, else a page.

    Raise as `campaign_result`, and `errors.UsageError` for a file that cannot be written.
    """
    report, path = campaign_result(workspace, name), Path(out)
    servers = article_servers(report.record, report.measured)
    others = imported_servers(stored_runs(workspace.adapters).all())
    parts = article_sections(report.record, report.measured, others)
    title, note = report.record.name, emulated_note(servers)
    if path.suffix == ".md":
        text = article_markdown(title, note, parts)
    else:
        text = article_page(title, note, parts, servers)
    return write_files({path: text}, here=workspace.adapters.folder)


OPERATIONS: Mapping[str, Operation] = {
    "campaign": Operation(
        run=campaign,
        results=(CampaignResult,),
        access=Access.END,
        title="Run a campaign",
        options=("parallelism", "lock_timeout", "backend", "events"),
        approval=ApprovalForm(
            question="Do you want to run this campaign?",
            otherwise="Review the list, then pass -auto-approve.",
        ),
    ),
    "campaign_propose": Operation(
        run=campaign_propose,
        results=(CampaignProposal,),
        title="Propose a campaign",
        tool="campaign_propose",
    ),
    "campaign_result": Operation(
        run=campaign_result,
        results=(CampaignResult,),
        access=Access.LOOK,
        title="Show a campaign",
        tool="campaign_result",
    ),
    "campaign_report": Operation(
        run=campaign_report,
        results=(WrittenFiles,),
        access=Access.CHANGE,
    ),
}
