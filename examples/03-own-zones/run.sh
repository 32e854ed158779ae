#!/usr/bin/env bash
# Zones, prices and labels of one's own: `team.yaml` extends a shipped profile, `canary.yaml` is laid over it, and
# --set has the last word. `plan` and `render profile` name the file and line that each value came from.
#
#     tpudeploy emulator run -- examples/03-own-zones/run.sh
set -euo pipefail
: "${TPU_EMULATOR_HOST:?run this with: tpudeploy emulator run -- $0}"
cd "$(dirname "${BASH_SOURCE[0]}")"

tpudeploy validate team.yaml
tpudeploy render team.yaml profile
tpudeploy plan team.yaml
tpudeploy plan team.yaml -f canary.yaml --set serving.max_num_seqs=64
