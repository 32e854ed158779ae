"""Errors that say nothing about the request: it is observed or sent again."""

from __future__ import annotations

from tpudeploy.adapters.google.codes import Code
from tpudeploy.adapters.google.refusals.row import MINUTES, SECONDS, Layer, RefusalRow
from tpudeploy.domain.slices import RefusalScope, Remedy

ROWS: tuple[RefusalRow, ...] = (
    RefusalRow(
        kind="internal",
        what="An internal error of Google, usually because the capacity was withdrawn",
        pattern=r"internal (?:server )?error|^INTERNAL(?:_ERROR)?\b",
        code=Code.INTERNAL,
        layers=(Layer.CREATE, Layer.FAILED),
        remedy=Remedy.NEXT_ZONE,
        scope=RefusalScope.PAIR,
        holds=5 * MINUTES,
        hint="If it persists, use other zones or a smaller tpu.type.",
        examples=("an internal error has occurred", "Code 13: Internal Error"),
    ),
    RefusalRow(
        kind="object-rate",
        what="One object of the state was written too often",
        pattern=r"rate limit for object mutation",
        code=Code.RESOURCE_EXHAUSTED,
        layers=(Layer.REPLY,),
        remedy=Remedy.LOOK_AGAIN,
        scope=RefusalScope.PAIR,
        holds=1 * SECONDS,
        hint="Cloud Storage accepts about one write per second to one object; tpudeploy waits.",
        examples=(
            (
                "The object b/o exceeded the rate limit for object mutation operations (create, update, and delete). "
                "Please reduce your request rate. See https://cloud.google.com/storage/docs/gcs429."
            ),
        ),
        is_recorded=False,
    ),
    RefusalRow(
        kind="unavailable",
        what="The service does not answer",
        pattern=(
            r"service is currently unavailable|encountered a temporary error and could not complete"
            r"|\b50[234] (?:Bad Gateway|Service (?:Temporarily )?Unavailable|Gateway Time-?out)|\bError 50[234] \("
        ),
        code=Code.UNAVAILABLE,
        layers=(Layer.REPLY,),
        remedy=Remedy.LOOK_AGAIN,
        scope=RefusalScope.PAIR,
        holds=30 * SECONDS,
        hint="It's temporary. Work in progress is saved; a later `tpudeploy apply` continues it.",
        examples=("The service is currently unavailable.",),
    ),
    RefusalRow(
        kind="timeout",
        what="No reply came in time, and the request may have taken effect",
        pattern=r"timed out|did not complete within",
        code=Code.DEADLINE_EXCEEDED,
        layers=(Layer.REPLY,),
        remedy=Remedy.LOOK_AGAIN,
        scope=RefusalScope.PAIR,
        holds=30 * SECONDS,
        hint="Nothing is deleted because of this. tpudeploy looks the requested slice up by its name.",
        examples=("Operation did not complete within the designated timeout of 600 seconds.",),
        is_recorded=False,
    ),
    RefusalRow(
        kind="exists",
        what="The name is taken",
        pattern=r"already exists",
        code=Code.ALREADY_EXISTS,
        layers=(Layer.REPLY,),
        remedy=Remedy.LOOK_AGAIN,
        scope=RefusalScope.PAIR,
        holds=30 * SECONDS,
        hint="Names are derived from the state: an earlier run requested this slice; this run continues with it.",
        examples=("Resource 'projects/p/locations/us-east5-a/queuedResources/gemma' already exists",),
        is_recorded=False,
    ),
    RefusalRow(
        kind="not-found",
        what="The named resource does not exist",
        pattern=r"resource '?[^ ']+'? was not found",
        code=Code.NOT_FOUND,
        layers=(Layer.REPLY,),
        remedy=Remedy.LOOK_AGAIN,
        scope=RefusalScope.PAIR,
        holds=30 * SECONDS,
        hint="A slice was deleted, or is not visible yet. If a request is refused this way, it names a missing "
        "resource: `tpudeploy render PROFILE request` prints the request.",
        examples=("Resource 'projects/p/locations/us-east5-a/nodes/x' was not found",),
    ),
    RefusalRow(
        kind="not-ready",
        what="The instance is in the middle of another operation",
        pattern=r"the resource '[^']*' is not ready|resourceInUseByAnotherResource",
        code=Code.INVALID_ARGUMENT,
        layers=(Layer.REPLY, Layer.DELETE),
        remedy=Remedy.LOOK_AGAIN,
        scope=RefusalScope.PAIR,
        holds=20 * SECONDS,
        hint="The next observation shows its state; tpudeploy then sends the request again if it's still needed.",
        examples=("The resource 'projects/p/zones/us-east5-a/instances/x' is not ready",),
        is_recorded=False,
    ),
    RefusalRow(
        kind="delete-refused",
        what="The slice cannot be deleted in its present state",
        pattern=r"cannot be deleted",
        code=Code.FAILED_PRECONDITION,
        layers=(Layer.DELETE,),
        remedy=Remedy.LOOK_AGAIN,
        scope=RefusalScope.PAIR,
        holds=20 * SECONDS,
        hint="It can be deleted when its state changes, usually within minutes. The deletion is repeated until then.",
        examples=("Queued resource q is in state PROVISIONING and cannot be deleted. [EID: 0x1a2b]",),
        is_recorded=False,
    ),
    RefusalRow(
        kind="wrong-state",
        what="The slice does not support that in its present state",
        pattern=r"not supported while in state",
        code=Code.FAILED_PRECONDITION,
        layers=(Layer.REPLY,),
        remedy=Remedy.LOOK_AGAIN,
        scope=RefusalScope.PAIR,
        holds=30 * SECONDS,
        hint="The next observation shows its new state.",
        examples=("Cloud TPU received a bad request. reset is not supported while in state SUSPENDED [EID: 0x1a2b]",),
    ),
)
