"""What we remember of one deployment: every request ever made that may still exist, and why others were refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Self

from tpudeploy.domain.deployment import Json, Provisioning
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import SliceName, Zone
from tpudeploy.domain.slices import Scope, SliceRef


@frozen
class Attempt:
    """One request for one slice. Written before the request is sent, forgotten when its absence is certain.

    `spec` is what it was asked to be (see Deployment.attributes). `seen` says that the cloud has shown it once: from
    then on a 404 means gone, before that it may only be late. `booted` is the fingerprint of the server that its
    last boot was told to run, `booted_before` the one that a restart ended; `boot_asked` is False between writing
    that down and asking for the reboot. A request that still waits at `expires_at` lapses; None in states of before.
    `deletion` is the operation of the last release. `is_to_go`: a person asked for another in its place. `is_lost`: it
    has been written down that it is dead, so that is no news. `script` is the hash of the startup script that its node
    was last given; "" in states of before. `change` is the change that its node was last told to take over (see
    core/node.py), at `told_at`, "" where it was told none since it was made, or is to be told anew. `is_failed`: what
    came of that was a failure, which was said: a later run tells it anew. `served`: clients may hold its endpoint. From
    `draining_at` on they are sent to another slice. `is_ending`: its run ends soon, and a successor may be asked for.
    `not_in_effect`: the settings that its engine had otherwise than declared when an apply last verified it, each with
    both values.
    `is_spare`: it was released only because another slice was expected to do. `is_reclaimed`: it was, and is wanted
    again after all; until its deletion is seen to have failed, that may still be carried out.
    Times are seconds since the epoch.
    """

    name: str
    project: str
    zone: Zone
    provisioning: Provisioning
    spec: Mapping[str, Json]
    asked_at: float
    booted: str
    expires_at: float | None = None
    operation: str | None = None
    seen: bool = False
    granted_at: float | None = None
    provisioning_at: float | None = None
    releasing_at: float | None = None
    release_reason: str = ""
    deletion: str | None = None
    booted_at: float | None = None
    booted_before: str = ""
    boot_asked: bool = True
    update_asked: str = ""
    update_asked_at: float = 0.0
    served: bool = False
    is_to_go: bool = False
    is_lost: bool = False
    script: str = ""
    change: str = ""
    told_at: float = 0.0
    is_failed: bool = False
    draining_at: float | None = None
    is_ending: bool = False
    not_in_effect: Mapping[str, str] = field(default_factory=dict)
    is_spare: bool = False
    is_reclaimed: bool = False

    @property
    def ref(self) -> SliceRef:
        # Once granted, or seen and released, an absent slice is simply gone: its create operation has no say in that.
        is_settled = self.granted_at is not None or (self.seen and self.releasing_at is not None)
        return SliceRef(
            name=self.name,
            project=self.project,
            zone=self.zone,
            operation=None if is_settled else self.operation,
            provisioning=self.provisioning,
            deletion=self.deletion,
        )


@frozen
class Refused:
    """A refusal and how long it stands. `until` is seconds since the epoch.

    `limit` and `known` are the refusal's (domain/slices.py); `held` is the chips that we held there ourselves, against
    that limit, when it was said. `stops`: only a person can mend it. `times` counts how often in a row it was said.
    `landed`: a landing failed; it came after the grant, not instead of one (core/placement.py).
    """

    zone: Zone
    provisioning: Provisioning
    kind: str
    scope: Scope
    message: str
    at: float
    until: float
    limit: int | None = None
    held: int = 0
    known: bool = True
    stops: bool = False
    times: int = 1
    landed: bool = False


@frozen
class Record:
    """One replica. `home` is the zone of the slice that it had last: where it is asked for first, once that is lost.

    `lost` is the slice that served and was taken away, "" where none was or another one serves in its place.
    """

    index: int
    attempts: tuple[Attempt, ...] = ()
    refusals: tuple[Refused, ...] = ()
    home: Zone | None = None
    lost: str = ""

    def attempt(self, name: str) -> Attempt | None:
        return next((a for a in self.attempts if a.name == name), None)

    def with_attempt(self, attempt: Attempt) -> Self:
        """Add it, or put it in the place of the one with its name."""
        if self.attempt(attempt.name) is None:
            return replace(self, attempts=(*self.attempts, attempt))
        return replace(self, attempts=tuple(attempt if a.name == attempt.name else a for a in self.attempts))

    def without(self, name: str) -> Self:
        return replace(self, attempts=tuple(a for a in self.attempts if a.name != name))


@frozen
class Goal:
    """What a person approved and a run began. Whoever finds it may resume it without asking again.

    `fingerprint` is that of the wanted deployment, or "" to remove all of it. `removes`: what was approved is a
    `destroy`; states of before say so by the fingerprint alone. `approval` names what a pipeline carried it out by: a
    merged commit, for one; "" where a person at a terminal approved it.
    """

    fingerprint: str
    since: float
    who: str
    removes: bool = False
    approval: str = ""

    @property
    def is_removal(self) -> bool:
        """Whether what was begun is a `destroy`, of all of the deployment or of a part."""
        return self.removes or not self.fingerprint


@frozen
class Written:
    """Who wrote a state, and in which operation: `apply`, `state mv`. `at` is in seconds since the epoch."""

    at: float
    by: str
    operation: str


@frozen
class State:
    """One deployment. `lineage` is minted once; `serial` grows with every write; attempt numbers never repeat.

    `written` is None in states of before. `published` is the slice that clients are sent to by `endpoints/NAME.json`,
    "" for none and in states of before; `generation` is that of the file. `begun` counts the applies and destroys that
    began here, renewals aside: an approval holds for the count that its plan was made at, and for no later one.
    """

    deployment: str
    lineage: str
    serial: int = 0
    next_attempt: int = 0
    goal: Goal | None = None
    records: tuple[Record, ...] = ()
    written: Written | None = None
    published: str = ""
    generation: int = 0
    begun: int = 0

    def record(self, index: int) -> Record:
        return next((r for r in self.records if r.index == index), Record(index=index))

    def with_record(self, record: Record) -> Self:
        others = tuple(r for r in self.records if r.index != record.index)
        return replace(self, records=tuple(sorted((*others, record), key=lambda r: r.index)))

    def slice_name(self, replica: int) -> SliceName:
        """The name the next attempt will have."""
        return SliceName(
            deployment=self.deployment, lineage=self.lineage[:8], replica=replica, attempt=self.next_attempt
        )

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        return tuple(a for r in self.records for a in r.attempts)
