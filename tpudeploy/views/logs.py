"""A boot log, explained: the cause with its line and what to do, or the phases of a start with their seconds."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tpudeploy.domain.bootlog import Cause, Phase, Reading
from tpudeploy.views import words
from tpudeploy.views.paint import Paint

# What a phase's own word is too short for.
_PHASES = {
    "boot": "machine boots",
    "docker": "docker",
    "image": "image",
    "secrets": "secrets",
    "mirror": "weights fetched",
    "cache": "compile cache",
    "container": "container starts",
    "imports": "imports, flags",
    "engine": "engine starts",
    "weights": "weights",
    "compile": "graphs compiled",
    "warm-up": "warm-up",
}
_BAR = 40


def explained(of: Reading, paint: Paint, *, width: int | None) -> str:
    """`width` as in `views.zones`."""
    blocks = []
    if of.cause is not None:
        blocks.append("\n".join(_cause(of.cause, paint, width)))
    if of.phases and (of.cause is None or len(of.phases) > 1):
        blocks.append("\n".join(_timeline(of, paint)))
    if of.notes:
        blocks.append("\n".join(_notes(of, paint, width)))
    return "\n\n".join(blocks) or "Nothing in this log is a boot's: no phase, no cause."


def _cause(of: Cause, paint: Paint, width: int | None) -> Iterator[str]:
    yield from words.wrapped(f"{paint.red(of.what)} ({of.signature})", width, indent="")
    who = f"{of.line.process}: " if of.line.process else ""
    yield from words.wrapped(f"  line {of.line.number}  {who}{words.plain(of.line.text.strip())}", width, indent="    ")
    yield ""
    yield from words.wrapped(f"What to do: {of.remedy}", width, indent="  ")


def _timeline(of: Reading, paint: Paint) -> Iterator[str]:
    """A bar a phase, all on one scale, each where its time is."""
    end = "it serves" if of.is_serving else "it did not serve"
    yield f"{paint.bold(words.duration(of.seconds))} until {'it serves' if of.is_serving else 'the end of the log'}"
    yield from bars(of, paint, of.phases)
    if not of.is_serving and of.cause is None:
        yield paint.yellow(f"The log ends there: {end}, and nothing in it says why.")


def bars(of: Reading, paint: Paint, marked: Collection[Phase]) -> Iterator[str]:
    """A line a phase; those that are `marked` in full, what ran beside them in outline."""
    width = max(len(named(of, phase)) for phase in of.phases)
    for phase in of.phases:
        took = "unfinished" if phase.seconds is None else words.duration(phase.seconds)
        bar = _bar(of, phase, "█" if phase in marked or phase.seconds is None else "░")
        yield f"  {named(of, phase).ljust(width)}  {took.rjust(10)}  {paint.dim(bar)}".rstrip()


def named(of: Reading, phase: Phase) -> str:
    name = _PHASES.get(phase.name, phase.name)
    return f"{of.graphs} {name}" if phase.name == "compile" else name


def _bar(of: Reading, phase: Phase, block: str) -> str:
    whole = of.seconds or 1.0
    left = round(_BAR * phase.began / whole)
    seconds = phase.seconds if phase.seconds is not None else of.seconds - phase.began
    return " " * left + block * max(1, round(_BAR * seconds / whole))


def _notes(of: Reading, paint: Paint, width: int | None) -> Iterator[str]:
    yield paint.dim("Looks like trouble, and is none:")
    for line, why in of.notes:
        said = words.plain(line.text.strip())
        yield from words.wrapped(f"  line {line.number}  {said[:100]}: {why}.", width, indent="    ")
