"""Errors about who may do what, and for whom: roles, accounts, keys, credentials, APIs and billing."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.adapters.google.codes import Code
from tpudeploy.adapters.google.refusals.row import Layer, RefusalRow

_CALLER = (Layer.REPLY,)
_GRANT = "Run: gcloud projects add-iam-policy-binding PROJECT --member=user:YOU --role="

# The least predefined role with each permission (cloud.google.com/iam/docs/roles-permissions).
_ROLES: Mapping[str, str] = {
    r"\btpu\.": "roles/tpu.admin",
    r"\bcompute\.reservations\.": "roles/compute.reservationConsumer",
    r"\bcompute\.images\.": "roles/compute.imageUser",
    r"\bcompute\.(?:firewalls|securityPolicies)\.": "roles/compute.securityAdmin",
    r"\bcompute\.(?:networks|subnetworks|routers|addresses)\.": "roles/compute.networkAdmin",
    r"\bcompute\.\w+\.(?:get|list|aggregatedList)\b": "roles/compute.viewer",
    r"\bcompute\.": "roles/compute.instanceAdmin.v1",
    r"\bserviceusage\.(?:quotas|services)\.(?:get|list)\b": "roles/serviceusage.serviceUsageViewer",
    r"\bserviceusage\.services\.use\b": "roles/serviceusage.serviceUsageConsumer",
    r"\bserviceusage\.": "roles/serviceusage.serviceUsageAdmin",
    r"\bcloudquotas\.": "roles/cloudquotas.viewer",
    r"\bmonitoring\.": "roles/monitoring.viewer",
    r"\blogging\.logEntries\.create\b": "roles/logging.logWriter",
    r"\blogging\.": "roles/logging.viewer",
    r"\bsecretmanager\.versions\.access\b": "roles/secretmanager.secretAccessor",
    r"\bsecretmanager\.": "roles/secretmanager.viewer",
    r"\bartifactregistry\.": "roles/artifactregistry.reader",
    r"\bresourcemanager\.projects\.get": "roles/browser",
    r"\biam\.serviceAccounts\.(?:get|list)": "roles/iam.serviceAccountViewer",
}

ROWS: tuple[RefusalRow, ...] = (
    RefusalRow(
        kind="api-off",
        what="A required API is not enabled in the project",
        pattern=(
            r"api has not been used in project|it is disabled|SERVICE_DISABLED|accessNotConfigured"
            r"|access not configured|(?:API|service) \[?'?[\w-]+\.googleapis\.com'?\]? (?:is )?not enabled"
            r"|has not enabled the \S+ API"
            r"|[\w-]+\.googleapis\.com'?\]? is not enabled"
        ),
        code=Code.PERMISSION_DENIED,
        layers=_CALLER,
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
    RefusalRow(
        kind="scopes",
        what="The access token lacks the scope for this API",
        pattern=r"insufficient (?:authentication )?scopes?|ACCESS_TOKEN_SCOPE_INSUFFICIENT|insufficientPermissions",
        code=Code.PERMISSION_DENIED,
        layers=_CALLER,
        hint="No role helps. For your own credentials, run: gcloud auth application-default login. On a VM, give it "
        "the scope cloud-platform while it is stopped: gcloud compute instances set-service-account VM "
        "--scopes=cloud-platform",
        # cloud.google.com/docs/authentication/troubleshoot-adc
        examples=("Request had insufficient authentication scopes.",),
    ),
    RefusalRow(
        kind="credentials",
        what="The credentials are no longer valid",
        pattern=(
            r"reauthentication (?:failed|is needed)|invalid_grant|refreshing your current auth"
            r"|invalid authentication credential|ACCESS_TOKEN_EXPIRED|ACCOUNT_STATE_INVALID"
        ),
        code=Code.UNAUTHENTICATED,
        by_code=True,
        layers=_CALLER,
        hint="Run: gcloud auth application-default login",
        examples=(
            "Reauthentication failed",
            "invalid_grant",
            "There was a problem refreshing your current auth tokens",
        ),
    ),
    RefusalRow(
        kind="quota-project",
        what="The call counts against a project without access to the API",
        pattern=(
            r"requires a quota project|USER_PROJECT_DENIED|roles/serviceusage\.serviceUsageConsumer"
            r"|serviceusage\.services\.use'"
        ),
        code=Code.PERMISSION_DENIED,
        layers=_CALLER,
        hint="Run: gcloud auth application-default set-quota-project PROJECT. The caller needs "
        "roles/serviceusage.serviceUsageConsumer in that project.",
        # cloud.google.com/docs/authentication/troubleshoot-adc
        examples=(
            (
                "Caller does not have required permission to use project p. Grant the caller the "
                "roles/serviceusage.serviceUsageConsumer role, or a custom role with the serviceusage.services.use "
                "permission"
            ),
            "The tpu.googleapis.com API requires a quota project, which is not set by default.",
        ),
    ),
    RefusalRow(
        kind="billing-off",
        what="The project has no active billing account",
        pattern=(
            r"requires billing to be enabled|BILLING_DISABLED|BILLING_NOT_ENABLED|UREQ_PROJECT_BILLING"
            r"|billing account .{0,60}(?:disabled|closed|suspended|delinquent|not open|absent)"
            r"|billing (?:has not been|must be|is not|isn't|to be) (?:enabled|activated)"
            r"|billing is (?:disabled|not enabled)|accountDisabled|free[- ]trial"
        ),
        code=Code.PERMISSION_DENIED,
        layers=_CALLER,
        hint="Link an open billing account: gcloud billing projects link PROJECT --billing-account=ACCOUNT. It takes "
        "some minutes to take effect.",
        hints={r"free[- ]trial": ("A free trial has no TPUs: upgrade the billing account in the Cloud console.")},
        # tensorflow/tpu issue 124
        examples=(
            "cannot create a TPU Node on a project linked to a free-trial billing account",
            (
                "This API method requires billing to be enabled. Please enable billing on project #7 by visiting "
                "https://console.developers.google.com/billing/enable?project=7 then retry."
            ),
            "The billing account for the owning project is disabled in state absent",
        ),
    ),
    RefusalRow(
        kind="project-suspended",
        what="Google has suspended the project",
        pattern=r"(?:consumer|project) \S{0,80} ?has been suspended|CONSUMER_SUSPENDED|project .{0,80}is suspended",
        code=Code.PERMISSION_DENIED,
        layers=_CALLER,
        hint="No role helps: its owner must appeal in the Cloud console, or use another project (placement.project).",
        examples=("Permission denied: Consumer 'project:p' has been suspended.",),
    ),
    RefusalRow(
        kind="project-missing",
        what="There is no such project, or the caller does not see it",
        pattern=(
            r"permission denied on resource project|CONSUMER_INVALID|project '?[\w:/-]+'? (?:was )?not found"
            r"|project .{0,80}(?:marked for|pending|scheduled for) deletion"
            r"|resource 'projects/[\w:-]+' was not found|project .{0,80}(?:has been|was|is) deleted"
            r"|failed to find project|unknown project id|invalid project id"
        ),
        code=Code.PERMISSION_DENIED,
        layers=_CALLER,
        hint="Correct placement.project or GOOGLE_CLOUD_PROJECT: it's the project's id, not its name. `gcloud "
        "projects list` prints your projects.",
        examples=("Permission denied on resource project my-projct.", "Project 'my-projct' not found or deleted."),
        is_recorded=False,
    ),
    RefusalRow(
        kind="shared-network",
        what="The caller may not use the network or the subnetwork (often those of a host project)",
        pattern=r"\bcompute\.(?:subnetworks|networks)\.(?:use\w*|get|list)\b",
        code=Code.PERMISSION_DENIED,
        hint="Grant roles/compute.networkUser on the host project's subnetwork: gcloud compute networks subnets "
        "add-iam-policy-binding SUBNET --project=HOST --region=REGION --member=user:YOU "
        "--role=roles/compute.networkUser. Cloud TPU's service agent "
        "(service-NUMBER@cloud-tpu.iam.gserviceaccount.com) needs it as well.",
        # hashicorp/terraform-provider-google issues 4961, 1711
        examples=(
            (
                "Required 'compute.subnetworks.use' permission for "
                "'projects/host-prj/regions/asia-east1/subnetworks/host-subnet-1'"
            ),
            "Google Compute Engine: Required 'compute.networks.get' permission for 'projects/p/global/networks/n'",
        ),
    ),
    RefusalRow(
        kind="service-agent",
        what="Google's own account for Cloud TPU lacks its role in the project",
        pattern=(
            r"@cloud-tpu\.iam\.gserviceaccount\.com.{0,60}(?:does not have|lacks|missing|permission|denied)"
            r"|(?:Cloud )?TPU service (?:account|agent).{0,120}(?:does not have|lacks|missing|permission)"
        ),
        code=Code.PERMISSION_DENIED,
        hint="Give it back: gcloud projects add-iam-policy-binding PROJECT "
        "--member=serviceAccount:service-NUMBER@cloud-tpu.iam.gserviceaccount.com --role=roles/tpu.serviceAgent. "
        "Where the account does not exist: gcloud beta services identity create --service=tpu.googleapis.com",
        # cloud.google.com/tpu/docs/setup-gcp-account
        examples=(
            (
                "The Cloud TPU service account service-7@cloud-tpu.iam.gserviceaccount.com does not have the required "
                "permission."
            ),
        ),
        is_recorded=False,
    ),
    RefusalRow(
        kind="not-allowlisted",
        what="Google offers this type only to some projects",
        pattern=(
            r"\b(?:allow|white)-?listed\b|(?:does not have|no) access to (?:the )?(?:accelerator|machine) type"
            r"|not allowed to use (?:the )?accelerator type"
        ),
        code=Code.PERMISSION_DENIED,
        hint="No role helps: ask your contact at Google to open the type for the project, or use another tpu.type.",
        examples=("TPU7x is available only to allowlisted projects.",),
        is_recorded=False,
    ),
    RefusalRow(
        kind="act-as",
        what="The caller may not act as the machine's service account",
        pattern=(
            r"does not have access to service account|iam\.serviceAccounts\.actAs|iam\.serviceAccountUser role"
            r"|permission to act as (?:the )?service account"
        ),
        code=Code.PERMISSION_DENIED,
        hint="Grant roles/iam.serviceAccountUser on that service account: gcloud iam service-accounts "
        "add-iam-policy-binding ACCOUNT --member=user:YOU --role=roles/iam.serviceAccountUser",
        examples=(
            (
                "The user does not have access to service account 'vm@p.iam.gserviceaccount.com'.  User: "
                "'you@example.com'.  Ask a project owner to grant you the iam.serviceAccountUser role on the service "
                "account."
            ),
        ),
    ),
    RefusalRow(
        kind="service-account-missing",
        what="The machine's service account does not exist, or is disabled",
        pattern=(
            r"service ?account '?[^' ]*'? ?(?:was not found|not found|does not exist|is disabled|has been deleted)"
            r"|of type 'serviceAccount' was not found|/serviceAccounts/[^/'\s]+'? (?:was not found|does not exist)"
            r"|@[\w.-]*gserviceaccount\.com'? (?:was not found|does not exist|is disabled)"
        ),
        code=Code.INVALID_ARGUMENT,
        hint="Correct placement.service_account, or leave it out for the project's default account. A deleted default "
        "account is restored with `gcloud iam service-accounts undelete`, or name one of your own.",
        examples=(
            "The resource 'vm@p.iam.gserviceaccount.com' of type 'serviceAccount' was not found.",
            "Service account vm@p.iam.gserviceaccount.com does not exist.",
        ),
        is_recorded=False,
    ),
    RefusalRow(
        kind="key-permission",
        what="The encryption key cannot be used",
        pattern=r"cloudkms\.|KMS_|\bCloud KMS\b|/cryptoKeys/\S+|kmsKey",
        code=Code.PERMISSION_DENIED,
        hint="Grant roles/cloudkms.cryptoKeyEncrypterDecrypter on the key to the service agent named in the text "
        "(service-NUMBER@compute-system.iam.gserviceaccount.com for disks). Check that the key exists in the"
        " region with an enabled version.",
        examples=(
            (
                "Cloud KMS error when using key projects/p/locations/us-east5/keyRings/r/cryptoKeys/k: Permission "
                "'cloudkms.cryptoKeyVersions.useToEncrypt' denied on resource "
                "'projects/p/locations/us-east5/keyRings/r/cryptoKeys/k' (or it may not exist)."
            ),
        ),
        is_recorded=False,
    ),
    RefusalRow(
        kind="bucket-permission",
        what="The caller cannot read or write the bucket of the states",
        pattern=r"permission 'storage\.[^']*' denied on resource|does not have storage\.\S+ access",
        code=Code.PERMISSION_DENIED,
        layers=_CALLER,
        hint="Run: gcloud storage buckets add-iam-policy-binding gs://BUCKET --member=user:YOU "
        "--role=roles/storage.objectUser",
        examples=(
            (
                "you@example.com does not have storage.objects.list access to the Google Cloud Storage bucket. "
                "Permission 'storage.objects.list' denied on resource (or it may not exist)."
            ),
        ),
    ),
)

# The caller's own role: after the rows of other causes that Google answers with the same code.
PERMISSION = RefusalRow(
    kind="permission",
    what="The caller lacks a role",
    pattern=(
        r"permission '?[\w.]+'? denied on|required '?[^ ]+'? permission|lacks (?:the )?(?:IAM )?permission"
        r"|does not have (?:the )?'?[\w.]*'? ?permission|\bPERMISSION_DENIED\b"
    ),
    code=Code.PERMISSION_DENIED,
    by_code=True,
    layers=_CALLER,
    hint=f"{_GRANT}ROLE, with a role that includes the permission in Google's own text. `tpudeploy doctor PROFILE` "
    "checks every role the profile needs and prints the commands.",
    hints={permission: f"{_GRANT}{role}" for permission, role in _ROLES.items()},
    examples=(
        "Permission 'tpu.nodes.create' denied on resource '//tpu.googleapis.com/projects/p' (or it may not exist).",
        "Required 'tpu.nodes.create' permission for 'projects/p'",
        "Permission 'tpu.nodes.get' denied on 'projects/p/locations/us-central1-b/nodes/x'",
    ),
    is_recorded=False,
)
