"""Write Prometheus rules for a deployment in several formats, a collector configuration, or a Grafana dashboard."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.context import Context

if TYPE_CHECKING:
    from tpudeploy.alerts.watched import Watched
    from tpudeploy.loading import Profile

_DASHBOARD = "dashboard"
# Each format with the first line of its file.
_FORMATS = {
    "rules": "Prometheus rules. Each deployment is a job of its own name: scrape_configs has `job_name: {names}`.",
    "prometheusrule": "For the Prometheus operator. Label it as your Prometheus' ruleSelector wants; job is {names}.",
    "gmp": "For Google Cloud Managed Service for Prometheus: kubectl apply -f FILE. The job is {names}.\n"
    "# Without a cluster, Cloud Monitoring takes those of `-format rules`:\n"
    "# gcloud monitoring policies migrate --policies-from-prometheus-alert-rules-yaml=FILE",
    "ops-agent": "/etc/google-cloud-ops-agent/config.yaml of the machine that serves {names}.",
    _DASHBOARD: "",
}
_WITH_RULES = ("rules", "prometheusrule", "gmp")


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser)
    options.option(
        parser,
        "format",
        f"The format: {', '.join(_FORMATS)} (default: rules).",
        choices=tuple(_FORMATS),
        default="rules",
        metavar="FORMAT",
    )
    options.option(
        parser,
        "ttft",
        "Alert if the first token of more than 1 in 20 requests takes longer, e.g. 2.5.",
        type=_seconds,
        metavar="SECONDS",
    )
    options.option(
        parser, "run", "Take that limit from what this run of `bench` measured at its balanced point.", metavar="ID"
    )
    options.backend(parser)
    options.option(parser, "out", "Write to FILE instead of stdout.", metavar="FILE", type=Path)


def run(args: argparse.Namespace, context: Context) -> int:
    profiles = context.load(context.expand_folders(args.profiles), args)
    ttft_seconds, source = (args.ttft, "") if args.run is None else _measured_ttft(args, context, profiles)
    text, remarks = render(args.format, profiles, ttft_seconds=ttft_seconds, ttft_source=source)
    if args.out is not None:
        _write(context.folder / args.out, text)
        context.terminal.talk(f"Wrote {args.out}.")
    if args.json:
        context.reply.set(documents.alerts(text, remarks))
    elif args.out is None:
        context.terminal.data(text.removesuffix("\n"))
    for line in remarks:
        context.terminal.talk(line)
    return exits.SUCCESS


def render(
    form: str, profiles: Iterable[Profile], *, ttft_seconds: float | None, ttft_source: str = ""
) -> tuple[str, list[str]]:
    """Return the file of that format, and the remarks to print with it. Raise `errors.UsageError`.

    `ttft_source` is a caveat about the limit for first tokens to show wherever that is shown, or "".
    """
    from tpudeploy.alerts.dashboard import dashboard
    from tpudeploy.alerts.formats import FORMATS
    from tpudeploy.alerts.watched import watched
    from tpudeploy.domain.errors import UsageError
    from tpudeploy.loading import sized
    from tpudeploy.views import alerts as view

    deployments = [watched(sized(profile), ttft_seconds=ttft_seconds, ttft_source=ttft_source) for profile in profiles]
    names = [deployment.name for deployment in deployments]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        # Both would have the same group of rules.
        raise UsageError(f"Two profiles are named {duplicate}.", hint="A deployment has one profile.")
    remarks = [f"Warning: {ttft_source}"] if ttft_source else []
    remarks += _remarks(form, deployments)
    if form == _DASHBOARD:
        return view.dashboard(dashboard(deployments)), remarks
    heading = _FORMATS[form].format(names=", ".join(names))
    return view.documents(heading, FORMATS[form](deployments)), remarks


def _measured_ttft(args: argparse.Namespace, context: Context, profiles: Sequence[Profile]) -> tuple[float, str]:
    """Return the limit in seconds, and its caveat.

    Raise `errors.UsageError` for a run without that figure, or of another model.
    """
    from tpudeploy.alerts.watched import ROOM, ttft_target
    from tpudeploy.benchmark.operating import operating_points
    from tpudeploy.domain.errors import UsageError
    from tpudeploy.loading import sized

    if args.ttft is not None or len(profiles) > 1:
        raise UsageError("-run works with one profile, and without -ttft.", hint="Name one profile, and no -ttft.")
    deployment = sized(profiles[0])
    run = context.workspace(args.profiles).runs.find(args.run)
    if run.subject.model_id and run.subject.model_id != deployment.model_id:
        raise UsageError(
            f"Run {run.id} measured {run.subject.model_id}, and {deployment.name} serves {deployment.model_id}."
        )
    target = ttft_target(run, (point for points in operating_points(run).values() for point in points))
    if target is None:
        raise UsageError(f"Run {run.id} has no trusted time to the first token.", hint="Use -ttft SECONDS.")
    streams, context_tokens = target.cell.point.concurrency, target.cell.point.context_tokens
    prompt = "prompts of unknown length" if context_tokens is None else f"{context_tokens:,} tokens"
    context.terminal.talk(
        f"First tokens: {target.seconds:g} s, from {ROOM:g} times the {target.measured:.3g} s of run {run.id} at "
        f"{streams} streams of {prompt}."
    )
    return target.seconds, target.source


def _write(path: Path, text: str) -> None:
    """Raise `errors.UsageError`."""
    from tpudeploy.adapters.state import disk
    from tpudeploy.domain.errors import StateError, UsageError

    try:
        disk.replace(path, text)
    except StateError as cause:
        raise UsageError(cause.message, hint="Name another file.") from cause


def _remarks(form: str, deployments: Sequence[Watched]) -> list[str]:
    """Return what a reader of the file alone would miss."""
    from tpudeploy.alerts.watched import around

    remarks = [
        f"Warning: {deployment.name} has --disable-log-stats: its engine has no metrics, and only VllmDown can fire."
        for deployment in deployments
        if not deployment.tells_metrics
    ]
    ttft_seconds = deployments[0].ttft_seconds
    if form not in _WITH_RULES:
        return remarks
    if ttft_seconds is None:
        how = "-ttft SECONDS sets the limit, -run ID takes it from a measurement."
        return [*remarks, f"There is no rule for the time to the first token: {how}"]
    edges = around(ttft_seconds)
    if edges is not None:
        low, high = edges
        note = (
            f"Note: vLLM counts first tokens up to {low:g} s and up to {high:g} s; {ttft_seconds:g} s is interpolated."
        )
        remarks.append(f"{note} `-ttft {high:g}` is exact.")
    return remarks


def _seconds(text: str) -> float:
    """Parse 2.5, or as elsewhere 2500ms, 2.5s."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = options.seconds(text)
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"`{text}` is not a time to wait for a token; write 2.5")
    return seconds
