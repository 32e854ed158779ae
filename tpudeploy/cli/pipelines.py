"""`ci`: what a pull request is told, what is applied after the merge, and what a schedule finds."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TypeVar

from tpudeploy import gitops
from tpudeploy.adapters import pipeline as adapter
from tpudeploy.cli import documents, exits
from tpudeploy.cli.approval import distinct, done, under_way
from tpudeploy.cli.boundary import report as tell_error
from tpudeploy.cli.context import Context, LoadedProfiles, all_problems
from tpudeploy.cli.progress import teller
from tpudeploy.cli.run import Run
from tpudeploy.domain import errors
from tpudeploy.domain.diagnostics import errors_in
from tpudeploy.domain.forge import Host, Verdict
from tpudeploy.domain.plan import Action, Plan
from tpudeploy.domain.report import Report
from tpudeploy.views import excerpt, issue, outcome
from tpudeploy.views import plan as view

P = TypeVar("P", bound=Plan)
# What a later run goes on with by itself.
_UNFINISHED = (errors.CapacityTimeout, errors.StillStarting, errors.StillDraining)
_NOTHING = "Nothing is under way."
_AS_WRITTEN = "All is as the profiles say."
_NOT_YET = "Not at its end yet. What was begun stays approved, and the next scheduled run goes on."


def plan(given: argparse.Namespace, context: Context, run: Run) -> int:
    """Validate; plan, unless it is a fork's; tell the pull request. Takes no lock and changes nothing in the cloud."""
    try:
        loaded = _profiles(given, context, run)
        if run.pipeline.is_fork and loaded.invalid:
            raise all_problems(loaded.invalid)
        if run.pipeline.is_fork:
            told = "The profiles are valid. A pull request from a fork has no credentials, so that no plan is made."
            context.terminal.data(told)
            adapter.summarize(told)
            context.reply.set(documents.pipeline("plan", message=told))
            return exits.SUCCESS
        tell_event = teller(context.terminal, as_json=False)
        planned = run.workspace.plan(loaded.valid, invalid=loaded.invalid, on_event=tell_event)
        left = gitops.orphans(run.workspace, loaded.valid, loaded.invalid)
    except errors.TpudeployError as error:
        run.refuse(error)
        raise
    proposal = gitops.proposal(planned, run.pipeline, label=run.label, orphans=left, key=run.key)
    _show(context, planned)
    context.reply.set(documents.pipeline("plan", plan=planned))
    run.keep(planned, proposal)
    worst = planned.worst_error
    run.judge("plan", *((Verdict.SUCCESS, _sum(planned)) if worst is None else (Verdict.FAILURE, worst.message)))
    if run.forge is not None and run.pipeline.pull is not None:
        comment = gitops.propose(run.forge, run.pipeline, run.pipeline.pull, proposal, key=run.key)
        context.terminal.talk(f"Told at {comment.url}")
    if worst is not None:
        run.end(worst.exit_code, errors_in(planned.diagnostics)[0].code)
        return worst.exit_code
    return exits.CHANGES if given.detailed_exitcode and planned.has_work else exits.SUCCESS


def apply(given: argparse.Namespace, context: Context, run: Run) -> int:
    """Plan again, and do it if it is what was approved. What does not end in time is left to a run with `-resume`."""
    try:
        loaded = _profiles(given, context, run)
        tell_event = teller(context.terminal, as_json=False)
        planned = run.workspace.plan(loaded.valid, invalid=loaded.invalid, on_event=tell_event)
        if given.resume:
            planned = gitops.only_begun(run.workspace.with_approved_renewals(planned))
            if not planned.goals:
                context.terminal.data(_NOTHING)
                context.reply.set(documents.pipeline("apply", message=_NOTHING))
                return exits.SUCCESS
        _show(context, planned)
        planned = _with_approval(given, context, run, planned, loaded)
        with under_way(context, run.workspace, as_json=False) as emit:
            report = run.workspace.apply(planned, on_event=emit, timeout=given.timeout, reset=True)
    except errors.TpudeployError as error:
        run.judge("apply", Verdict.FAILURE, error.message)
        raise
    return _end(context, run, planned, report)


