#!/usr/bin/env bash
# `make demo`: the first example on an emulator of its own, and a look that nothing of it is left. About 30 seconds.
set -euo pipefail

examples=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$examples/../profiles" "$work/profiles"
mkdir "$work/emulator"
cd "$work"

TMPDIR="$work/emulator" tpudeploy emulator run -- "$examples/01-command-line/run.sh"

# What the emulator starts, works below its folder. Both are gone, or this is no success.
if [[ -n $(ls -A emulator) ]]; then
    echo "The emulator left files behind in $work/emulator." >&2
    exit 1
fi
if [[ -n $(find /proc -maxdepth 2 -name cwd -lname "$work/emulator*" 2>/dev/null) ]]; then
    echo "The emulator left processes behind." >&2
    exit 1
fi
printf '\nEach step worked, and nothing is left running.\n'
