#!/usr/bin/env bash
# What a pull request and its merge do, without GitHub: `ci plan` shows a plan and its fingerprint, `ci apply` does that
# plan or none, `ci drift` looks. The workflows beside this file are the same commands on GitHub and GitLab.
#
#     tpudeploy emulator run -- examples/05-pull-requests/run.sh
set -euo pipefail
: "${TPU_EMULATOR_HOST:?run this with: tpudeploy emulator run -- $0}"
unset GITHUB_REPOSITORY GITHUB_EVENT_PATH GITHUB_STEP_SUMMARY GITHUB_OUTPUT
profile=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../profiles" && pwd)/gemma4-e2b-v6e1.yaml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$profile" gemma.yaml

expect() {
    local code=0
    "${@:2}" || code=$?
    test "$code" = "$1" || { echo "Expected exit code $1 of ${*:2}, got $code." >&2; exit 1; }
}

tpudeploy ci plan gemma.yaml --artifacts told
cat told/plan.md

# Nobody has approved anything: exit code 11, and nothing was done.
expect 11 tpudeploy ci apply gemma.yaml

tpudeploy ci apply gemma.yaml --accept "$(cat told/fingerprint)"

# Another plan than the one that was read is not carried out either.
sed -i.before 's/max_model_len: .*/max_model_len: 8192/' gemma.yaml
expect 11 tpudeploy ci apply gemma.yaml --accept "$(cat told/fingerprint)"

# Merged, and not applied: that is drift too.
expect 2 tpudeploy ci drift gemma.yaml --detailed-exitcode
mv gemma.yaml.before gemma.yaml
tpudeploy ci drift gemma.yaml --detailed-exitcode
tpudeploy destroy gemma.yaml -auto-approve

# What was approved was carried out, and ended: the same approval buys nothing a second time.
expect 11 tpudeploy ci apply gemma.yaml --accept "$(cat told/fingerprint)"
