"""Run in a pipeline: `plan` on a pull request, `apply` after the merge, report `drift`, or measure: `ab`, `bench`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TypeVar

from tpudeploy.cli import options
from tpudeploy.cli.approval import all_errors, interruptible
from tpudeploy.cli.context import Context, LoadedProfiles, all_problems
from tpudeploy.cli.error_report import report_error
from tpudeploy.cli.progress import event_printer
from tpudeploy.domain import errors, exits
from tpudeploy.domain.diagnostics import errors_in
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.excerpt import describe_diagnostics
from tpudeploy.domain.plan import Action, Plan
from tpudeploy.domain.report import RunReport
from tpudeploy.features.gitops import issue, markdown, measured, service
from tpudeploy.features.gitops import pipeline as adapter
from tpudeploy.features.gitops.documents import pipeline as pipeline_document
from tpudeploy.features.gitops.forge import CommitState, Host
from tpudeploy.features.gitops.pipeline import approval_key
from tpudeploy.features.gitops.pipeline_run import PipelineRun
from tpudeploy.operations import argument_types
from tpudeploy.views import plan as view
from tpudeploy.views.drift import never_applied
from tpudeploy.views.reports import CheckedProfile, as_github

P = TypeVar("P", bound=Plan)
# Errors after which a later run continues by itself.
_UNFINISHED = (errors.CapacityTimeout, errors.StillStarting, errors.StillDraining)
_NOTHING = "Nothing is in progress."
_AS_WRITTEN = "Everything matches the profiles."
_NOT_COMPARED = "No profile was given, so nothing was compared: this run can't find drift."
_NOT_YET = "Not finished yet. The started changes stay approved, and the next scheduled run continues."
VERBS: Mapping[str, str] = {
    "plan": "On a pull request: comment the plan of its profiles.",
    "apply": "After the merge: apply what was approved.",
    "drift": "On a schedule: open an issue for each deployment that drifted, and close it afterwards.",
    **measured.VERBS,
}
NEEDS_VERB = True


def arguments(parser: argparse.ArgumentParser) -> None:
    options.backend(parser)


def verb_arguments(parser: argparse.ArgumentParser, verb: str) -> None:
    options.profiles(parser, nargs="*")
    parser.set_defaults(untrusted=True)  # a pull request may come from anyone
    options.option(parser, "label", "Distinguishes several comments on one pull request.", default="")
    options.option(
        parser,
        "author",
        "The login that comments on GitHub (default: %(default)s).",
        metavar="LOGIN",
        default="github-actions[bot]",
    )
    options.option(parser, "artifacts", "Write plan.json and plan.md to DIR.", metavar="DIR", type=Path)
    if verb == "apply":
        _add_apply_arguments(parser)
    elif verb in measured.VERBS:
        measured.arguments(parser, verb)
    else:
        options.flag(parser, "detailed-exitcode", "Exit 2 if there are changes, or drift.")
    options.lock_timeout(parser)
    options.parallelism(parser)
    options.backend(parser)


def _add_apply_arguments(parser: argparse.ArgumentParser) -> None:
    options.option(parser, "accept", "A fingerprint that you approve.", metavar="FINGERPRINT", default="")
    approval = "The -artifacts of a `ci plan` that was signed for this commit."
    options.option(parser, "approval", approval, metavar="DIR", type=Path)
    options.flag(parser, "resume", "Only continue what an earlier run began, and renew runs that end.")
    time = "Stop after this time (exit 12)."
    options.option(parser, "timeout", time, type=argument_types.duration, default="45m", metavar="TIME")


def run(args: argparse.Namespace, context: Context) -> int:
    with approval_key() as key:
        workspace = context.workspace(args.profiles, lock_timeout=args.lock_timeout)
        here = PipelineRun.from_arguments(args, context, workspace, key=key)
        try:
            return _DOES[args.verb](args, context, here)
        except TpudeployError as error:
            here.end(error.exit_code, error.code)
            raise


def plan(args: argparse.Namespace, context: Context, run: PipelineRun) -> int:
    """Validate and, unless it is a fork, comment the plan on the pull request. Takes no lock, changes no resource."""
    try:
        loaded = _profiles(args, context, run)
        if run.pipeline.is_fork and loaded.invalid:
            raise all_problems(loaded.invalid)
        if run.pipeline.is_fork:
            message = "The profiles are valid. A pull request from a fork has no credentials, so no plan is made."
            context.terminal.data(message)
            adapter.summarize(message)
            context.reply.set(pipeline_document("plan", message=message))
            return exits.SUCCESS
        tell_event = event_printer(context.terminal, as_json=False)
        planned = run.workspace.plan(loaded.valid, invalid=loaded.invalid, on_event=tell_event)
        orphans = service.orphans(run.workspace, loaded.valid, loaded.invalid)
        budgets = service.budgets(run.workspace, planned)
    except errors.TpudeployError as error:
        run.refuse(error)
        raise
    proposal = service.proposal(planned, run.pipeline, label=run.label, orphans=orphans, budgets=budgets, key=run.key)
    _show(context, planned)
    context.reply.set(pipeline_document("plan", plan=planned))
    run.keep(planned, proposal)
    worst = planned.worst_error
    run.classify(
        "plan", *((CommitState.SUCCESS, _summary(planned)) if worst is None else (CommitState.FAILURE, worst.message))
    )
    if run.forge is not None and run.pipeline.pull is not None:
        comment = service.propose(run.forge, run.pipeline, run.pipeline.pull, proposal, key=run.key)
        context.terminal.talk(f"Commented at {comment.url}")
    if worst is not None:
        run.end(worst.exit_code, errors_in(planned.diagnostics)[0].code)
        return worst.exit_code
    return exits.CHANGES if args.detailed_exitcode and planned.has_work else exits.SUCCESS


def apply(args: argparse.Namespace, context: Context, run: PipelineRun) -> int:
    """Plan again, and apply the plan if it is approved. A run with `-resume` continues what does not end in time."""
    try:
        loaded = _profiles(args, context, run)
        tell_event = event_printer(context.terminal, as_json=False)
        planned = run.workspace.plan(loaded.valid, invalid=loaded.invalid, on_event=tell_event)
        if args.resume:
            planned = service.only_begun(run.workspace.with_approved_renewals(planned))
            if not planned.goals:
                context.terminal.data(_NOTHING)
                context.reply.set(pipeline_document("apply", message=_NOTHING))
                return exits.SUCCESS
        _show(context, planned)
        planned = _with_approval(args, context, run, planned, loaded)
        with interruptible(context, run.workspace, as_json=False) as emit:
            report = run.workspace.apply(planned, on_event=emit, timeout=args.timeout, reset=True)
    except errors.TpudeployError as error:
        run.classify("apply", CommitState.FAILURE, error.message)
        raise
    return _end(context, run, planned, report)


def drift(args: argparse.Namespace, context: Context, run: PipelineRun) -> int:
    """Observe; then open, update or close one issue per deployment. Changes no resource.

    Raise `errors.UsageError` without a profile: a scheduled job that compares nothing must not look well.
    """
    if not args.profiles:
        raise errors.UsageError(_NOT_COMPARED, hint="Name the profiles: tpudeploy ci drift profiles/*.yaml")
    loaded = _profiles(args, context, run)
    tell_event = event_printer(context.terminal, as_json=False)
    deviations, unknown = service.deviations(run.workspace, loaded.valid, invalid=loaded.invalid, on_event=tell_event)
    lines = [f"{d.name}: {d.kind}" for d in deviations]
    without_state = _never_applied(run, loaded, unknown)
    texts = [*lines, *(f"{name}: unknown" for name in unknown), *without_state]
    context.terminal.data("\n".join(texts) or _AS_WRITTEN)
    context.reply.set(pipeline_document("drift", deviations=deviations, unknown=unknown))
    sections = [f"### {issue.title(d)}\n\n{issue.body(d)}" for d in deviations]
    sections += [f"### {issue.unknown_title(name)}\n\n{issue.unknown_body(error)}" for name, error in unknown.items()]
    adapter.summarize("\n\n".join([*sections, *without_state]) or "No drift.")
    adapter.outputs({"drift": ", ".join(lines)})
    if run.forge is not None:
        service.report(run.forge, loaded.valid, deviations, unknown)
    worst = errors.worst(unknown.values())
    if worst is not None:
        for error in unknown.values():
            report_error(context.terminal, error)
        run.end(worst.exit_code, worst.code)
        return worst.exit_code
    return exits.CHANGES if args.detailed_exitcode and deviations else exits.SUCCESS


def _never_applied(run: PipelineRun, loaded: LoadedProfiles, unknown: Collection[str]) -> list[str]:
    """Return a sentence about the profiles that have no state, so that nothing of them can have drifted."""
    with_state = {*run.workspace.adapters.states.names(), *unknown}
    sentence = never_applied([each.name for each in loaded.valid if each.name not in with_state])
    return [sentence] if sentence else []


def _profiles(args: argparse.Namespace, context: Context, run: PipelineRun) -> LoadedProfiles:
    """Load each profile; what is wrong with one becomes annotations too, where the log can hold some.

    Raise `errors.ProfileInvalid` where none is valid.
    """
    # `drift` says so itself, where it would say that everything matches.
    if not args.profiles and args.verb != "drift":
        context.terminal.talk("No profile was given, so nothing is planned, even for existing deployments.")
    try:
        loaded = context.load_each(args.profiles, args)
    except errors.ProfileInvalid as error:
        _annotate(context, run, {args.profiles[0]: error})
        raise
    _annotate(context, run, loaded.invalid)
    return loaded


def _annotate(context: Context, run: PipelineRun, invalid: Mapping[str, errors.ProfileInvalid]) -> None:
    if invalid and run.pipeline.host is Host.GITHUB:
        checked = [CheckedProfile(file=file, diagnostics=error.diagnostics) for file, error in invalid.items()]
        context.terminal.verbatim(as_github(checked))


def _show(context: Context, planned: Plan) -> None:
    terminal = context.terminal
    terminal.data(view.plan(planned, terminal.paint, terminal.width))
    if planned.diagnostics:
        terminal.explain(f"\n{describe_diagnostics(planned.diagnostics, terminal.paint.styled)}\n")


def _with_approval(
    args: argparse.Namespace, context: Context, run: PipelineRun, planned: P, loaded: LoadedProfiles
) -> P:
    """Publish what is not approved. Raise `errors.Unapproved` if nothing else remains to be applied."""
    files = None if args.approval is None else adapter.signed_plan(context.folder / args.approval)

    def show_unapproved() -> None:
        orphans = service.orphans(run.workspace, loaded.valid, loaded.invalid)
        run.keep(planned, service.proposal(planned, run.pipeline, label=run.label, orphans=orphans))

    try:
        approved = service.with_approval(
            planned,
            run.forge,
            run.pipeline,
            label=run.label,
            accepted=args.accept,
            key=run.key,
            files=files,
        )
    except errors.Unapproved as error:
        show_unapproved()
        run.tell_result(markdown.apply_interruption(error, planned))
        raise
    if approved.diagnostics != planned.diagnostics:
        show_unapproved()
    return approved


def _end(context: Context, run: PipelineRun, planned: Plan, report: RunReport) -> int:
    """Publish the result. Of several errors, the worst one that no later run can continue from counts."""
    failures = list(all_errors(report))
    for each in failures:
        report_error(context.terminal, each)
    final = errors.worst(e for e in failures if not isinstance(e, _UNFINISHED))
    if final is not None:
        code, verdict, words = final.exit_code, CommitState.FAILURE, final.message
    elif failures:
        code, verdict, words = exits.NOT_YET, CommitState.PENDING, _NOT_YET
    else:
        code, verdict, words = (
            exits.SUCCESS,
            CommitState.SUCCESS,
            _summary(planned) if planned.is_empty else report.summary,
        )
        context.terminal.data(f"\n{words}")
    context.reply.set(pipeline_document("apply", plan=planned, report=report, message=words))
    run.end(code, (final or failures[0]).code if failures else "")
    run.classify("apply", verdict, words)
    comment = markdown.apply_result(words, failures)
    adapter.summarize(comment)
    run.tell_result(comment)
    return code


def _summary(planned: Plan) -> str:
    changes = [c for c in planned.changes if c.action is not Action.NO_OP]
    return view.summary(changes) if changes else "No changes: everything matches the profiles."


_DOES: Mapping[str, Callable[[argparse.Namespace, Context, PipelineRun], int]] = {
    "plan": plan,
    "apply": apply,
    "drift": drift,
    "ab": measured.ab,
    "bench": measured.bench,
}
