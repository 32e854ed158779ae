"""The text of a rehearsal: what it will do, its report, and the page of the facts that are not verified."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tpudeploy.features.rehearsal import FactFinding, FactVerdict
from tpudeploy.features.rehearsal.budget import RUNS, Step, worst_case
from tpudeploy.features.rehearsal.facts import FACTS, STAGES, RehearsalStage, facts_of
from tpudeploy.text.paint import Paint

_FACTS = {fact.id: fact for fact in FACTS}
_COST: Mapping[RehearsalStage, str] = {
    RehearsalStage.READ: "nothing",
    RehearsalStage.QUEUE: "nothing, or minutes of one chip if it is granted",
    RehearsalStage.INSERT: "nothing, or minutes of one chip if it is granted",
    RehearsalStage.INSTANCE: f"{RUNS[RehearsalStage.INSTANCE] / 60:.0f} minutes of one spot chip",
    RehearsalStage.SLICE: f"at most {RUNS[RehearsalStage.SLICE] / 60:.0f} minutes of one flex-start chip",
    RehearsalStage.ELSEWHERE: "-",
}
_HEAD = """\
# What is not verified

tpudeploy hasn't run against a live project yet. It relies on the facts below, none of them verified. The code copes
whether or not they hold. `tpudeploy rehearse --max-cost USD` checks them on your project, cheapest first, and deletes
everything it creates. This page is generated from `tpudeploy/features/rehearsal/facts.py`.
"""
_BOUND = (
    "This holds even if this process is killed, or if Google ignores a deletion: each request says how long its slice",
    "may run, and Google ends it then. An hour of the disk and of the external address of each machine is included.",
    "Data that a machine sends to the internet and its logs are not included: some megabytes.",
)
_TITLES: Mapping[FactVerdict, str] = {
    FactVerdict.DIFFERS: "Different from what tpudeploy believes",
    FactVerdict.NOT_SEEN: "Not seen",
    FactVerdict.AS_BELIEVED: "As believed",
}


def proposal(steps: tuple[Step, ...], *, project: str, ceiling: float, paint: Paint) -> str:
    """Return what a rehearsal will do, with its costs, before it starts."""
    lines = [f"{paint.bold('Rehearsal')} in {project}, with a ceiling of ${ceiling:.2f}:", ""]
    lines += [_step_line(step) for step in steps]
    lines += ["", f"It costs at most ${worst_case(steps):.2f} at list price."]
    if any(step.is_allowed and step.usd for step in steps):
        lines += _BOUND
    return "\n".join(lines)


def report(findings: Iterable[FactFinding], *, usd: float, ceiling: float, paint: Paint) -> str:
    """Return the report, what differs first."""
    rows = tuple(findings)
    lines: list[str] = []
    for verdict, title in _TITLES.items():
        own = [finding for finding in rows if finding.verdict is verdict]
        if own:
            lines += ["", paint.bold(f"{title} ({len(own)})")]
        for finding in own:
            lines.append(f"  {finding.fact}: {finding.observation}")
            if verdict is FactVerdict.DIFFERS:
                lines.append(f"    believed: {_FACTS[finding.fact].belief}")
    lines += ["", f"Spent at list price: ${usd:.2f}."]
    if usd > ceiling:
        lines.append(f"That is above the ceiling of ${ceiling:.2f}: Google did not end a slice at the end of its run.")
    return "\n".join(lines).strip("\n")


def page() -> str:
    """Return docs/not-verified.md: every fact, where it is used, how a rehearsal looks at it, and what that costs."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield from _HEAD.splitlines()
    for stage in RehearsalStage:
        yield ""
        yield f"## {STAGES[stage][0].upper()}{STAGES[stage][1:]}"
        yield ""
        yield f"Cost: {_COST[stage]}." if stage is not RehearsalStage.ELSEWHERE else "A rehearsal cannot look at these."
        yield ""
        yield "| fact | what tpudeploy believes | used in | the rehearsal |"
        yield "|---|---|---|---|"
        for fact in facts_of(stage):
            yield f"| {fact.id} | {fact.belief} | `{fact.used_in}` | {fact.look} |"


def _step_line(step: Step) -> str:
    what = f"{STAGES[step.stage]} ({len(facts_of(step.stage))} facts)"
    if step.usd is None:
        return f"  -  {what}: left out, no zone with a known price can be asked"
    where = "" if step.zone is None else f", {step.provisioning} in {step.zone}"
    if not step.is_allowed:
        return f"  -  {what}{where}: left out, it can cost ${step.usd:.2f}"
    if not step.run_seconds:
        return f"  +  {what}: at most ${step.usd:.2f}"
    return f"  +  {what}{where}, at most {step.run_seconds / 60:.0f} minutes: at most ${step.usd:.2f}"