def drift(given: argparse.Namespace, context: Context, run: Run) -> int:
    """Look; open, update or close one issue a deployment. Changes nothing in the cloud."""
    loaded = _profiles(given, context, run)
    tell_event = teller(context.terminal, as_json=False)
    found, unknown = gitops.deviations(run.workspace, loaded.valid, invalid=loaded.invalid, on_event=tell_event)
    lines = [f"{d.name}: {d.kind}" for d in found]
    context.terminal.data("\n".join([*lines, *(f"{name}: unknown" for name in unknown)]) or _AS_WRITTEN)
    context.reply.set(documents.pipeline("drift", deviations=found, unknown=unknown))
    sections = [f"### {issue.title(d)}\n\n{issue.body(d)}" for d in found]
    sections += [f"### {issue.unknown_title(name)}\n\n{issue.unknown_body(error)}" for name, error in unknown.items()]
    adapter.summarize("\n\n".join(sections) or "No drift.")
    adapter.outputs({"drift": ", ".join(lines)})
    if run.forge is not None:
        gitops.report(run.forge, loaded.valid, found, unknown)
    worst = errors.worst(unknown.values())
    if worst is not None:
        for error in unknown.values():
            tell_error(context.terminal, error)
        run.end(worst.exit_code, worst.code)
        return worst.exit_code
    return exits.CHANGES if given.detailed_exitcode and found else exits.SUCCESS


def _profiles(given: argparse.Namespace, context: Context, run: Run) -> LoadedProfiles:
    """Load each profile; what is wrong with one becomes annotations too, where the log can hold some.

    Raise `errors.ProfileInvalid` where none is valid.
    """
    if not given.profiles:
        context.terminal.talk("No profile was given: nothing is planned, whatever stands.")
    try:
        loaded = context.load_each(given.profiles, given)
    except errors.ProfileInvalid as error:
        _annotate(context, run, {given.profiles[0]: error})
        raise
    _annotate(context, run, loaded.invalid)
    return loaded


def _annotate(context: Context, run: Run, invalid: Mapping[str, errors.ProfileInvalid]) -> None:
    if invalid and run.pipeline.host is Host.GITHUB:
        from tpudeploy.views.reports import Checked, as_github

        checked = [Checked(file=file, found=error.diagnostics) for file, error in invalid.items()]
        context.terminal.data(as_github(checked))


def _show(context: Context, planned: Plan) -> None:
    terminal = context.terminal
    terminal.data(view.plan(planned, terminal.paint))
    if planned.diagnostics:
        terminal.talk(f"\n{excerpt.diagnostics(planned.diagnostics, terminal.paint)}\n")


def _with_approval(given: argparse.Namespace, context: Context, run: Run, planned: P, loaded: LoadedProfiles) -> P:
    """Show in the pipeline what is not approved. Raise `errors.Unapproved` where that is all there is to do."""
    files = None if given.approval is None else adapter.signed_plan(context.folder / given.approval)

    def show_unapproved() -> None:
        left = gitops.orphans(run.workspace, loaded.valid, loaded.invalid)
        run.keep(planned, gitops.proposal(planned, run.pipeline, label=run.label, orphans=left))

    try:
        approved = gitops.with_approval(
            planned,
            run.forge,
            run.pipeline,
            label=run.label,
            accepted=given.accept,
            key=run.key,
            files=files,
        )
    except errors.Unapproved as error:
        show_unapproved()
        run.tell_result(outcome.interruption(error, planned))
        raise
    if approved.diagnostics != planned.diagnostics:
        show_unapproved()
    return approved


def _end(context: Context, run: Run, planned: Plan, report: Report) -> int:
    """The last words. Of several errors, the worst that no later run mends by itself counts."""
    found = list(distinct(report))
    for each in found:
        tell_error(context.terminal, each)
    final = errors.worst(e for e in found if not isinstance(e, _UNFINISHED))
    if final is not None:
        code, verdict, words = final.exit_code, Verdict.FAILURE, final.message
    elif found:
        code, verdict, words = exits.NOT_YET, Verdict.PENDING, _NOT_YET
    else:
        code, verdict, words = exits.SUCCESS, Verdict.SUCCESS, _sum(planned) if planned.is_empty else done(report)
        context.terminal.data(f"\n{words}")
    context.reply.set(documents.pipeline("apply", plan=planned, report=report, message=words))
    run.end(code, (final or found[0]).code if found else "")
    run.judge("apply", verdict, words)
    told = outcome.result(words, found)
    adapter.summarize(told)
    run.tell_result(told)
    return code


def _sum(planned: Plan) -> str:
    shown = [c for c in planned.changes if c.action is not Action.NO_OP]
    return view.summary(shown) if shown else "No changes: all is as the profiles say."
