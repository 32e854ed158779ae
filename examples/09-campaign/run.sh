#!/usr/bin/env bash
# Six deployments, two flags, twelve chips and one budget: killed on the way, resumed, and written up in three minutes.
#
#     tpudeploy emulator run -speed 120 -scenario examples/09-campaign/twelve-chips.yaml -- examples/09-campaign/run.sh
set -euo pipefail
: "${TPU_EMULATOR_HOST:?run this with: tpudeploy emulator run -speed 120 -scenario examples/09-campaign/twelve-chips.yaml -- $0}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(mktemp -d)
trap 'rm -rf "$project"' EXIT
cp "$here/base.yaml" "$here/grid.yaml" "$project"
cd "$project"

say() { printf '\n=== %s\n' "$1"; }

say "The campaign begins, and is killed after some seconds"
tpudeploy campaign grid.yaml -auto-approve &
campaign=$!
sleep 8
kill -9 "$campaign"
wait "$campaign" || true

say "The same command continues: no cell is measured twice"
tpudeploy campaign grid.yaml -auto-approve

say "Nothing is left running"
tpudeploy cost
tpudeploy campaign show twelve-chips

say "The article"
tpudeploy campaign report twelve-chips -o report.md
tpudeploy campaign report twelve-chips -o report.html
cat report.md
