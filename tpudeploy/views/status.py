"""How things stand, one block a replica."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.status import DeploymentStatus, ReplicaStatus
from tpudeploy.views import words
from tpudeploy.views.paint import Paint
from tpudeploy.views.stage import in_words

# Where the state's own word is too short for a person.
_STATES: Mapping[str, str] = {
    "nothing": "not deployed",
    "hidden": "asked for, not visible yet",
    "refused": "refused, and watched until that is certain",
    "waiting": "waiting for chips",
    "dead": "dead: nothing runs there, but it uses quota",
    "leaving": "going away",
}


def status(of: Iterable[DeploymentStatus], paint: Paint, *, emulated: bool) -> str:
    blocks = ["\n".join(_deployment(d, paint)) for d in of]
    note = [paint.yellow("On the emulator: no chip is held and nothing is billed.")] if emulated and blocks else []
    return "\n\n".join([*blocks, *note]) or "Nothing is deployed from here."


def _deployment(of: DeploymentStatus, paint: Paint) -> Iterator[str]:
    if of.error is not None:
        yield f"{paint.bold(of.name)}  {paint.yellow('unknown')}"
        yield from (f"  {line}" for line in why_unknown(of.error))
    for replica in of.replicas:
        yield f"{paint.bold(replica.address)}  {_state(replica, paint)}"
        known = list(facts(replica))
        width = max((len(name) for name, _ in known), default=0)
        yield from (f"  {name.ljust(width)}  {text}" for name, text in known)
    yield from _at_once(of)
    if of.underway:
        yield paint.yellow(unfinished(of))
    if of.lock:
        yield paint.yellow(words.plain(of.lock))


def _at_once(of: DeploymentStatus) -> Iterator[str]:
    """What may be billed at one time: every request that is out may be granted."""
    if of.usd_per_hour_at_once is not None:
        yield (
            f"At most {words.hourly(of.usd_per_hour_at_once)} may be billed at one time, if Google grants every request"
            " that waits. The run that asked gives back what is not needed; if it has ended, the next `apply` does."
        )


def unfinished(of: DeploymentStatus) -> str:
    """Return the sentence about a run that did not finish."""
    return f"An earlier run ({of.underway}) did not reach its end. `{of.continue_with}` continues it."


def why_unknown(error: TpudeployError) -> Iterator[str]:
    """Yield the lines that say why a deployment cannot be looked at, and what to do."""
    yield f"{words.plain(error.message)} [{error.code}]"
    yield from words.plain(error.hint).splitlines()


def facts(of: ReplicaStatus) -> Iterator[tuple[str, str]]:
    """What is known of it, name by name."""
    if not of.slice_name:
        return
    yield "slice", f"{of.slice_name} ({of.accelerator_type}, {of.zone}, {of.provisioning})"
    yield "cloud", of.cloud
    if of.boot:
        told = of.boot_detail if of.stage is None else in_words(of.stage, of.boot_detail)
        yield "boot", f"{of.boot}: {words.plain(told)}" if told else of.boot
    elif of.stage is not None:
        yield "boot", in_words(of.stage, "the machine says nothing of it")
    if of.serving is not None:
        yield "health", "a completion came back" if of.serving else words.plain(of.detail)
    if of.serving and of.detail:
        yield "reach", of.detail
    if of.url:
        yield "endpoint", of.url
    if of.age is not None:
        yield "age", words.duration(of.age)
    if of.ends_in is not None:
        yield "ends in", f"{words.duration(of.ends_in)}: then Google deletes the machine, and apply asks for another"
    if of.lapses_in is not None:
        yield "lapses in", words.duration(max(0.0, of.lapses_in))
    yield from _price(of)


def _price(of: ReplicaStatus) -> Iterator[tuple[str, str]]:
    if of.usd_per_hour_granted is not None:
        most = "" if of.usd_most is None else f", at most ${of.usd_most:.2f} until its run ends"
        yield "price", f"nothing yet; if granted, {words.hourly(of.usd_per_hour_granted)} at list price{most}"
    if of.usd_per_hour is not None:
        yield "price", f"{words.hourly(of.usd_per_hour)} at list price"


def _state(of: ReplicaStatus, paint: Paint) -> str:
    return paint.green(state(of)) if of.serving else paint.yellow(state(of))


def state(of: ReplicaStatus) -> str:
    """Its state in words."""
    return _STATES.get(of.state, of.state)
