"""HTML pages, each one file: no script, no network, light and dark, from a phone's width up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from tpudeploy.domain.status import DeploymentStatus
from tpudeploy.text import words
from tpudeploy.views.status import describe_unfinished_run, facts, state_text, why_unknown

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, package: str = __name__, **values: object) -> str:
    """Return a page from a template in the folder of a package. Every value is escaped."""
    return _environment(package).get_template(template).render(values)


@cache
def _environment(package: str) -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader([PackageLoader(name, "") for name in (package, __name__)]),
        undefined=StrictUndefined,
        autoescape=True,
        finalize=_plain,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _plain(value: Any) -> Any:
    """Remove control characters from text that a person or an engine wrote; what a macro returns is markup already."""
    from markupsafe import Markup

    return words.plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def fleet(deployments: Sequence[DeploymentStatus], *, at: float, emulated: bool) -> str:
    """Return the page of a fleet: whether each deployment serves, its address, and what it costs.

    `at` is the time of the observation, in seconds since the epoch.
    """
    replicas = [replica for deployment in deployments for replica in deployment.replicas]
    serving = sum(replica.serving is True for replica in replicas)
    price = sum(replica.usd_per_hour or 0.0 for replica in replicas)
    summary = f"{serving} of {len(replicas)} replicas serve; {words.hourly(price)} at list price"
    unknown = sum(deployment.error is not None for deployment in deployments)
    if unknown:
        summary += f"; {unknown} of {len(deployments)} deployments cannot be observed"
    notes = [summary, f"Observed at {words.moment(at)}"]
    notes += ["On the emulator: no chip is allocated and nothing is billed."] if emulated else []
    rows = [_fleet_row(deployment) for deployment in deployments]
    return render("fleet.html.j2", title="Deployments", notes=notes, deployments=rows)


def _fleet_row(
    deployment: DeploymentStatus,
) -> tuple[str, list[str], list[tuple[str, list[tuple[str, str]]]], list[str]]:
    """Return the name of a deployment, why it is unknown, its replicas with their facts, and its unfinished run."""
    unknown = [] if deployment.replicas else ["Unknown."]
    errors = [] if deployment.error is None else [" ".join([*unknown, *why_unknown(deployment.error)])]
    replicas = []
    for replica in deployment.replicas:
        state = "serving" if replica.serving else state_text(replica)
        replicas.append((f"{replica.address}: {state}", list(facts(replica))))
    unfinished_runs = [describe_unfinished_run(deployment)] if deployment.underway else []
    return deployment.name, errors, replicas, unfinished_runs
