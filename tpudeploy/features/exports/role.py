"""The custom role by which machines may end themselves: the permission to delete their own request, and no other."""

from __future__ import annotations

from tpudeploy.catalog.access import end_permissions
from tpudeploy.domain.errors import ConfigError
from tpudeploy.operations.render import RenderedDeployment

_ROLE = "tpudeployEnd"


def export_role(subject: RenderedDeployment) -> str:
    """Return the role as the YAML that gcloud reads, with the commands and the same for Terraform in its comments.

    Raise `errors.ConfigError` for a deployment that no machine ends.
    """
    deployment = subject.deployment
    project, account = deployment.project or "PROJECT", deployment.service_account or "SERVICE_ACCOUNT"
    permissions = sorted(end_permissions(deployment))
    if not permissions:
        raise ConfigError(
            f"No machine of {deployment.name} ends itself, so that none needs a role.",
            hint="lifecycle.end, .idle or .hours end a deployment.",
        )
    included = "".join(f"- {permission}\n" for permission in permissions)
    return f"""\
# The machines of {deployment.name} delete their own request at their end (lifecycle.end, .idle, .hours) with this role.
# IAM grants it for all such resources of the project: use a project of its own if that matters.
#
# gcloud iam roles create {_ROLE} --project={project} --file=FILE
# gcloud projects add-iam-policy-binding {project} --role=projects/{project}/roles/{_ROLE} \\
#   --member=serviceAccount:{account}
#
# resource "google_project_iam_custom_role" "tpudeploy_end" {{
#   project     = "{project}"
#   role_id     = "{_ROLE}"
#   title       = "tpudeploy: end"
#   permissions = [{", ".join(f'"{permission}"' for permission in permissions)}]
# }}
# resource "google_project_iam_member" "tpudeploy_end" {{
#   project = "{project}"
#   role    = google_project_iam_custom_role.tpudeploy_end.id
#   member  = "serviceAccount:{account}"
# }}
title: 'tpudeploy: end'
description: Lets a machine delete its own request.
stage: GA
includedPermissions:
{included}"""
