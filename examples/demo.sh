#!/usr/bin/env bash
# `make demo`: run the first example on its own emulator, then check that nothing is left. It takes less than a minute.
set -euo pipefail

examples=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/emulator"

# A boot of ten minutes takes twenty seconds, so that each phase can be seen.
TMPDIR="$work/emulator" tpudeploy emulator run -speed 30 -scenario "$examples/01-command-line/cloud.yaml" -- \
    "$examples/01-command-line/run.sh"

# Files and processes of the emulator are below its folder.
if [[ -n $(ls -A "$work/emulator") ]]; then
    echo "The emulator left files behind in $work/emulator." >&2
    exit 1
fi
if [[ -n $(find /proc -maxdepth 2 -name cwd -lname "$work/emulator*" 2>/dev/null) ]]; then
    echo "The emulator left processes behind." >&2
    exit 1
fi
printf '\nEvery step worked. Nothing is left running.\n'
