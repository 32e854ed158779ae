"""What says nothing about the request: it is looked at again, or asked for again."""

from __future__ import annotations

from tpudeploy.adapters.google.codes import Code
from tpudeploy.adapters.google.refusals.row import MINUTES, SECONDS, Layer, Verdict
from tpudeploy.domain.slices import Remedy, Scope

ROWS: tuple[Verdict, ...] = (
    Verdict(
        kind="internal",
        what="An internal error of Google, usually because the capacity was withdrawn",
        pattern=r"internal error",
        code=Code.INTERNAL,
        layers=(Layer.CREATE, Layer.FAILED),
        remedy=Remedy.NEXT_ZONE,
        scope=Scope.PAIR,
        holds=5 * MINUTES,
        hint="If it persists, use other zones or a smaller tpu.type.",
        examples=("an internal error has occurred", "Code 13: Internal Error"),
    ),
    Verdict(
        kind="object-rate",
        what="One object of the state was written too often",
        pattern=r"rate limit for object mutation",
        code=Code.RESOURCE_EXHAUSTED,
        layers=(Layer.REPLY,),
        remedy=Remedy.LOOK_AGAIN,
        scope=Scope.PAIR,
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
    Verdict(
        kind="unavailable",
        what="The service does not answer",
        pattern=r"service is currently unavailable",
        code=Code.UNAVAILABLE,
        layers=(Layer.REPLY,),
        remedy=Remedy.LOOK_AGAIN,
        scope=Scope.PAIR,
        holds=30 * SECONDS,
        hint="It passes. Work in progress is saved, and a later `tpudeploy apply` continues it.",
        examples=("The service is currently unavailable.",),
    ),
    Verdict(
        kind="timeout",
        what="No reply came in time, and the request may have taken effect",
        pattern=r"timed out|did not complete within",
        code=Code.DEADLINE_EXCEEDED,
        layers=(Layer.REPLY,),
        remedy=Remedy.LOOK_AGAIN,
        scope=Scope.PAIR,
        holds=30 * SECONDS,
        hint="Nothing is deleted because of it. tpudeploy looks the requested slice up by its name.",
        examples=("Operation did not complete within the designated timeout of 600 seconds.",),
        is_recorded=False,
    ),
    Verdict(
        kind="exists",
        what="The name is taken",
        pattern=r"already exists",
        code=Code.ALREADY_EXISTS,
        layers=(Layer.REPLY,),
        remedy=Remedy.LOOK_AGAIN,
        scope=Scope.PAIR,
        holds=30 * SECONDS,
        hint="Names are derived from the state: an earlier run requested this slice, and this run continues with it.",
        examples=("Resource 'projects/p/locations/us-east5-a/queuedResources/gemma' already exists",),
        is_recorded=False,
    ),
    Verdict(
        kind="not-found",
        what="The named resource does not exist",
        pattern=r"resource '?[^ ']+'? was not found",
        code=Code.NOT_FOUND,
        layers=(Layer.REPLY,),
        remedy=Remedy.LOOK_AGAIN,
        scope=Scope.PAIR,
        holds=30 * SECONDS,
        hint="For a slice: it is gone, or not visible yet. For what a request names, such as a network: check its name "
        "in the profile.",
        examples=("Resource 'projects/p/locations/us-east5-a/nodes/x' was not found",),
    ),
    Verdict(
        kind="delete-refused",
        what="The slice cannot be deleted in its present state",
        pattern=r"cannot be deleted",
        code=Code.FAILED_PRECONDITION,
        layers=(Layer.DELETE,),
        remedy=Remedy.LOOK_AGAIN,
        scope=Scope.PAIR,
        holds=20 * SECONDS,
        hint="It can be deleted when its state changes, usually within minutes. The deletion is repeated until then.",
        examples=("Queued resource q is in state PROVISIONING and cannot be deleted. [EID: 0x1a2b]",),
        is_recorded=False,
    ),
    Verdict(
        kind="wrong-state",
        what="The slice cannot do that in its present state",
        pattern=r"not supported while in state",
        code=Code.FAILED_PRECONDITION,
        layers=(Layer.REPLY,),
        remedy=Remedy.LOOK_AGAIN,
        scope=Scope.PAIR,
        holds=30 * SECONDS,
        hint="The next observation shows its new state.",
        examples=("Cloud TPU received a bad request. reset is not supported while in state SUSPENDED [EID: 0x1a2b]",),
    ),
)
