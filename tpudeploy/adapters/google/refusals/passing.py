"""What says nothing about the request: it is looked at again, or asked for again."""

from __future__ import annotations

from tpudeploy.adapters.google.codes import Code
from tpudeploy.adapters.google.refusals.row import MINUTES, SECONDS, Layer, Verdict
from tpudeploy.domain.slices import Remedy, Scope

ROWS: tuple[Verdict, ...] = (
    Verdict(
        kind="internal",
        what="Google failed inside, mostly because the capacity was withdrawn",
        pattern=r"internal error",
        code=Code.INTERNAL,
        layers=(Layer.CREATE, Layer.FAILED),
        remedy=Remedy.NEXT_ZONE,
        scope=Scope.PAIR,
        holds=5 * MINUTES,
        hint="Other zones, or a smaller tpu.type, where it goes on.",
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
        hint="Cloud Storage takes about one write a second to one object; we wait.",
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
        hint="It passes. Whatever was begun is saved, and a later `tpudeploy apply` goes on.",
        examples=("The service is currently unavailable.",),
    ),
    Verdict(
        kind="timeout",
        what="No reply came in time: what was asked for may have happened",
        pattern=r"timed out|did not complete within",
        code=Code.DEADLINE_EXCEEDED,
        layers=(Layer.REPLY,),
        remedy=Remedy.LOOK_AGAIN,
        scope=Scope.PAIR,
        holds=30 * SECONDS,
        hint="Nothing is deleted because of it. What was asked for is looked for under its own name.",
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
        hint="Names are derived from the state: an earlier run asked for this slice, and it is taken up.",
        examples=("Resource 'projects/p/locations/us-east5-a/queuedResources/gemma' already exists",),
        is_recorded=False,
    ),
    Verdict(
        kind="not-found",
        what="There is nothing of that name",
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
        hint="It can once its state moves, mostly within minutes. Its deletion is asked for until it is gone.",
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
        hint="The next look shows what it has become.",
        examples=("Cloud TPU received a bad request. reset is not supported while in state SUSPENDED [EID: 0x1a2b]",),
    ),
)
