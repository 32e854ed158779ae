#!/usr/bin/env bash
# One profile, from nothing to an answer and back, with the commands that a person would type:
#
#     tpudeploy emulator run -- examples/01-command-line/run.sh
#
# On the emulator only: elsewhere these commands cost money.
set -euo pipefail
: "${TPU_EMULATOR_HOST:?run this with: tpudeploy emulator run -- $0}"

profile=profiles/gemma4-e2b-v6e1.yaml

step() {
    printf '\n$ tpudeploy %s\n' "$*" >&2
    tpudeploy "$@"
}

step validate $profile
step apply $profile -auto-approve

answer=$(step query $profile "Why is the sky blue?")
echo "$answer"
[[ -n $answer ]] || { echo "No answer came." >&2; exit 1; }

status=$(step status $profile)
echo "$status"
[[ $status == *serving* ]] || { echo "It does not serve." >&2; exit 1; }

step destroy $profile -auto-approve

status=$(step status $profile)
echo "$status"
[[ $status == *"not deployed"* ]] || { echo "Something is left." >&2; exit 1; }
