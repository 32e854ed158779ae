"""A/Bs and benchmarks of a pipeline: a check on the commit, a comment on its pull request, an issue at night.

The measuring is that of other features, by the methods of the workspace; without them, the verbs say so.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

from tpudeploy.cli import options
from tpudeploy.cli.context import AS_WRITTEN, Context
from tpudeploy.cli.operation_command import add_options, option_values
from tpudeploy.domain import errors, exits
from tpudeploy.domain.errors import UsageError
from tpudeploy.features.gitops import pipeline as adapter
from tpudeploy.features.gitops import service
from tpudeploy.features.gitops.approval import Marker
from tpudeploy.features.gitops.comment import Part, fence, fit
from tpudeploy.features.gitops.documents import pipeline as pipeline_document
from tpudeploy.features.gitops.forge import CommitState
from tpudeploy.features.gitops.markdown import COMMENT_BYTES
from tpudeploy.features.gitops.pipeline_run import PipelineRun
from tpudeploy.features.gitops.ports import Forge
from tpudeploy.loading import Profile
from tpudeploy.operations import OPERATIONS, operation
from tpudeploy.results import Result

VERBS: Mapping[str, str] = {
    "ab": "Run the A/B of one setting, below a cost ceiling, and publish it as a check.",
    "bench": "Benchmark a deployment below a cost ceiling, and publish a regression.",
}
_FORK = "A pull request from a fork has no credentials, so nothing is measured."
_REFUSED = frozenset({"worse", "quality fell", "not in effect"})  # reasons of an A/B against the proposed value
_SEVERAL = 2


def arguments(parser: argparse.ArgumentParser, verb: str) -> None:
    """Add the options of the verb. Without the feature that measures, there are none."""
    if verb in OPERATIONS:
        add_options(parser, operation(verb))
    if verb == "ab":
        options.option(
            parser,
            "proposed",
            "The profile of the pull request: its one other setting is B (default: --ab).",
            metavar="FILE",
        )


def ab(args: argparse.Namespace, context: Context, run: PipelineRun) -> int:
    """Measure what serves, and one other value of a setting, in turns; then the deployment is as it was."""
    profile = _profile(args, context, run, "ab")
    if profile is None:
        return exits.SUCCESS
    row = operation("ab_propose")
    values = option_values(row, args)
    values["flag"] = args.flag or _proposed_flag(args, context, run, profile)
    bounds = {"duration_seconds": args.duration_seconds, "max_cost": args.max_cost}
    try:
        proposal = run.workspace.ab_propose(profile, **row.grouped(values), folder=context.folder)
        context.terminal.data(proposal.as_text(context.terminal.paint))
        result = run.workspace.ab(proposal, **bounds, reset=True, folder=context.folder)
    except errors.TpudeployError as error:
        run.classify("ab", CommitState.FAILURE, error.message)
        raise
    tree = result.to_dict()
    reason, keep = str(tree["reason"]), tree["keep"]
    is_refused = bool(result.exit_code) or reason in _REFUSED
    summary = f"{values['flag']}: {'keep ' + keep if keep else 'no verdict'} ({reason})"
    code = exits.CHECK_FAILED if is_refused else exits.SUCCESS
    return _publish(
        run,
        context,
        Measurement(verb="ab", deployment=profile.name, result=result, summary=summary, exit_code=code),
    )


def bench(args: argparse.Namespace, context: Context, run: PipelineRun) -> int:
    """Measure what serves, and compare it with the earlier runs of the same deployment, slice and load."""
    profile = _profile(args, context, run, "bench")
    if profile is None:
        return exits.SUCCESS
    row = operation("bench")
    values = row.grouped({**option_values(row, args), "api_key": None})
    try:
        measured = run.workspace.bench(profile, **values)
        trend = run.workspace.benchmark_trend(measured.run.id)
    except errors.TpudeployError as error:
        run.classify("bench", CommitState.FAILURE, error.message)
        raise
    context.terminal.data(measured.as_text(context.terminal.paint, context.terminal.width))
    code, summary = trend.exit_code, trend.verdict
    if not any(cell.is_trusted for cell in measured.run.cells):
        code, summary = exits.ERROR, f"No cell of {measured.run.id} can be trusted."
    return _publish(
        run,
        context,
        Measurement(verb="bench", deployment=profile.name, result=trend, summary=summary, exit_code=code),
    )


def _profile(args: argparse.Namespace, context: Context, run: PipelineRun, verb: str) -> Profile | None:
    """Return the profile to measure, or None on a pull request from a fork. Raise `errors.UsageError`."""
    if verb not in OPERATIONS:
        raise UsageError(f"This installation has no `{verb}`.", hint="Install tpudeploy with all its features.")
    if len(args.profiles) != 1:
        raise UsageError(f"`ci {verb}` measures exactly one profile.", hint=f"tpudeploy ci {verb} staging.yaml")
    if args.max_cost is None:
        raise UsageError(f"`ci {verb}` needs a ceiling.", hint="Pass --max-cost USD.")
    if run.pipeline.is_fork:
        context.terminal.data(_FORK)
        adapter.summarize(_FORK)
        context.reply.set(pipeline_document(verb, message=_FORK))
        return None
    return context.load(args.profiles, args)[0]


def _proposed_flag(args: argparse.Namespace, context: Context, run: PipelineRun, profile: Profile) -> str:
    """Return PATH=A,B: the one setting in which the proposed profile differs. Raise `errors.UsageError` otherwise."""
    if args.proposed is None:
        raise UsageError("`ci ab` needs two values.", hint="Pass --ab PATH=A,B, or --proposed FILE.")
    (proposed,) = context.load([args.proposed], argparse.Namespace(**vars(AS_WRITTEN), untrusted=True))
    now, then = (run.workspace.deployment(each, script=False).attributes for each in (profile, proposed))
    paths = sorted(path for path in now.keys() | then.keys() if now.get(path) != then.get(path))
    if len(paths) != 1:
        names = ", ".join(paths) or "nothing"
        raise UsageError(f"An A/B compares one setting, and {names} differs.", hint="Pass --ab PATH=A,B.")
    (path,) = paths
    values = [str(side[path]) for side in (now, then) if path in side]
    if len(values) < _SEVERAL or any("," in value for value in values):
        hint = "Write a plain value of it in both profiles, or pass --ab PATH=A,B."
        raise UsageError(f"{path} has no two plain values to compare.", hint=hint)
    return f"{path}={','.join(values)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A result to publish: what was measured of which deployment, one line about it, and how the job ends."""

    verb: str
    deployment: str
    result: Result
    summary: str
    exit_code: int


def _publish(run: PipelineRun, context: Context, measurement: Measurement) -> int:
    """Publish a result wherever the pipeline shows it, and return the exit code."""
    verb, name, code = measurement.verb, measurement.deployment, measurement.exit_code
    terminal, result = context.terminal, measurement.result
    terminal.data(f"\n{result.as_text(terminal.paint, terminal.width)}")
    context.reply.set(pipeline_document(verb, message=measurement.summary))
    heading = "A/B" if verb == "ab" else "Benchmark"
    parts = [Part(text=f"### {heading} of `{name}`"), Part(text=fence(str(result).splitlines()))]
    body = fit(parts, COMMENT_BYTES).text
    adapter.summarize(body)
    run.end(code, "")
    run.classify(verb, CommitState.FAILURE if code else CommitState.SUCCESS, measurement.summary)
    marker = Marker(about=verb, label=f"{name}/{run.label}" if run.label else name, goals={})

    def tell(forge: Forge) -> None:
        service.tell_measured(forge, run.pipeline, marker, body, title=measurement.summary, is_worse=bool(code))

    run.tell(tell)
    return code
