"""Failed landings: the places that they count against, for how long, and what they mean for a slice that is up there.

A landing fails where Google grants a slice that does not last: its provisioning ends in an error or never ends, or it
is preempted before it has been up for LASTING. A refusal says that a place has nothing now. A failed landing
says that what it gives is worth nothing, and costs minutes of waiting, and money.

* A place with failed landings is *doubtful*. It is requested again after a hold that doubles with each failure in a
  row: from minutes where nothing came up, from hours where chips were billed. Where no other place can be hoped for,
  waiting longer gains nothing, and the hold is that of a full place. The same goes while every other place was refused
  in the last minutes, if the failure cost nothing but time.
* A failure is forgotten after twice its hold, and as soon as a slice has lasted there.
* A run begins with what other runs saw: a failure in the capacity history counts as one of its own, as long as the
  history weighs against the place (reconcile/capacity_score.py). So neither a lost state nor another deployment trusts
  the place again too early.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from tpudeploy.domain.deployment import Candidate, Place, Provisioning
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.slices import Refusal, RefusalScope, Remedy
from tpudeploy.domain.state import Attempt, Record, RefusalRecord

PREEMPTED = "preempted"
# A person reported the machine of a slice: Google may grant the same machine there again.
HOST_FAULT = "host-fault"
# Seconds: a boot takes up to 15 minutes, and after it the slice has to serve for a while.
LASTING = 1800.0
# Seconds of the first hold, by what the failure cost; the factor of each further one; seconds of the longest.
_BILLED, _UNBILLED, _GROWTH, _LONGEST = 7200.0, 600.0, 2.0, 86400.0
# Seconds of the first hold where no other place can be hoped for.
_ALONE = 60.0
# Seconds for which a refusal says that a place is full now: a round of the search takes less.
_ROUND = 300.0


def early_preemption(attempt: Attempt, now: float) -> Refusal | None:
    """Return what the loss of a granted slice says against its place; None where it lasted, or ended otherwise.

    Only spot is preempted. A flex-start run that ends, and a machine that a person deletes, say nothing about a place.
    A spot machine that a person deleted looks like a preempted one.
    """
    # A slice can be taken away while Google makes it, before a look has found it up.
    granted_at = attempt.granted_at if attempt.granted_at is not None else attempt.provisioning_at
    # Everything else ends by our own release, by its limit or by a person, and says nothing about the place.
    if attempt.provisioning is not Provisioning.SPOT or granted_at is None or attempt.releasing_at is not None:
        return None
    seconds_up = now - granted_at
    # It has paid back its start. Its place is as good as any.
    if seconds_up >= LASTING:
        return None
    return Refusal(
        kind=PREEMPTED,
        message=f"Google took {attempt.name} back {_format_span(seconds_up)} after the grant.",
        remedy=Remedy.NEXT_ZONE,
        scope=RefusalScope.PAIR,
        holds_seconds=_BILLED,
    )


def is_failed_landing(attempt: Attempt, refusal: Refusal) -> bool:
    """Return whether the attempt ended after its grant, for a reason that is about the place alone."""
    was_granted = attempt.provisioning_at is not None or attempt.granted_at is not None
    return (
        was_granted and refusal.scope is RefusalScope.PAIR and refusal.remedy in {Remedy.NEXT_ZONE, Remedy.LOOK_AGAIN}
    )


def hold_seconds(kind: str, times: int) -> float:
    """Return for how long the `times`-th failed landing in a row is held against its place, in seconds.

    `kind` is that of the refusal: a slice that was preempted, or whose machine had a fault, was billed.
    """
    first = _BILLED if _was_billed(kind) else _UNBILLED
    return min(first * _GROWTH ** (times - 1), _LONGEST)


def _was_billed(kind: str) -> bool:
    return kind in {PREEMPTED, HOST_FAULT}


def makes_doubtful(refused: RefusalRecord, now: float) -> bool:
    """Return whether a failed landing still makes its place doubtful: for as long again as it was held against it."""
    return refused.landed and now < refused.until + (refused.until - refused.at)


def doubtful_places(record: Record, now: float) -> frozenset[Place]:
    """Return the places whose last landings failed."""
    return frozenset(r.place for r in record.refusals if makes_doubtful(r, now))


def effective_refusals(
    candidates: Collection[Candidate], record: Record, now: float, patience: Patience
) -> tuple[RefusalRecord, ...]:
    """Return every refusal of the record, lapsed or not, with the end that it has among these candidates."""
    doubtful = doubtful_places(record, now)
    # Only a person can open these places: nothing can be hoped for there.
    closed = {r.place for r in record.refusals if not r.landed and r.until - now > patience.refused}
    stopped_backends = {r.backend for r in record.refusals if r.stops and r.until > now}
    others = [c.place for c in candidates if c.place not in doubtful | closed and c.backend not in stopped_backends]
    # Chips that were billed for nothing are not risked again because the others are full for a moment.
    may_shorten = {True: not others, False: _full_places(record, now).issuperset(others)}
    return tuple(_shorten(r) if r.landed and may_shorten[_was_billed(r.kind)] else r for r in record.refusals)


def _full_places(record: Record, now: float) -> set[Place]:
    """Return the places that were refused in the last minutes, each for itself."""
    looks = (r for r in record.refusals if not r.landed and r.scope is RefusalScope.PAIR)
    return {r.place for r in looks if now - r.at < _ROUND}


def drop_forgiven_landings(
    refusals: Iterable[RefusalRecord], attempts: Iterable[Attempt], now: float
) -> tuple[RefusalRecord, ...]:
    """Return `refusals` without the failed landings of places where one of `attempts` has lasted since."""
    proven_places = {a.place for a in attempts if a.granted_at is not None and now - a.granted_at >= LASTING}
    return tuple(r for r in refusals if not (r.landed and r.place in proven_places))


def add_failed_landings(record: Record, history: Iterable[RefusalRecord], now: float) -> Record:
    """Return `record` with the failed landings that other runs have seen.

    What the record knows about a place itself is exact, and stays.
    """
    own_places = doubtful_places(record, now)
    current = (r for r in drop_forgiven_landings(history, record.attempts, now) if makes_doubtful(r, now))
    additions = [r for r in current if r.place not in own_places]
    # The same object shows the caller that there is nothing to save.
    if not additions:
        return record
    replaced_places = {r.place for r in additions}
    others = (r for r in record.refusals if not (r.landed and r.place in replaced_places))
    return replace(record, refusals=(*others, *additions))


def _shorten(refused: RefusalRecord) -> RefusalRecord:
    seconds = _ALONE * _GROWTH ** min(refused.times - 1, 20)
    return replace(refused, until=min(refused.until, refused.at + seconds))


def _format_span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds / 60:.0f} min"  # noqa: PLR2004 - a minute
