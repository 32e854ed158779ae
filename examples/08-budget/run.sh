#!/usr/bin/env bash
# What budgets refuse, what an end ends, and what it all cost: half an hour of a small team, in two minutes.
#
#     tpudeploy emulator run -speed 60 -scenario examples/08-budget/scenario.yaml -- examples/08-budget/run.sh
set -euo pipefail
: "${TPU_EMULATOR_HOST:?run this with: tpudeploy emulator run -speed 60 -scenario examples/08-budget/scenario.yaml -- $0}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(mktemp -d)
trap 'rm -rf "$project"' EXIT
cp "$here/profile.yaml" "$project/demo.yaml"
sed 's/^name: demo/name: other/' "$here/profile.yaml" > "$project/other.yaml"
cd "$project"

say() { printf '\n=== %s\n' "$1"; }

# Runs a command that a budget must refuse: exit code 13, and nothing is requested.
refused() {
  local code=0
  "$@" || code=$?
  if [[ $code -ne 13 ]]; then
    echo "expected exit code 13, not $code" >&2
    exit 1
  fi
}

say "A day's budget of \$1 has no room for this slice until its end"
refused tpudeploy apply demo.yaml -auto-approve --set budget.day=1

say "\$5 have"
tpudeploy apply demo.yaml -auto-approve

say "The team has \$2 a day for both: what runs counts until its end, so the second deployment is refused"
echo 'day: 2' > .tpudeploy/budgets.yaml
refused tpudeploy apply other.yaml -auto-approve
tpudeploy status demo.yaml

say "So is a run whose own ceiling is too low"
rm .tpudeploy/budgets.yaml
refused tpudeploy apply other.yaml -auto-approve -max-cost 0.5

say "Nobody looks, and the machine ends itself"
while tpudeploy status demo.yaml | grep ACTIVE > /dev/null; do sleep 2; done
tpudeploy apply demo.yaml -auto-approve

say "What it cost"
tpudeploy cost
tpudeploy cost -group-by day
