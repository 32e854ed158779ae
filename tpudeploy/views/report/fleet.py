"""The page of a fleet: whether each deployment serves, its address, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from tpudeploy.domain.status import DeploymentStatus
from tpudeploy.text import words
from tpudeploy.views.report import render
from tpudeploy.views.status import describe_unfinished_run, facts, state_text, why_unknown


def fleet(deployments: Sequence[DeploymentStatus], *, at: float, emulated: bool) -> str:
    """Return the page. `at` is the time of the observation, in seconds since the epoch."""
    replicas = [replica for deployment in deployments for replica in deployment.replicas]
    serving = sum(replica.serving is True for replica in replicas)
    price = sum(replica.usd_per_hour or 0.0 for replica in replicas)
    summary = f"{serving} of {len(replicas)} replicas serve; {words.hourly(price)} at list price"
    unknown = sum(deployment.error is not None for deployment in deployments)
    if unknown:
        summary += f"; {unknown} of {len(deployments)} deployments cannot be observed"
    notes = [summary, f"Observed at {words.moment(at)}"]
    notes += ["On the emulator: no chip is allocated and nothing is billed."] if emulated else []
    rows = [
        (
            deployment.name,
            [] if deployment.error is None else [" ".join(["Unknown.", *why_unknown(deployment.error)])],
            [
                (f"{replica.address}: {'serving' if replica.serving else state_text(replica)}", list(facts(replica)))
                for replica in deployment.replicas
            ],
            [describe_unfinished_run(deployment)] if deployment.underway else [],
        )
        for deployment in deployments
    ]
    return render("fleet.html.j2", title="Deployments", notes=notes, deployments=rows)
