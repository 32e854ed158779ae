#!/usr/bin/env bash
# What happens when it does not go well: a full zone, an end of patience, a boot that runs out of memory, a fix.
#
#     tpudeploy emulator run -scenario examples/04-failure-drill/scenario.yaml -- examples/04-failure-drill/run.sh
#
# On instances of Compute Engine, with `--set placement.backend=gce-instance` behind it: each command gets these words.
set -euo pipefail
: "${TPU_EMULATOR_HOST:?see the second line of this file for how to run it}"
profile=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/profile.yaml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
options=("$@")
cd "$work"

# expect CODE COMMAND...: the drill ends where tpudeploy ends otherwise than said.
expect() {
    local code=0
    printf '\n$ tpudeploy %s\n' "${*:2} ${options[*]}" >&2
    tpudeploy "${@:2}" "${options[@]}" || code=$?
    [[ $code == "$1" ]] || { echo "exit code $code, where $1 was expected" >&2; exit 1; }
}

echo "1. us-east5-a is full, us-east5-b lets us wait. We give up after 4 seconds; the request stands (exit 12)."
expect 12 apply "$profile" -auto-approve -timeout 4

echo "2. The same command goes on where it stopped. The machine comes, the server dies; the slice is kept (exit 1)."
expect 1 apply "$profile" -auto-approve

echo "3. Four chips instead of one: a new slice, then the old one goes."
expect 0 apply "$profile" -auto-approve --set tpu.type=v6e-4

expect 0 query "$profile" "All well?" --set tpu.type=v6e-4
expect 0 destroy "$profile" -auto-approve
