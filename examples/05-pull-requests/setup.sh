#!/usr/bin/env bash
# Once for a repository on GitHub: two identities without any key. Written from Google's documentation, never run against
# a live project.
#
#   PROJECT=my-project REPOSITORY=acme/models REPOSITORY_ID=1234 OWNER_ID=5678 BUCKET=my-states \
#       MACHINE=vllm@my-project.iam.gserviceaccount.com bash setup.sh
#
# The ids are numbers that `gh api repos/acme/models` shows: unlike names they cannot be taken over by somebody else.
set -euo pipefail
: "${PROJECT:?}" "${REPOSITORY:?}" "${REPOSITORY_ID:?}" "${OWNER_ID:?}" "${BUCKET:?}" "${MACHINE:?}"

number=$(gcloud projects describe "$PROJECT" --format='value(projectNumber)')
pool="projects/$number/locations/global/workloadIdentityPools/github"
plan="tpudeploy-plan@$PROJECT.iam.gserviceaccount.com"
apply="tpudeploy-apply@$PROJECT.iam.gserviceaccount.com"

gcloud iam workload-identity-pools create github --project="$PROJECT" --location=global
gcloud iam workload-identity-pools providers create-oidc github --project="$PROJECT" --location=global \
    --workload-identity-pool=github --issuer-uri=https://token.actions.githubusercontent.com \
    --attribute-mapping='google.subject=assertion.sub,attribute.repository_id=assertion.repository_id' \
    --attribute-condition="assertion.repository_owner_id == '$OWNER_ID' && assertion.repository_id == '$REPOSITORY_ID'"

gcloud iam service-accounts create tpudeploy-plan --project="$PROJECT"
gcloud iam service-accounts create tpudeploy-apply --project="$PROJECT"

# Any run of the repository may look; only a job of one of these environments may change something.
gcloud iam service-accounts add-iam-policy-binding "$plan" --project="$PROJECT" \
    --role=roles/iam.workloadIdentityUser \
    --member="principalSet://iam.googleapis.com/$pool/attribute.repository_id/$REPOSITORY_ID"
for environment in production production-resume staging-measure; do
    gcloud iam service-accounts add-iam-policy-binding "$apply" --project="$PROJECT" \
        --role=roles/iam.workloadIdentityUser \
        --member="principal://iam.googleapis.com/$pool/subject/repo:$REPOSITORY:environment:$environment"
done

# To plan: read slices and states. Whether the viewer may read what a machine says of itself is unverified; where it may
# not, a plan says that it does not know whether the server runs.
gcloud projects add-iam-policy-binding "$PROJECT" --member="serviceAccount:$plan" --role=roles/tpu.viewer
gcloud storage buckets add-iam-policy-binding "gs://$BUCKET" --member="serviceAccount:$plan" \
    --role=roles/storage.objectViewer

# To apply: make slices, run machines under their own account, write states.
gcloud projects add-iam-policy-binding "$PROJECT" --member="serviceAccount:$apply" --role=roles/tpu.admin
gcloud iam service-accounts add-iam-policy-binding "$MACHINE" --project="$PROJECT" \
    --member="serviceAccount:$apply" --role=roles/iam.serviceAccountUser
gcloud storage buckets add-iam-policy-binding "gs://$BUCKET" --member="serviceAccount:$apply" \
    --role=roles/storage.objectUser

cat <<TOLD
Variables of the repository:
  TPUDEPLOY_IDENTITY_PROVIDER=$pool/providers/github
  TPUDEPLOY_PLAN_ACCOUNT=$plan
  TPUDEPLOY_APPLY_ACCOUNT=$apply
  TPUDEPLOY_BACKEND=gs://$BUCKET/states
Environment for measure.yml, if you use it: staging-measure, with reviewers. It's open to the branches of pull requests, whose
workflows it runs: a reviewer approves each run, with all that the apply account may do.
Environments of the repository, each for the branch main alone (Settings, Environments, Deployment branches):
  production         with the people who say when to apply as reviewers
  production-resume  without reviewers
  production-plan    without reviewers
A secret of production and of production-plan, and of nothing else: who has it can approve any plan.
  key=\$(openssl rand -hex 32)
  for name in production production-plan; do gh secret set TPUDEPLOY_APPROVAL_KEY --env "\$name" <<< "\$key"; done
Where an endpoint has a key (VLLM_API_KEY), both accounts need roles/secretmanager.secretAccessor on that secret.
TOLD
