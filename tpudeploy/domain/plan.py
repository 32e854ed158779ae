"""Plan: the changes that an apply would make, and why. It is data; views draw it, and the engine executes only it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tpudeploy.domain import errors, policy
from tpudeploy.domain.ceiling import Ceiling
from tpudeploy.domain.deployment import Candidate, Deployment, Json
from tpudeploy.domain.diagnostics import Diagnostic, Location, errors_in
from tpudeploy.domain.names import address
from tpudeploy.domain.notify import Notify
from tpudeploy.domain.serialization import to_json

# The errors that can stop one deployment of a plan, by the code of the diagnostic. Any other code is of a check.
_STOPPING: tuple[type[errors.TpudeployError], ...] = (
    errors.StateUnreadable,
    errors.StateTooNew,
    errors.StateError,
    errors.Fault,
    errors.Denied,
    errors.CloudError,
    errors.NotObserved,
    errors.Unapproved,
)
_OF_PROFILES = "TPU1"  # the prefix of all codes of problems in a profile


class Effect(StrEnum):
    """The effect of a change of one attribute."""

    REPLACE = "replace"
    RESTART = "restart"
    COSMETIC = "cosmetic"


class Action(StrEnum):
    """What happens to one replica."""

    NO_OP = "no-op"
    CREATE = "create"
    UPDATE = "update"
    RESTART = "restart"
    REPLACE = "replace"
    DESTROY = "destroy"


class Mode(StrEnum):
    """The purpose of a plan: reach the profiles, delete everything, or only record the observed state."""

    NORMAL = "normal"
    DESTROY = "destroy"
    REFRESH_ONLY = "refresh-only"


class Reason(StrEnum):
    """The reason beyond the changed attributes. It is for display only; never decide on it."""

    NONE = ""
    RESUMES = "an earlier run began this, and this run continues it"
    REQUESTED = "as requested"
    FAILED = "its server did not start, and is booted again"
    GONE = "its slice was deleted outside tpudeploy"
    LOST = "its slice was preempted, failed, or reached the end of its run"
    DESTROYED = "an earlier `tpudeploy destroy` deleted its slice"
    SURPLUS = "the profile has fewer replicas"
    ENDED = "its end has come"
    UNROUTED = "the profile has no router on a VM"
    LEFTOVER = "requests of an earlier run still exist"
    DRIFTED = "its machine differs from what was last applied to it"
    UNDONE = "its metadata still names the change that failed and was undone; the server that runs is the right one"
    BLUE_GREEN = "blue-green: a second slice serves before this one is deleted"
    RENEWS = "its run ends, and a replacement takes over before that"
    ADOPTED = "found in the cloud: no state tracked it"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One attribute. `origin` is the location of the new value; None for a default.

    `is_drift`: `before` is the live value, which tpudeploy did not apply; `applied` is the last applied value.
    """

    path: str
    before: Json
    after: Json
    effect: Effect
    origin: Location | None = field(default=None, compare=False)
    is_drift: bool = False
    applied: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What happens to one replica. `slice_name` is the slice it has now, "" for none.

    `before` and `after` are all its attributes, of which `fields` are those that differ. `usd_per_hour_before` and
    `_after` are list prices of the whole slice, None where unknown; `_most` is that of the dearest place that may be
    asked, of those that are known. `ceiling` is what may be billed at one time: what runs, and while a slice is
    acquired the old one and every request that is out, `slices_at_once` of them (`slices_at_first` before any place is
    full), with `seconds_at_once` as the longest that the others take to be given back. `usd_per_hour_at_once` is the
    ceiling of an acquisition if it's known.
    `places` are those that may be requested, the first one first, if they are at several APIs. `max_run_seconds` after
    the grant Google deletes the machine. `kv_tokens` are what the cache of the slice holds, `start_seconds` a cold
    start; `downtime_seconds` is how long a restart should take, at least (the compile cache still fits) and at most.
    None where that is not known.

    `hands_over`: what is replaced would fit, and goes only once another one serves in its place; `run_ends_at` where
    that is because its run ends, in seconds since the epoch. `boots_anew` is a slice that is on its way to take over,
    and whose server did not come up. `replicas_serving` is the number of other replicas that serve while this one is
    interrupted. It takes no new requests before that, for up to `drain_seconds_most`. `waits` is why that does not
    begin yet, e.g. `until gemma[1] serves`, or "". `sees_all_requests`: its machine can know that the deployment is
    idle, and delete the slice then.
    """

    deployment: str
    replica: int
    action: Action
    reason: Reason = Reason.NONE
    fields: tuple[FieldChange, ...] = ()
    unchanged: int = 0
    slice_name: str = ""
    zone: str = ""
    create_before_destroy: bool = True
    hands_over: bool = False
    run_ends_at: float | None = None
    boots_anew: str = ""
    usd_per_hour_before: float | None = None
    usd_per_hour_after: float | None = None
    usd_per_hour_most: float | None = None
    slices_at_once: int = 1
    slices_at_first: int = 1
    usd_per_hour_at_once: float | None = None
    ceiling: Ceiling = field(default_factory=Ceiling)
    seconds_at_once: float | None = None
    max_run_seconds: float | None = None
    places: tuple[Candidate, ...] = ()
    kv_tokens_before: int | None = None
    kv_tokens_after: int | None = None
    start_seconds_before: float | None = None
    start_seconds_after: float | None = None
    downtime_seconds_least: float | None = None
    downtime_seconds_most: float | None = None
    replicas_serving: int = 0
    drain_seconds_most: float | None = None
    waits: str = ""
    sees_all_requests: bool = True
    before: Mapping[str, Json] = field(default_factory=dict, repr=False)
    after: Mapping[str, Json] = field(default_factory=dict, repr=False)

    @property
    def address(self) -> str:
        return address(self.deployment, self.replica)

    def to_dict(self) -> dict[str, object]:
        """Return the differences; the plan's `resource_changes` has all attributes."""
        fields = {name: value for name, value in to_json(self).items() if name not in {"before", "after"}}
        return {"address": self.address, **fields}


