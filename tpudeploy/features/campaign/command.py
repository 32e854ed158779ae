"""Measure a grid of models, slices and settings under one budget: `tpudeploy campaign GRID.yaml`.

A slice is requested once for all models and settings that fit it. The campaign asks once before the first request,
resumes wherever it was stopped, measures no cell twice, and deletes its slices at the end.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tpudeploy.cli import options
from tpudeploy.cli.approval import approve
from tpudeploy.cli.context import Context
from tpudeploy.cli.interrupts import stopping_gracefully
from tpudeploy.cli.operation_command import add_approval, add_options, show
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.excerpt import describe_diagnostics
from tpudeploy.features.campaign.live import CampaignLines, CampaignLive
from tpudeploy.features.campaign.operation import OPERATIONS
from tpudeploy.features.campaign.proposal import CampaignPlan
from tpudeploy.features.campaign.service import CampaignListener
from tpudeploy.workspace import Workspace

_ROW, _PROPOSE = OPERATIONS["campaign"], OPERATIONS["campaign_propose"]
VERBS: Mapping[str, str] = {
    "show": "Show the cells of a campaign, and what it cost.",
    "report": "Write the article of a campaign: Markdown, or a page.",
}
_STOPPED = (
    "Interrupted: the complete measurements are kept, and slices run until their ends. The same command continues; "
    "`tpudeploy destroy NAME` deletes a slice now."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", metavar="GRID", nargs="*", help="The grid to measure: a YAML file.")
    add_options(parser, _PROPOSE)
    add_approval(parser, _ROW)
    for name in _ROW.options:
        getattr(options, name)(parser)


def verb_arguments(parser: argparse.ArgumentParser, verb: str) -> None:
    parser.add_argument("name", metavar="NAME", help="The name of a campaign, or its beginning.")
    if verb == "report":
        parser.add_argument("-o", "--out", metavar="FILE", help="The file to write: Markdown (.md), or a page.")
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    match args.verb:
        case "show":
            result = context.workspace().campaign_result(args.name)
            show(result, context)
            return 0
        case "report":
            return _report(args, context)
    if len(args.words) != 1:
        raise UsageError("`campaign` takes one grid.", hint="tpudeploy campaign grid.yaml")
    if context.is_untrusted(context.folder / args.words[0]):
        raise UsageError("A campaign reads its grid and its profile as yours, and this project is untrusted.")
    return _run(args, context)


def _report(args: argparse.Namespace, context: Context) -> int:
    if args.out is None:
        raise UsageError("`campaign report` needs an output file.", hint="tpudeploy campaign report NAME -o report.md")
    result = context.workspace().campaign_report(args.name, context.folder / args.out)
    context.terminal.talk(str(result))
    context.reply.set(result.to_dict())
    return 0


def _run(args: argparse.Namespace, context: Context) -> int:
    terminal = context.terminal
    workspace = context.workspace(lock_timeout=args.lock_timeout)
    proposal = workspace.campaign_propose(args.words[0], retry=args.retry, folder=context.folder)
    if terminal.as_json:
        terminal.document(json.dumps(proposal.to_dict(), ensure_ascii=False))
    else:
        terminal.data(proposal.as_text(terminal.paint, terminal.width))
    if proposal.plan.diagnostics:
        terminal.explain(f"\n{describe_diagnostics(proposal.plan.diagnostics, terminal.paint.styled)}")
    if proposal.plan.cells_left:
        approve(args, context, _ROW)
    with (
        _listening(context, workspace, proposal.plan) as (listener, say),
        stopping_gracefully(workspace.adapters.stop, say, message=_STOPPED),
    ):
        result = workspace.campaign(proposal, folder=context.folder, listener=listener)
    if terminal.as_json:
        terminal.document(json.dumps(result.to_dict(), ensure_ascii=False))
    else:
        terminal.data(result.as_text(terminal.paint, terminal.width))
    return result.exit_code


@contextmanager
def _listening(
    context: Context, workspace: Workspace, plan: CampaignPlan
) -> Iterator[tuple[CampaignListener, Callable[[str], None]]]:
    """Return the callbacks of a run: lines or a table on stderr, or JSON lines on stdout."""
    terminal = context.terminal
    if terminal.as_json or not terminal.is_drawable:
        lines = CampaignLines(terminal)
        yield CampaignListener(on_event=lines.tell, on_progress=lines.progress), terminal.talk
        return
    live = CampaignLive(terminal, context.clock, plan)
    with live.drawing():
        yield CampaignListener(on_event=live.tell, on_progress=live.progress), live.say
