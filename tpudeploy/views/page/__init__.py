"""HTML pages, each one file: no network, light and dark, from a phone's width up. Only charts need a script."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tpudeploy.domain.excerpt import visible
from tpudeploy.domain.serialization import to_json
from tpudeploy.domain.status import DeploymentStatus
from tpudeploy.text import words
from tpudeploy.views.page.chart import Chart
from tpudeploy.views.status import describe_unfinished_run, facts, state_text, why_unknown

_CHART_SCRIPTS = ("uplot/uPlot.iife.min.js", "charts.js")
_FILE_SCRIPT = "static_charts.js"  # draws the charts of a page whose data is in it
_FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def render(template: str, package: str = __name__, *, charts: Sequence[Chart] = (), **values: object) -> str:
    """Return a page that opens from a file. Every value is escaped, and the page allows no script but its own.

    The template is in the folder of a package. An element with the attribute `data-chart` shows the chart of that
    number.
    """
    scripts = [source(name) for name in (*_CHART_SCRIPTS, _FILE_SCRIPT)] if charts else []
    policy = _FILE_POLICY
    if scripts:
        policy += f"; script-src {' '.join(map(_hash, scripts))}"
    content = json.dumps(to_json(tuple(charts)), ensure_ascii=False)
    files = {"policy": policy, "nonce": "", "css": _chart_css() if charts else "", "scripts": scripts[:-1]}
    more = {"chart_script": scripts[-1] if scripts else "", "chart_content": _script_text(content) if charts else ""}
    return _environment(package).get_template(template).render({**files, **more, **values})


def render_live(template: str, package: str, *, nonce: str, **values: object) -> str:
    """Return a page of a server, whose policy allows scripts and styles with this nonce. It draws its charts itself."""
    scripts = [source(name) for name in _CHART_SCRIPTS]
    files = {"policy": "", "nonce": nonce, "css": _chart_css(), "scripts": scripts, "chart_script": ""}
    return _environment(package).get_template(template).render({**files, **values})


def _hash(script: str) -> str:
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


def source(name: str, package: str = __name__) -> Markup:
    """Return a file in the folder of a package as it is."""
    environment = _environment(package)
    assert environment.loader is not None
    return Markup(environment.loader.get_source(environment, name)[0])  # noqa: S704 - a file that we ship


def _chart_css() -> Markup:
    return source("uplot/uPlot.min.css")


def _script_text(content: str) -> Markup:
    """Return a JSON document that can stand in a script element: it ends none."""
    safe = visible(content).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(safe)  # noqa: S704 - without any of these characters it is no markup


@cache
def _environment(package: str) -> Environment:
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