DESTROY_INTERRUPTED = "deleted by a `tpudeploy destroy` that was interrupted"  # the detail of a missing slice


class DriftKind(StrEnum):
    """What happened to a slice outside tpudeploy."""

    CHANGED = "changed"
    DELETED = "deleted"
    LOST = "lost"
    UNHEALTHY = "unhealthy"
    NOT_IN_EFFECT = "not in effect"  # its engine does not run with the applied settings
    UNTRACKED = "untracked"  # its request was forgotten before it appeared
    MISSING = "missing"  # no slice exists any more, and the state knows it


@dataclass(frozen=True, slots=True, kw_only=True)
class Drifted:
    """One attribute that differs from the last applied value."""

    path: str
    applied: Json
    live: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceDrift:
    """A difference between a slice and its last applied state. `detail` is the cloud's text, or a probe's result."""

    deployment: str
    replica: int
    kind: DriftKind
    slice_name: str
    zone: str
    fields: tuple[Drifted, ...] = ()
    detail: str = field(default="", compare=False)
    before: Mapping[str, Json] = field(default_factory=dict, repr=False, compare=False)

    @property
    def address(self) -> str:
        return address(self.deployment, self.replica)

    @property
    def is_news(self) -> bool:
        """Whether the state can record it: it does not know it yet, and tracks its slice."""
        return self.kind not in {DriftKind.MISSING, DriftKind.UNTRACKED}

    @property
    def is_half_destroyed(self) -> bool:
        """Whether a `destroy` was to delete it, and has not ended."""
        return self.detail == DESTROY_INTERRUPTED

    def to_dict(self) -> dict[str, object]:
        fields = {name: value for name, value in to_json(self).items() if name != "before"}
        return {"address": self.address, **fields}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicePrint:
    """One live slice as the plan observed it. `print` is the same until something relevant changes."""

    name: str
    print: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterPlan:
    """The router of a deployment before and after a plan, by its keys in the profile; None without one.

    `replicas` is the number of replicas that it sends requests to after the plan.
    """

    before: Mapping[str, Json] | None
    after: Mapping[str, Json] | None
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalePlan:
    """The bounds of the number of replicas, which an approval covers, and the number that the plan begins with.

    `usd_per_hour_most` is the list price that no step of scaling goes above, None if it is unknown; `ceiling` is the
    same with what is known of it. `ceiling_of_additions` is what may be billed at one time beside the plan's changes
    while the missing replicas are acquired.
    """

    min: int
    max: int
    replicas: int
    usd_per_hour_most: float | None
    ceiling: Ceiling = field(default_factory=Ceiling)
    ceiling_of_additions: Ceiling = field(default_factory=Ceiling)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One deployment's part of a plan. `deployment` is None if it is to be removed.

    `lineage` and `serial` name the state that it was planned against; "" and 0 without one. `adopts` are the slices
    that a new state begins with, `replaces` those to replace on request. `targets` are the replicas that the plan
    covers; None for all. `seen` are the preconditions of the slices that it changes, `drift` the changes from outside.
    `renews` are the slices whose runs end, which get successors. `to_verify` are the slices whose engines did not run
    with the declared settings at the last verification: an apply verifies them again, even without a change.
    `begun` is how many applies and destroys had begun in that state (see `State.begun`). `approval` names what approved
    this plan in a pipeline, or the run that it resumes; "" for a person. `errors` are the diagnostics that stop this
    deployment and no other. `scale` are the bounds of a deployment that may be scaled.
    `starts`: it has ended, and starts again. `forgets`: its machines deleted themselves at its end, and the state still
    tracks them. `notify` are those that the run tells, also of a removal.
    """

    name: str
    deployment: Deployment | None
    fingerprint: str
    lineage: str
    serial: int
    resumes: bool
    changes: tuple[Change, ...]
    adopts: tuple[str, ...] = ()
    seen: tuple[SlicePrint, ...] = ()
    drift: tuple[SliceDrift, ...] = ()
    replaces: tuple[str, ...] = ()
    targets: tuple[int, ...] | None = None
    renews: tuple[str, ...] = ()
    to_verify: tuple[str, ...] = ()
    begun: int = 0
    approval: str = ""
    errors: tuple[Diagnostic, ...] = ()
    scale: ScalePlan | None = None
    starts: bool = False
    forgets: bool = False
    notify: Notify = field(default=Notify())

    @property
    def is_renewal(self) -> bool:
        """Whether it only requests successors for runs that end, as `on_run_end: renew` requires."""
        changes = [change for change in self.changes if change.action is not Action.NO_OP]
        return bool(changes) and all(c.run_ends_at is not None and not c.fields for c in changes)

    @property
    def is_removal(self) -> bool:
        """Whether nothing of it is to exist at the end: it is removed, or its own end has come."""
        return self.deployment is None or self.deployment.ended is not None

    @property
    def replicas(self) -> tuple[int, ...]:
        """The indexes of the replicas that are to exist at the end."""
        indexes = () if self.deployment is None else self.deployment.replica_indexes
        return tuple(index for index in indexes if self.covers(index))

    @property
    def router(self) -> RouterPlan | None:
        """The router that it has or loses, or None."""
        before = next(filter(None, (_router_keys(change.before) for change in self.changes)), None)
        after = None if self.deployment is None else _router_keys(self.deployment.attributes) or None
        # Where only a part of the replicas is deleted, the router stays in front of the others.
        if (before is None and after is None) or (self.deployment is None and self.targets is not None):
            return None
        return RouterPlan(
            before=before, after=after, replicas=0 if self.deployment is None else len(self.deployment.replica_indexes)
        )

    def covers(self, replica: int) -> bool:
        """Return whether the plan covers this replica. Other replicas are left as they are."""
        return self.targets is None or replica in self.targets

    def to_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "lineage": self.lineage,
            "serial": self.serial,
            "resumes": self.resumes,
            "adopts": list(self.adopts),
            "replaces": list(self.replaces),
            "renews": list(self.renews),
            "starts": self.starts,
            "forgets": self.forgets,
            "to_verify": list(self.to_verify),
            "targets": None if self.targets is None else list(self.targets),
            "changes": [change.to_dict() for change in self.changes],
            "drift": [drift.to_dict() for drift in self.drift],
            "size": None if self.deployment is None else self.deployment.budget.to_dict(),
            "scale": None if self.scale is None else to_json(self.scale),
            "router": None if self.router is None else to_json(self.router),
        }


def _router_keys(attributes: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the keys of `router`, without those that are not set."""
    return {path.removeprefix("router."): v for path, v in attributes.items() if path.startswith("router.")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A plan. `made_at` is in seconds since the epoch. `backend` holds its states, "" for the project's own folder.

    `source` names the file that it was read from. Such a plan is valid only while state and slices are unchanged.
    """

    goals: tuple[Goal, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    mode: Mode = Mode.NORMAL
    made_at: float = 0.0
    backend: str = ""
    source: str = field(default="", compare=False)

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(c for g in self.goals for c in g.changes)

    @property
    def drift(self) -> tuple[SliceDrift, ...]:
        return tuple(d for g in self.goals for d in g.drift)

    @property
    def ceiling(self) -> Ceiling:
        """The most that may be billed at one time while it is applied, what runs already and scaling included."""
        additions = (goal.scale.ceiling_of_additions for goal in self.goals if goal.scale is not None)
        return sum([*(change.ceiling for change in self.changes), *additions], Ceiling())

    @property
    def is_empty(self) -> bool:
        """Whether applying it would do nothing."""
        if self.mode is Mode.REFRESH_ONLY:
            return not self.drift
        return all(c.action is Action.NO_OP for c in self.changes)

    @property
    def never_applied(self) -> tuple[str, ...]:
        """The deployments that have no state yet, so that nothing of them can have drifted."""
        return tuple(goal.name for goal in self.goals if goal.deployment is not None and not goal.lineage)

    @property
    def has_work(self) -> bool:
        """Whether applying it would do anything, including another verification of an engine."""
        return not self.is_empty or any(goal.to_verify for goal in self.goals)

    @property
    def has_news(self) -> bool:
        """Whether its drift contains news for the states, which a refresh can record."""
        return any(d.is_news for d in self.drift)

    @property
    def is_complete(self) -> bool:
        """Whether it covers all replicas of its deployments."""
        return all(goal.targets is None for goal in self.goals)

    @property
    def is_forbidden(self) -> bool:
        """Whether a check forbids it."""
        return bool(errors_in(self.diagnostics))

    @property
    def stopping_errors(self) -> tuple[Diagnostic, ...]:
        """The errors that stop the whole plan: those not about one deployment, and all errors if no deployment is left.

        A plan from a file is executed exactly, or not at all.
        """
        goal_errors = [error for goal in self.goals for error in goal.errors]
        all_errors = errors_in(self.diagnostics)
        if self.source or all(goal.errors for goal in self.goals):
            return all_errors
        return tuple(d for d in all_errors if d not in goal_errors)

    @property
    def worst_error(self) -> errors.TpudeployError | None:
        """The worst error that stops the plan or one of its deployments, or None."""
        return errors.worst(map(stopped_by, errors_in(self.diagnostics)))

    @property
    def needs_approval(self) -> bool:
        """Whether it contains a change that is not approved yet."""
        if self.mode is Mode.REFRESH_ONLY:
            return self.has_news
        return any(c.action is not Action.NO_OP for g in self.goals if not g.resumes for c in g.changes)

    def to_dict(self) -> dict[str, object]:
        """Return the document of `plan --json` and `show --json`: Terraform's keys for policy tools, and our own."""
        return {
            "format": "tpudeploy.plan/1",
            "type": "plan",
            "mode": self.mode,
            "is_empty": self.is_empty,
            "applyable": not self.is_forbidden and not self.is_empty,
            "complete": self.is_complete,
            "errored": self.is_forbidden,
            "ceiling": to_json(self.ceiling),
            "resource_changes": [policy.resource_change(change) for change in self.changes],
            "resource_drift": [policy.resource_drift(drift) for drift in self.drift],
            "checks": policy.checks(self.diagnostics),
            "goals": [goal.to_dict() for goal in self.goals],
            "diagnostics": to_json(self.diagnostics),
        }


def stopped_by(diagnostic: Diagnostic) -> errors.TpudeployError:
    """Return the error for a diagnostic that stops a deployment or a plan."""
    if diagnostic.code.startswith(_OF_PROFILES):
        return errors.ProfileInvalid(diagnostic.message, hint=diagnostic.hint, diagnostics=[diagnostic])
    kind = next((kind for kind in _STOPPING if kind.code == diagnostic.code), errors.CheckFailed)
    return kind(diagnostic.message, hint=diagnostic.hint)
