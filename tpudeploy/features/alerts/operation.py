"""Write Prometheus rules for a deployment in several formats, a collector configuration, or a Grafana dashboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from tpudeploy import loading
from tpudeploy.config.profile import Profile
from tpudeploy.domain.errors import UsageError
from tpudeploy.features.alerts import formats
from tpudeploy.features.alerts.dashboard import dashboard
from tpudeploy.features.alerts.formats import FORMATS
from tpudeploy.features.alerts.watched import ROOM, Watched, around, ttft_target, watched
from tpudeploy.features.benchmark.operating import operating_points
from tpudeploy.features.benchmark.store import stored_runs
from tpudeploy.operations.arguments import Agents, Arg, Latency, SomeProfiles
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.operations.endpoint import require_completions
from tpudeploy.results import Result, document, result
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace

_DASHBOARD = "dashboard"
# Each format with the first line of its file, which says what it is.
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


@result
class AlertFile(Result):
    """A file of alert rules, of a collector's configuration or of a dashboard. `origin`: where its limit is from."""

    FORMAT = "alerts"
    IS_VERBATIM = True
    text: str
    remarks: tuple[str, ...]
    origin: str

    def values(self) -> dict[str, Any]:
        return {"text": self.text, "remarks": list(self.remarks)}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        about = "the contents of the file: YAML, or JSON for a dashboard"
        return document("alerts", {"text": {"type": "string", "description": about}, "remarks": tuple[str, ...]})

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return self.text.removesuffix("\n")

    def messages(self, paint: Paint) -> str:
        return "\n".join(self.remarks)


def alerts(
    workspace: Workspace,
    profiles: SomeProfiles,
    form: Annotated[
        str,
        Arg(
            f"The format: {', '.join(_FORMATS)} (default: rules).",
            name="format",
            choices=tuple(_FORMATS),
            metavar="FORMAT",
            agents=Agents("Prometheus rules, in three forms; how to collect metrics; a Grafana dashboard"),
        ),
    ] = "rules",
    *,
    ttft_seconds: Annotated[
        Latency | None,
        Arg(
            "Alert if the first token of more than 1 in 20 requests takes longer, e.g. 2.5.",
            name="ttft",
            agents=Agents("how late a first token may be"),
        ),
    ] = None,
    run_id: Annotated[
        str | None,
        Arg(
            "Take that limit from what this run of `bench` measured at its balanced point.",
            name="run",
            metavar="ID",
            agents=None,
        ),
    ] = None,
) -> AlertFile:
    """Generate alert rules for profiles, as the text of a file with remarks. Writes nothing.

    `ttft_seconds` is how late a first token may be; with `run_id`, it is what that benchmark run measured. Raise
    `errors.UsageError` for a `form` that does not exist, and for a run that has no such figure or measured another
    model.
    """
    if form not in _FORMATS:
        raise UsageError(f"`{form}` is not a format of alerts.", hint=f"There are: {', '.join(_FORMATS)}.")
    loaded = loading.profiles(profiles)
    limit, source, origin = ttft_seconds, "", ""
    if run_id is not None:
        limit, source, origin = _measured_limit(workspace, loaded, run_id, ttft_seconds)
    pins = workspace.adapters.pins.read()
    sized = [loading.sized(profile, pins) for profile in loaded]
    deployments = [watched(each, ttft_seconds=limit, ttft_source=source) for each in sized]
    if limit is not None and not any(deployment.completes for deployment in deployments):
        require_completions(sized[0], "no first token can be late")
    _check_names(deployments)
    source_remarks = [f"Warning: {source}"] if source else []
    return AlertFile(
        text=_text(form, deployments), remarks=(*source_remarks, *_remarks(form, deployments)), origin=origin
    )


def _measured_limit(
    workspace: Workspace, profiles: Sequence[Profile], run_id: str, ttft_seconds: float | None
) -> tuple[float, str, str]:
    """Return seconds, what must be said about them wherever they are written, and how they were found.

    Raise `errors.UsageError` for a run that has no such figure, or that measured another model.
    """
    if ttft_seconds is not None or len(profiles) > 1:
        raise UsageError("-run works with one profile, and without -ttft.", hint="Name one profile, and no -ttft.")
    deployment = loading.sized(profiles[0], workspace.adapters.pins.read())
    run = stored_runs(workspace.adapters).find(run_id)
    if run.subject.model_id and run.subject.model_id != deployment.model_id:
        raise UsageError(
            f"Run {run.id} measured {run.subject.model_id}, and {deployment.name} serves {deployment.model_id}."
        )
    target = ttft_target(run, (point for points in operating_points(run).values() for point in points))
    if target is None:
        raise UsageError(f"Run {run.id} has no trusted time to the first token.", hint="Use -ttft SECONDS.")
    streams, context_tokens = target.cell.point.concurrency, target.cell.point.context_tokens
    prompt = "prompts of unknown length" if context_tokens is None else f"{context_tokens:,} tokens"
    origin = (
        f"First tokens: {target.seconds:g} s, from {ROOM:g} times the {target.measured:.3g} s of run {run.id} at "
        f"{streams} streams of {prompt}."
    )
    return target.seconds, target.source, origin


def _text(form: str, deployments: Sequence[Watched]) -> str:
    if form == _DASHBOARD:
        return formats.dashboard_text(dashboard(deployments))
    names = ", ".join(deployment.name for deployment in deployments)
    return formats.documents(_FORMATS[form].format(names=names), FORMATS[form](deployments))


def _check_names(deployments: Sequence[Watched]) -> None:
    """Raise `errors.UsageError` for a name that two profiles have: their rules would be one group, twice."""
    names = [deployment.name for deployment in deployments]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise UsageError(f"Two profiles are named {duplicate}.", hint="A deployment has one profile.")


def _remarks(form: str, deployments: Sequence[Watched]) -> list[str]:
    """Return what a reader of the file alone would miss."""
    names = [deployment.name for deployment in deployments if not deployment.tells_metrics]
    silent = [
        f"Warning: {name} has --disable-log-stats: its engine has no metrics, and only VllmDown can fire."
        for name in names
    ]
    silent += [
        f"Note: {deployment.name} generates no tokens, so it has no figures of first tokens."
        for deployment in deployments
        if not deployment.completes
    ]
    completing = [deployment for deployment in deployments if deployment.completes]
    if form not in _WITH_RULES or not completing:
        return silent
    limit = completing[0].ttft_seconds
    if limit is None:
        how = "-ttft SECONDS sets the limit, -run ID takes it from a measurement."
        return [*silent, f"There is no rule for the time to the first token: {how}"]
    edges = around(limit)
    if edges is None:
        return silent
    low, high = edges
    coarse = f"Note: vLLM counts first tokens up to {low:g} s and up to {high:g} s; {limit:g} s is interpolated."
    return [*silent, f"{coarse} `-ttft {high:g}` is exact."]


OPERATION = Operation(
    run=alerts,
    results=(AlertFile,),
    access=Access.OFFLINE,
    title="Generate alerts",
    tool="alerts",
)
