#!/usr/bin/env bash
# One profile, from nothing to an answer and back, with the commands that a person would type:
#
#     tpudeploy emulator run -speed 30 -scenario examples/01-command-line/cloud.yaml -- examples/01-command-line/run.sh
#
# On the emulator only: elsewhere these commands cost money.
set -euo pipefail
: "${TPU_EMULATOR_HOST:?see the top of this file for how to run it}"
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$folder/gemma.yaml" "$work"
cd "$work"

profile=gemma.yaml

step() {
    printf '\n$ tpudeploy %s\n' "$*" >&2
    tpudeploy "$@"
}

step validate $profile
step apply $profile -auto-approve

answer=$(step query $profile "Why is the sky blue?")
echo "$answer"
[[ -n $answer ]] || { echo "No answer came back." >&2; exit 1; }

status=$(step status $profile)
echo "$status"
[[ $status == *serving* ]] || { echo "The deployment doesn't serve." >&2; exit 1; }

step destroy $profile -auto-approve

status=$(step status $profile)
echo "$status"
[[ $status == *"not deployed"* ]] || { echo "The deployment still exists." >&2; exit 1; }
