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
# Each with what its file is: the first line of it.
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


def run(given: argparse.Namespace, context: Context) -> int:
    profiles = context.load(context.expand_folders(given.profiles), given)
    wanted, source = (given.ttft, "") if given.run is None else _measured(given, context, profiles)
    text, remarks = made(given.format, profiles, ttft_seconds=wanted, ttft_source=source)
    if given.out is not None:
        _write(context.folder / given.out, text)
        context.terminal.talk(f"Wrote {given.out}.")
    if given.json:
        context.reply.set(documents.alerts(text, remarks))
    elif given.out is None:
        context.terminal.data(text.removesuffix("\n"))
    for line in remarks:
        context.terminal.talk(line)
    return exits.SUCCESS


def made(
    form: str, profiles: Iterable[Profile], *, ttft_seconds: float | None, ttft_source: str = ""
) -> tuple[str, list[str]]:
    """Return the file of that form, and what is to be said beside it. Raise `errors.UsageError`.

    `ttft_source` is what must be known of the limit for first tokens wherever it stands, "" for nothing.
    """
    from tpudeploy.alerts.watched import watched
    from tpudeploy.loading import sized

    all_of = [watched(sized(profile), ttft_seconds=ttft_seconds, ttft_source=ttft_source) for profile in profiles]
    _once(all_of)
    said = [f"Warning: {ttft_source}"] if ttft_source else []
    return _text(form, all_of), [*said, *_remarks(form, all_of)]


def _text(form: str, all_of: Sequence[Watched]) -> str:
    from tpudeploy.alerts.formats import FORMATS
    from tpudeploy.views import alerts as view

    if form == _DASHBOARD:
        from tpudeploy.alerts.dashboard import dashboard

        return view.dashboard(dashboard(all_of))
    names = ", ".join(of.name for of in all_of)
    return view.documents(_FORMATS[form].format(names=names), FORMATS[form](all_of))


def _measured(given: argparse.Namespace, context: Context, profiles: Sequence[Profile]) -> tuple[float, str]:
    """Return seconds, and what must be known of them wherever they stand.

    Raise `errors.UsageError` for a run that has no such figure, or that measured something else.
    """
    from tpudeploy.alerts.goal import ROOM, goal
    from tpudeploy.domain.errors import UsageError
    from tpudeploy.loading import sized

    if given.ttft is not None or len(profiles) > 1:
        raise UsageError("A run speaks for one profile, and instead of -ttft.", hint="Name one profile, and no -ttft.")
    of = sized(profiles[0])
    run = context.workspace(given.profiles).runs.find(given.run)
    if run.subject.model_id and run.subject.model_id != of.model_id:
        raise UsageError(f"Run {run.id} measured {run.subject.model_id}, and {of.name} serves {of.model_id}.")
    found = goal(run)
    if found is None:
        raise UsageError(
            f"Run {run.id} tells no time to the first token that can be believed.", hint="Say -ttft SECONDS."
        )
    context.terminal.talk(
        f"First tokens: {found.seconds:g} s, from {ROOM:g} times the {found.measured:.3g} s of run {run.id} at "
        f"{found.cell.point.concurrency} streams of {found.cell.point.context_tokens:,} tokens."
    )
    return found.seconds, found.source


def _once(all_of: Sequence[Watched]) -> None:
    """Raise `errors.UsageError` for a name that two profiles have: their rules would be of one group, twice."""
    from tpudeploy.domain.errors import UsageError

    names = [of.name for of in all_of]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"Two profiles are named {twice}.", hint="A deployment has one profile.")


def _write(path: Path, text: str) -> None:
    """Raise `errors.UsageError`."""
    from tpudeploy.adapters.state import disk
    from tpudeploy.domain.errors import StateError, UsageError

    try:
        disk.replace(path, text)
    except StateError as cause:
        raise UsageError(cause.message, hint="Name another file.") from cause


def _remarks(form: str, all_of: Sequence[Watched]) -> list[str]:
    """What whoever reads only the file would miss."""
    from tpudeploy.alerts.watched import around

    silent = [
        f"Warning: {of.name} has --disable-log-stats: its engine tells no metrics, and nothing but VllmDown can fire."
        for of in all_of
        if not of.tells_metrics
    ]
    wanted = all_of[0].ttft_seconds
    if form not in _WITH_RULES:
        return silent
    if wanted is None:
        how = "-ttft SECONDS says how long is too long, -run ID takes it from what was measured."
        return [*silent, f"There is no rule for the time to the first token: {how}"]
    edges = around(wanted)
    if edges is None:
        return silent
    low, high = edges
    coarse = f"Note: vLLM counts first tokens up to {low:g} s and up to {high:g} s; {wanted:g} s is interpolated."
    return [*silent, f"{coarse} `-ttft {high:g}` is exact."]


def _seconds(text: str) -> float:
    """2.5, or as elsewhere: 2500ms, 2.5s."""
    try:
        found = float(text)
    except ValueError:
        found = options.seconds(text)
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"`{text}` is not a time to wait for a token; write 2.5")
    return found
