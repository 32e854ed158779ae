"""How things stand, one block a replica."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpudeploy.domain.status import DeploymentStatus, ReplicaStatus
from tpudeploy.views import words
from tpudeploy.views.paint import Paint


def status(of: Iterable[DeploymentStatus], paint: Paint, *, emulated: bool) -> str:
    blocks = ["\n".join(_deployment(d, paint)) for d in of]
    note = [paint.yellow("On the emulator: no chip is held and nothing is billed.")] if emulated else []
    return "\n\n".join([*blocks, *note]) or "Nothing is deployed from here."


def _deployment(of: DeploymentStatus, paint: Paint) -> Iterator[str]:
    for replica in of.replicas:
        yield f"{paint.bold(replica.address)}  {_state(replica, paint)}"
        facts = list(_facts(replica))
        width = max((len(name) for name, _ in facts), default=0)
        yield from (f"  {name.ljust(width)}  {text}" for name, text in facts)
    if of.underway:
        yield paint.yellow(f"  In progress, {of.underway}; `tpudeploy apply` goes on.")


def _facts(of: ReplicaStatus) -> Iterator[tuple[str, str]]:
    if not of.slice_name:
        return
    yield "slice", f"{of.slice_name} ({of.accelerator_type}, {of.zone}, {of.provisioning})"
    yield "cloud", of.cloud
    if of.boot:
        yield "boot", of.boot
    if of.serving is not None:
        yield "health", "a completion came back" if of.serving else of.detail
    elif of.detail:
        yield "detail", of.detail
    if of.url:
        yield "endpoint", of.url
    if of.age is not None:
        yield "age", words.duration(of.age)
    if of.ends_in is not None:
        yield "ends in", words.duration(of.ends_in)
    if of.usd_per_hour is not None:
        yield "price", f"{words.hourly(of.usd_per_hour)} at list price"


def _state(of: ReplicaStatus, paint: Paint) -> str:
    return paint.green(of.state) if of.serving else paint.yellow(of.state)
