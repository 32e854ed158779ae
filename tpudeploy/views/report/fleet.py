"""The page of a fleet: how each deployment stands, where it answers, what it costs. In the manner of a run's page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from tpudeploy.domain.status import DeploymentStatus, ReplicaStatus
from tpudeploy.views import words
from tpudeploy.views.report.html import document, note, section, table, tag, text
from tpudeploy.views.status import describe_unfinished_run, facts, state_text, why_unknown


def fleet(of: Sequence[DeploymentStatus], *, at: float, emulated: bool) -> str:
    """One HTML file, whole. `at` is when it was looked, in seconds since the epoch."""
    replicas = [replica for each in of for replica in each.replicas]
    serving = sum(replica.serving is True for replica in replicas)
    price = sum(replica.usd_per_hour or 0.0 for replica in replicas)
    told = f"{serving} of {len(replicas)} replicas serve; {words.hourly(price)} at list price"
    unknown = sum(each.error is not None for each in of)
    if unknown:
        told += f"; {unknown} of {len(of)} deployments cannot be looked at"
    looked = f"Looked at {datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
    head = [tag("h1", "Deployments"), note(told), note(looked)]
    head += [note("On the emulator: no chip is allocated and nothing is billed.")] if emulated else []
    return document("Deployments", *head, *map(_deployment, of))


def _deployment(of: DeploymentStatus) -> str:
    unknown = "" if of.error is None else note(" ".join(["Unknown.", *why_unknown(of.error)]))
    unfinished = note(describe_unfinished_run(of)) if of.underway else ""
    return section(of.name, unknown, *map(_replica, of.replicas), unfinished)


def _replica(of: ReplicaStatus) -> str:
    title = tag("h3", text(f"{of.address}: {'serving' if of.serving else state_text(of)}"))
    known = [(text(name), text(value)) for name, value in facts(of)]
    return title + (table(("", "what is known"), known, class_="facts") if known else "")
