"""Errors that no other place would avoid, until a person acts."""

from __future__ import annotations

from tpudeploy.adapters.google.codes import Code
from tpudeploy.adapters.google.refusals.row import MINUTES, Layer, Verdict
from tpudeploy.domain.slices import Remedy, Scope

ROWS: tuple[Verdict, ...] = (
    Verdict(
        kind="api-off",
        what="The Cloud TPU API is not enabled in the project",
        pattern=r"api has not been used in project|it is disabled",
        code=Code.PERMISSION_DENIED,
        layers=(Layer.REPLY,),
        remedy=Remedy.STOP,
        scope=Scope.PROJECT,
        holds=10 * MINUTES,
        hint="Run: gcloud services enable tpu.googleapis.com",
        examples=(
            (
                "Cloud TPU API has not been used in project 1 before or it is disabled. Enable it by visiting "
                "https://console.developers.google.com/apis/api/tpu.googleapis.com/overview?project=1 then retry. If "
                "you enabled this API recently, wait a few minutes for the action to propagate to our systems and "
                "retry."
            ),
        ),
    ),
    Verdict(
        kind="credentials",
        what="The credentials are no longer valid",
        pattern=r"reauthentication failed|invalid_grant|refreshing your current auth|invalid authentication credential",
        code=Code.UNAUTHENTICATED,
        by_code=True,
        layers=(Layer.REPLY,),
        remedy=Remedy.STOP,
        scope=Scope.PROJECT,
        holds=10 * MINUTES,
        hint="Run: gcloud auth application-default login",
        examples=(
            "Reauthentication failed",
            "invalid_grant",
            "There was a problem refreshing your current auth tokens",
        ),
    ),
    Verdict(
        kind="bucket-permission",
        what="The caller cannot read or write the bucket of the states",
        pattern=r"permission 'storage\.[^']*' denied on resource",
        code=Code.PERMISSION_DENIED,
        layers=(Layer.REPLY,),
        remedy=Remedy.STOP,
        scope=Scope.PROJECT,
        holds=10 * MINUTES,
        hint="Run: gcloud storage buckets add-iam-policy-binding gs://BUCKET --member=user:YOU "
        "--role=roles/storage.objectUser",
        examples=(
            (
                "you@example.com does not have storage.objects.list access to the Google Cloud Storage bucket. "
                "Permission 'storage.objects.list' denied on resource (or it may not exist)."
            ),
        ),
    ),
    Verdict(
        kind="permission",
        what="The caller lacks a role",
        pattern=r"permission '[^']*' denied on resource|required '?[^ ]+'? permission|\bPERMISSION_DENIED\b",
        code=Code.PERMISSION_DENIED,
        by_code=True,
        layers=(Layer.REPLY,),
        remedy=Remedy.STOP,
        scope=Scope.PROJECT,
        holds=10 * MINUTES,
        hint="Run: gcloud projects add-iam-policy-binding PROJECT --member=user:YOU --role=roles/tpu.admin",
        examples=(
            "Permission 'tpu.nodes.create' denied on resource '//tpu.googleapis.com/projects/p' (or it may not exist).",
            "Required 'tpu.nodes.create' permission for 'projects/p'",
        ),
        is_recorded=False,
    ),
    Verdict(
        kind="machine-refused",
        what="Compute Engine creates no instances of this machine type for users",
        pattern=r"user agent is not allowed to use the machine type",
        code=Code.PERMISSION_DENIED,
        layers=(Layer.REPLY,),
        remedy=Remedy.STOP,
        scope=Scope.PROJECT,
        holds=10 * MINUTES,
        hint="Set placement.backend: queued-resource.",
        examples=("This user agent is not allowed to use the machine type [ct5lp-hightpu-1t]",),
    ),
    Verdict(
        kind="machine-mismatch",
        what="The machine type does not take a part of the request",
        pattern=(
            r"disk type cannot be used by|not supported for the machine type"
            r"|machine type with placement policy is not supported"
        ),
        code=Code.INVALID_ARGUMENT,
        layers=(Layer.REPLY,),
        remedy=Remedy.STOP,
        scope=Scope.PROJECT,
        holds=10 * MINUTES,
        hint="This is a bug in tpudeploy: please report it, with the output of `tpudeploy render PROFILE request`.",
        examples=("pd-ssd disk type cannot be used by ct6e-standard-1t.",),
        is_recorded=False,
    ),
    Verdict(
        kind="machine-image",
        what="The image that the machine boots from does not exist any more",
        pattern=r"referenced image resource cannot be found|global/images/[\w-]+'? was not found",
        code=Code.INVALID_ARGUMENT,
        layers=(Layer.REPLY,),
        remedy=Remedy.STOP,
        scope=Scope.PROJECT,
        holds=10 * MINUTES,
        hint="Google deletes old images. Pin the newest one of the family: tpudeploy plan --pin PROFILE",
        examples=("The referenced image resource cannot be found.",),
        is_recorded=False,
    ),
    Verdict(
        kind="runtime",
        what="The runtime version is unknown",
        pattern=r"runtime.?version",
        code=Code.INVALID_ARGUMENT,
        layers=(Layer.REPLY,),
        remedy=Remedy.STOP,
        scope=Scope.PROJECT,
        holds=10 * MINUTES,
        hint="Leave tpu.runtime_version out: each generation has a suitable default.",
        examples=('Cloud TPU received a bad request. The runtime version "v2-alpha" is not valid. [EID: 0x1a2b]',),
        is_recorded=False,
    ),
    Verdict(
        kind="invalid",
        what="Google rejects the request as invalid, with an unknown message",
        code=Code.INVALID_ARGUMENT,
        by_code=True,
        remedy=Remedy.STOP,
        scope=Scope.PROJECT,
        holds=10 * MINUTES,
        hint="Google's own text, which is always shown, names the field. `tpudeploy render PROFILE request` shows "
        "what was sent.",
    ),
)
