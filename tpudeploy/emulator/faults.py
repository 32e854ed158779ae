"""Trouble that a scenario can script: a row for each fault, its effect and its options.

A refusal has its text and its layer in texts.CAUSES. Durations are in seconds of the emulator's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tpudeploy.emulator.compute_engine import texts as compute_texts
from tpudeploy.emulator.machine.facts import Behaviour
from tpudeploy.emulator.texts import CAUSES, CREATE, GROUP_INSERT, INSERT

CREATES = f"{CREATE}|{INSERT}|{GROUP_INSERT}"
DELETES = "queuedResources.delete|compute.instances.delete|compute.regionInstanceGroupManagers.delete"
LISTS = "*.list|*.aggregatedList"


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedFault:
    """`kind` is "refusal"; "life" for how an accepted slice develops; "call" for what happens to one HTTP call.

    `method` is the call that it strikes unless a row says otherwise, or several with | between them; `options` are
    those of a row, with defaults.
    `of_zones`: it is about a zone, so it strikes no call without one, such as a call of another service.
    """

    kind: str
    method: str = CREATES
    options: Mapping[str, Any] = field(default_factory=dict)
    of_zones: bool = False


def _life(**options: Any) -> InjectedFault:
    return InjectedFault(kind="life", options=options)


def _call(method: str = CREATES, **options: Any) -> InjectedFault:
    return InjectedFault(kind="call", method=method, options=options)


# `layer` L1, L2, L3 overrides where a refusal shows, `message` and `code` what it says, `limit` the number in it.
# `zones_available` is the hint in the error of an insert.
_REFUSAL_OPTIONS = {"layer": None, "message": "", "code": None, "limit": 0, "quota": "", "zones_available": ""}
_SLICE_TIMINGS = ("queued", "waiting", "provisioning", "node_ready", "boot", "suspending", "deleting")


def _refusal(name: str, strikes: str) -> InjectedFault:
    """Return the fault of a cause. One that Compute Engine has too strikes the creates of both APIs."""
    is_of_both = strikes == CREATE and name in compute_texts.CAUSES
    return InjectedFault(
        kind="refusal",
        method=CREATES if is_of_both else strikes,
        options=_REFUSAL_OPTIONS,
        of_zones=name == "location-denied",
    )


FAULTS: Mapping[str, InjectedFault] = {
    **{name: _refusal(name, cause.strikes) for name, cause in CAUSES.items() if cause.strikes},
    # The slice waits in ACCEPTED, the old name of the queue.
    "accepted": _life(),
    # It stays in the queue: for ever, or as long as the row holds (`until`, `hours`).
    "wait-for-ever": _life(),
    "no-grant": _life(),
    # It stays in the queue, and its own end passes without effect.
    "overstays": _life(),
    # It stays PROVISIONING, its node appears and disappears every `every` seconds; after `for` it is suspended.
    "provisioning-loop": _life(**{"every": 60.0, "for": 2700.0}),
    # It is reclaimed `after` seconds of ACTIVE, or when it is next `hour` (UTC): PREEMPTED, then gone. With a `notice`,
    # the metadata of its machines say so, and it is taken that number of seconds later.
    "preempt": _life(after=600.0, hour=None, notice=0.0),
    # Its run ends `after` seconds of ACTIVE, whatever the request says.
    "flex-end": _life(after=600.0),
    # Its node is gone `after` seconds of ACTIVE, and the queued resource does not show it.
    "vanish": _life(after=600.0),
    # The host of an instance fails `after` seconds of RUNNING: with automaticRestart it `shows` REPAIRING or TERMINATED
    # for `down` seconds and runs again, else it is TERMINATED.
    "host-error": InjectedFault(
        kind="life", method=INSERT, options={"after": 600.0, "down": 120.0, "shows": "REPAIRING"}
    ),
    # Its maintenance is announced `after` seconds of RUNNING, begins `notice` seconds later, and lasts `window`.
    "maintenance": InjectedFault(
        kind="life",
        method=INSERT,
        options={"after": 600.0, "notice": 3600.0, "window": 600.0, "reason": "PLANNED_UPDATE"},
    ),
    # When it is deleted, its node stays and is billed, and no queued resource names it any more.
    "orphan": _life(),
    # The node's health stays TIMEOUT.
    "never-healthy": _life(),
    # It is accepted, but every look is a 404 for `seconds`; or only lists leave it out.
    "hidden": _life(seconds=70.0),
    "unlisted": _life(seconds=70.0),
    # No look shows it until `seconds` after its create operation has ended, although it lives meanwhile.
    "hidden-after-operation": _life(seconds=60.0),
    # The create operation ends `seconds` late.
    "slow-operation": _life(seconds=300.0),
    # The create operation never ends, whatever becomes of the slice.
    "operation-never-ends": _life(),
    # The create operation ends in an error with this `message` and `code`, and the slice lives.
    "operation-fails": _life(message="", code=None),
    # The slice has other timings.
    "timings": _life(**dict.fromkeys(_SLICE_TIMINGS)),
    # Its machine boots in another way: fields of Behaviour.
    "boot": _life(**{row.name: None for row in fields(Behaviour)}),
    # Carried out, but the connection is reset before the reply; `close` ends it politely (httplib2 then resends).
    "lost-reply": _call(close=False),
    # Carried out, but the reply is 503, or 409.
    "failed-reply": _call(),
    "already-exists": _call(),
    # Not carried out: the connection is reset.
    "connection-refused": _call("*", close=False),
    # The reply takes `seconds`.
    "slow": _call("*", seconds=30.0),
    # An object's bytes arrive, all of them, and wrong.
    "garbled": _call("storage.objects.get"),
    # Accepted, but the delete operation fails a little later.
    "delete-refused": _call(DELETES),
    # Accepted while PROVISIONING, and not carried out; the operation's `outcome` is running, done or failed.
    # `takes_effect`: carried out after all, once the slice is ACTIVE.
    "deletion-ignored": _call(DELETES, outcome="running", takes_effect=False),
    # Accepted and begun, and never carried out: it stays as it is while it is deleted.
    "deletion-hangs": _call(DELETES),
    # A list of queued resources or nodes leaves out the zones that fit `zones`, and says so.
    "unreachable": _call(LISTS, zones="*"),
}
