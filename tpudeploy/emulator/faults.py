"""Trouble that a scenario can script: one row a fault, what it does and what it may be told.

`cause:` rows refuse a request (the text and its layer stand in texts.py); the others are told apart by `kind`:
life  how a slice that was taken grows up      call  what happens to one HTTP call
Durations in seconds of the emulator's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tpudeploy.emulator.machine.facts import Behaviour

CREATE = "queuedResources.create"
DELETE = "queuedResources.delete"
LISTS = "*.list"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`method` is the call it strikes unless a row says otherwise; `options` what a row may set, with defaults.

    `of_zones`: it is about a zone, so that it strikes no call that names none, such as one of another service.
    """

    what: str
    kind: str
    method: str = CREATE
    options: Mapping[str, Any] = field(default_factory=dict)
    of_zones: bool = False


def _refusal(what: str, method: str = CREATE, *, of_zones: bool = False) -> Fault:
    """`layer` L1, L2, L3 overrides where it shows, `message` and `code` what it says, `limit` the number in it."""
    options = {"layer": None, "message": "", "code": None, "limit": 0, "quota": ""}
    return Fault(what=what, kind="refusal", method=method, options=options, of_zones=of_zones)


_LIFE = "life"
_CALL = "call"

FAULTS: Mapping[str, Fault] = {
    # refusals: name = row of texts.CAUSES
    "stockout": _refusal("no capacity in the zone"),
    "insufficient-capacity": _refusal("no capacity, in other words"),
    "reserved-stockout": _refusal("reservation wording, also seen without a reservation"),
    "internal-error": _refusal("code 13: PROVISIONING, SUSPENDING, FAILED"),
    "quota-zero": _refusal("quota limit 0 in the region"),
    "quota-exhausted": _refusal("quota used up in the region"),
    "ip-quota": _refusal("no external address left, found late"),
    "rate-limit": _refusal("too many creates a minute"),
    "zone-unsupported": _refusal("the zone has no TPUs"),
    "type-unsupported": _refusal("the zone has TPUs, not this type"),
    "model-unsupported": _refusal("this provisioning model is not offered for the type there"),
    "no-queueing": _refusal("the type cannot be queued for there"),
    "too-big": _refusal("more chips than one request may ask for"),
    "queue-closed": _refusal("code 7 that is not IAM: this queue is not for us"),
    "reservation-missing": _refusal("only reservations are served there"),
    "reservation-queue": _refusal("the reservation cannot be queued for"),
    "spot-mismatch": _refusal("the provisioning model contradicts itself"),
    "runtime-unknown": _refusal("no such runtime version"),
    "expired": _refusal("the request waited as long as it may"),
    "unauthenticated": _refusal("the caller's credentials are no longer good", "*"),
    "iam-denied": _refusal("the caller lacks a role", "*"),
    "api-off": _refusal("the API is not enabled", "*"),
    "location-denied": _refusal("the zone is not for this project", "*", of_zones=True),
    "no-subnetwork": _refusal("the network has no subnetwork there"),
    "org-policy": _refusal("an organisation policy closes the region"),
    "unavailable": _refusal("503, nothing carried out", "*"),
    "backend-error": _refusal("500, nothing carried out", "*"),
    # lives
    "accepted": Fault(what="waits in ACCEPTED, the old name of the queue", kind=_LIFE),
    "wait-for-ever": Fault(what="stays in the queue", kind=_LIFE),
    "no-grant": Fault(what="stays in the queue as long as the row holds: see `until` and `hours`", kind=_LIFE),
    "overstays": Fault(what="stays in the queue, and its own end passes unnoticed", kind=_LIFE),
    "provisioning-loop": Fault(
        what="stays PROVISIONING, its node comes and goes every `every`; given up after `for`",
        kind=_LIFE,
        options={"every": 60.0, "for": 2700.0},
    ),
    "preempt": Fault(
        what="reclaimed `after` it became ACTIVE, or when the clock (UTC) next says `hour`: PREEMPTED, then gone",
        kind=_LIFE,
        options={"after": 600.0, "hour": None},
    ),
    "flex-end": Fault(what="run ends `after` ACTIVE, whatever was asked", kind=_LIFE, options={"after": 600.0}),
    "vanish": Fault(
        what="the node is gone `after` ACTIVE, the queued resource says nothing", kind=_LIFE, options={"after": 600.0}
    ),
    "orphan": Fault(what="deleted, its node stays: billed, and no queued resource names it any more", kind=_LIFE),
    "never-healthy": Fault(what="the node's health stays TIMEOUT", kind=_LIFE),
    "hidden": Fault(what="taken, but every look says 404 for `seconds`", kind=_LIFE, options={"seconds": 70.0}),
    "unlisted": Fault(
        what="every get shows it, lists leave it out for `seconds`", kind=_LIFE, options={"seconds": 70.0}
    ),
    "slow-operation": Fault(what="the create operation ends `seconds` late", kind=_LIFE, options={"seconds": 300.0}),
    "operation-fails": Fault(
        what="the create operation ends in an error, the slice lives on; `message` and `code` are what it says",
        kind=_LIFE,
        options={"message": "", "code": None},
    ),
    "timings": Fault(
        what="other timings for this slice",
        kind=_LIFE,
        options=dict.fromkeys(("queued", "waiting", "provisioning", "node_ready", "boot", "suspending", "deleting")),
    ),
    "boot": Fault(
        what="how its machine boots: fields of Behaviour",
        kind=_LIFE,
        options={row.name: None for row in fields(Behaviour)},
    ),
    # calls
    "lost-reply": Fault(
        what="carried out, the connection is reset before the reply; `close` ends it politely (httplib2 then resends)",
        kind=_CALL,
        options={"close": False},
    ),
    "failed-reply": Fault(what="carried out, the reply is 503", kind=_CALL),
    "connection-refused": Fault(
        what="the connection is reset, nothing carried out", kind=_CALL, method="*", options={"close": False}
    ),
    "already-exists": Fault(what="carried out, the reply is 409", kind=_CALL),
    "slow": Fault(what="the reply takes `seconds`", kind=_CALL, method="*", options={"seconds": 30.0}),
    "garbled": Fault(
        what="an object's bytes arrive, as many as there are, and wrong", kind=_CALL, method="storage.objects.get"
    ),
    "delete-refused": Fault(what="accepted, the delete operation fails a little later", kind=_CALL, method=DELETE),
    "deletion-ignored": Fault(
        what="accepted while PROVISIONING, and not carried out; the operation is left `outcome`: running, done, failed."
        " `takes_effect`: carried out after all, once the slice is ACTIVE",
        kind=_CALL,
        method=DELETE,
        options={"outcome": "running", "takes_effect": False},
    ),
    "unreachable": Fault(
        what="a list of queued resources or nodes leaves out the zones that fit `zones`, and says so",
        kind=_CALL,
        method=LISTS,
        options={"zones": "*"},
    ),
}
